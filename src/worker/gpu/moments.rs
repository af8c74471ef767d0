//! What is still to be told of the GPUs: the newest moments, until a heartbeat that had them was answered.

use std::collections::VecDeque;

use app::protocol::gpu::Telemetry;

/// So many moments are kept; older ones are forgotten.
const KEPT: usize = 12;

/// The moments, each with its number.
#[derive(Debug, Default)]
pub struct Moments {
    next: u64,
    waiting: VecDeque<(u64, Telemetry)>,
}

/// What goes with one heartbeat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parcel {
    /// Oldest first.
    pub moments: Vec<Telemetry>,
    /// The number after its last one.
    end: u64,
}

impl Moments {
    /// One more.
    pub fn add(&mut self, moment: Telemetry) {
        self.waiting.push_back((self.next, moment));
        self.next += 1;
        if self.waiting.len() > KEPT {
            self.waiting.pop_front();
        }
    }

    /// All that waits.
    pub fn parcel(&self) -> Parcel {
        Parcel { moments: self.waiting.iter().map(|(_, moment)| moment.clone()).collect(), end: self.next }
    }

    /// This parcel has arrived.
    pub fn told(&mut self, parcel: &Parcel) {
        self.waiting.retain(|(number, _)| *number >= parcel.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    #[test]
    fn the_newest_wait_until_they_were_told() {
        let mut moments = Moments::default();
        let times = |parcel: &Parcel| parcel.moments.iter().map(|moment| moment.at.0).collect::<Vec<_>>();
        for at in 0..15 {
            moments.add(Telemetry { at: Timestamp(at), gpus: Vec::new() });
        }
        let parcel = moments.parcel();
        assert_eq!(times(&parcel), (3..15).collect::<Vec<_>>());
        // The answer did not come: all of them again, and what came meanwhile.
        moments.add(Telemetry { at: Timestamp(15), gpus: Vec::new() });
        assert_eq!(times(&moments.parcel()), (4..16).collect::<Vec<_>>());
        moments.told(&parcel);
        assert_eq!(times(&moments.parcel()), [15]);
    }
}
