//! What agents say of their GPUs, by the rules and by the model.

use super::model::{Model, Worker};
use super::server::{Planning, Server};
use crate::domain::fixtures::withheld;
use crate::domain::gpu::{Gpu, Withheld, Word, news};

/// Why a GPU is withheld, if it is one of these: the bit of its number is set.
fn withholds(gpu: &Gpu, numbers: u8) -> Option<Withheld> {
    (numbers & (1 << gpu.index) != 0).then(|| withheld("XID 79"))
}

impl Server {
    /// A heartbeat that withholds these of a worker's GPUs, and none besides.
    pub fn gpus_said(&mut self, place: usize, numbers: u8) -> Option<Planning> {
        self.heard(place)?;
        let before = self.workers[place].clone()?;
        before.may_beat().ok()?;
        let gpus = before.capability().map(|capability| capability.gpus.clone()).unwrap_or_default();
        let word = |gpu: &Gpu| Word { uuid: gpu.uuid.clone(), withheld: withholds(gpu, numbers) };
        let said: Vec<Word> = gpus.iter().map(word).collect();
        let is_news = news(&gpus, &said).next().is_some();
        self.workers[place] = Some(before.gpus_said(&said));
        Some(if is_news { Planning::Follows } else { Planning::No })
    }
}

impl Model {
    pub fn gpus_said(&mut self, place: usize, numbers: u8) -> Option<()> {
        self.hears(place).filter(|worker| worker.connected())?.withhold(numbers);
        Some(())
    }

    /// The GPUs of a worker that jobs may have.
    pub fn given(&self, place: usize) -> impl Iterator<Item = &Gpu> {
        self.workers[place].gpus.iter().filter(|gpu| gpu.withheld.is_none())
    }

    /// Whether it can give any job what it takes.
    pub fn gives(&self, place: usize) -> bool {
        self.workers[place].gpus.is_empty() || self.given(place).next().is_some()
    }
}

impl Worker {
    /// Who registers says anew which; here, none.
    pub fn withhold(&mut self, numbers: u8) {
        self.gpus.iter_mut().for_each(|gpu| gpu.withheld = withholds(gpu, numbers));
    }
}
