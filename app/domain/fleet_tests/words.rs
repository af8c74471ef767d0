//! What older agents say of themselves, by the rules and by the model.

use super::model::{Link, Model, Stands, Worker};
use super::server::{Planning, Server};
use crate::domain::astray::{Word, astray, offer_taken};
use crate::domain::job::Report;
use crate::domain::worker;

impl Server {
    /// A worker's agent spoke by a heartbeat: it may have taken an offer.
    pub fn beat(&mut self, place: usize, word: &Word) -> Option<Planning> {
        let (worker, held) = (self.workers[place].clone()?, self.held(place));
        if let Some(taken) = offer_taken(&worker, &held, word) {
            let after = taken.clone().reported(self.now, &worker.id, taken.attempt, Report::Starting).ok()?;
            self.jobs.iter_mut().filter(|job| *job == taken).for_each(|job| *job = after.clone());
        }
        Some(self.spoke(place, word))
    }

    /// A worker's agent spoke, maybe by a report that was refused.
    pub fn spoke(&mut self, place: usize, word: &Word) -> Planning {
        let Some(before) = self.workers[place].clone() else { return Planning::No };
        let astray = astray(&before, &self.held(place), word);
        let freed = before.astray.is_some() && astray.is_none();
        self.workers[place] = Some(worker::Worker { astray, ..before });
        if freed { Planning::Follows } else { Planning::No }
    }
}

impl Model {
    /// The same: which job it runs, if any.
    pub fn beat(&mut self, place: usize, runs: Option<usize>) {
        let older = self.workers[place].host.older;
        if let Some(job) = runs.and_then(|job| self.jobs.get_mut(job)).filter(|_| older)
            && job.holder() == Some(place)
            && matches!(job.stands, Stands::Offered { .. })
        {
            job.stands = Stands::Starting;
        }
        self.spoke(place, runs);
    }

    pub fn spoke(&mut self, place: usize, runs: Option<usize>) {
        let there = &self.workers[place];
        let known = there.host.older && !there.removed && there.link != Link::Unseen;
        let has_taken_one = self.held_by(place).any(|job| !matches!(job.stands, Stands::Offered { .. }));
        let is_own = |job: &usize| self.jobs.get(*job).is_some_and(|job| job.holder() == Some(place));
        let astray = runs.filter(|job| known && !has_taken_one && !is_own(job));
        self.workers[place].astray = astray;
    }
}

impl Worker {
    pub fn goes_away(&mut self) {
        (self.link, self.astray) = (Link::Away, None);
    }
}
