//! What happens in a simulation: all of it follows from its seed.

use std::time::Duration;

use app::simulation::SplitMix64;

use super::network::Link;

/// An event and its time.
#[derive(Debug, Clone, Copy)]
pub struct TimedEvent {
    pub at: Duration,
    pub event: Event,
}

#[derive(Debug, Clone, Copy)]
pub enum Event {
    Submit {
        number: u64,
        is_exclusive: bool,
        is_retried: bool,
    },
    /// Cancels the job that was submitted with this number.
    Cancel {
        number: u64,
    },
    Drain {
        host: usize,
    },
    Resume {
        host: usize,
    },
    RotateToken {
        host: usize,
    },
    KillServer {
        down: Duration,
    },
    StopServer {
        down: Duration,
    },
    FillServerDisk {
        lasts: Duration,
    },
    SlowServerDisk {
        max_delay_ms: u64,
        lasts: Duration,
    },
    /// The server's wall clock is set, by this many ms.
    SetServerClock {
        by_ms: i64,
    },
    BlockLink {
        host: usize,
        is_upstream: bool,
        is_downstream: bool,
        lasts: Duration,
    },
    KillAgent {
        host: usize,
        down: Duration,
    },
    Reboot {
        host: usize,
        down: Duration,
    },
}

#[derive(Debug, Clone)]
pub struct Scenario {
    /// The number of GPUs of each host.
    pub hosts: Vec<u32>,
    /// The links of all hosts while there are faults.
    pub link: Link,
    /// In the order of their times.
    pub events: Vec<TimedEvent>,
    /// After this time there are no more faults.
    pub ends: Duration,
    /// By how much the server's wall clock is too fast, in millionths.
    pub clock_drift_ppm: i64,
    /// Only the server has faults: then no attempt may be lost.
    pub is_calm: bool,
}

struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below(max - min + 1)
    }

    /// A duration that is short more often than it is long.
    fn duration(&mut self, min_ms: u64, max_ms: u64) -> Duration {
        let scale = self.below(1_000) * self.below(1_000);
        Duration::from_millis(min_ms + (max_ms - min_ms) * scale / 1_000_000)
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// One of this many seeds has a large fleet.
const LARGE_EVERY: u64 = 200;
const LARGE_HOSTS: u64 = 200;

impl Scenario {
    pub fn from_seed(seed: u64) -> Self {
        // The simulation's own randomness begins with the seed, too.
        let mut dice = Dice(SplitMix64(seed ^ 0x005c_e0a5_10c5));
        let is_large = seed % LARGE_EVERY == LARGE_EVERY - 1;
        let is_calm = dice.happens(15);
        let host_count = if is_large { LARGE_HOSTS } else { dice.between(1, 5) };
        let hosts: Vec<u32> = (0..host_count).map(|_| u32::try_from(dice.between(1, 3)).unwrap_or_default()).collect();
        let ends = Duration::from_secs(if is_large { 240 } else { dice.between(120, 900) });
        let link = Link {
            max_latency: dice.between(1, 200),
            lost_per_mille: if is_calm || dice.happens(50) { 0 } else { dice.below(100) },
            doubled_per_mille: if dice.happens(50) { 0 } else { dice.below(100) },
            ..Link::default()
        };
        let clock_drift_ppm = i64::try_from(dice.below(1_001)).unwrap_or_default() - 500;
        let mut scenario = Self { hosts, link, events: Vec::new(), ends, clock_drift_ppm, is_calm };
        scenario.add_user(&mut dice, if is_large { 100 } else { 12 });
        scenario.add_server_faults(&mut dice);
        if !is_calm {
            scenario.add_host_faults(&mut dice);
        }
        scenario.events.sort_by_key(|event| event.at);
        scenario
    }

    fn add(&mut self, dice: &mut Dice, event: Event) {
        let last = u64::try_from(self.ends.as_millis()).unwrap_or(u64::MAX);
        self.events.push(TimedEvent { at: Duration::from_millis(dice.between(0, last)), event });
    }

    fn host(&self, dice: &mut Dice) -> usize {
        usize::try_from(dice.below(self.hosts.len() as u64)).unwrap_or_default()
    }

    fn add_user(&mut self, dice: &mut Dice, max_jobs: u64) {
        for number in 0..dice.between(1, max_jobs) {
            let (is_exclusive, is_retried) = (dice.happens(40), dice.happens(30));
            self.add(dice, Event::Submit { number, is_exclusive, is_retried });
            if dice.happens(15) {
                self.add(dice, Event::Cancel { number });
            }
        }
        for _ in 0..dice.below(3) {
            let host = self.host(dice);
            self.add(dice, Event::Drain { host });
            self.add(dice, Event::Resume { host });
        }
        if !self.is_calm && dice.happens(30) {
            let host = self.host(dice);
            self.add(dice, Event::RotateToken { host });
        }
    }

    fn add_server_faults(&mut self, dice: &mut Dice) {
        // A calm restart is shorter than a worker may be silent.
        let max_down = if self.is_calm { 60_000 } else { 400_000 };
        for _ in 0..dice.below(5) {
            let down = dice.duration(20, max_down);
            let event = if dice.happens(70) { Event::KillServer { down } } else { Event::StopServer { down } };
            self.add(dice, event);
        }
        if !self.is_calm && dice.happens(20) {
            let lasts = dice.duration(100, 200_000);
            self.add(dice, Event::FillServerDisk { lasts });
        }
        if dice.happens(20) {
            let (max_delay_ms, lasts) = (dice.between(50, 3_000), dice.duration(1_000, 100_000));
            self.add(dice, Event::SlowServerDisk { max_delay_ms, lasts });
        }
        for _ in 0..dice.below(3) {
            let by_ms = i64::try_from(dice.duration(100, 3_600_000).as_millis()).unwrap_or_default();
            let by_ms = if dice.happens(50) { by_ms } else { -by_ms };
            self.add(dice, Event::SetServerClock { by_ms });
        }
    }

    fn add_host_faults(&mut self, dice: &mut Dice) {
        let count = dice.below(3 * self.hosts.len() as u64 + 1).min(60);
        for _ in 0..count {
            let host = self.host(dice);
            let event = match dice.below(10) {
                0..5 => {
                    let (is_upstream, is_downstream) = [(true, true), (true, false), (false, true)]
                        [usize::try_from(dice.below(3)).unwrap_or_default()];
                    Event::BlockLink { host, is_upstream, is_downstream, lasts: dice.duration(100, 600_000) }
                }
                5..9 => Event::KillAgent { host, down: dice.duration(50, 400_000) },
                _ => Event::Reboot { host, down: dice.duration(20_000, 400_000) },
            };
            self.add(dice, event);
        }
    }
}
