//! How many workers are left after each thing that a job asks for: "8 workers: 3 have site=graz, 0 of them have 16 GPUs".

use crate::domain::job::{Spec, Target};
use crate::domain::matching::{Blocker, Remedy};
use crate::domain::sandbox::SandboxLevel;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many workers there are.
    pub workers: usize,
    /// One thing after the other, until nobody is left.
    pub steps: Vec<Step>,
}

/// How many workers are left.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is asked of those that were left before.
    pub ask: Ask,
    /// How many of them have it.
    pub left: usize,
}

/// What is asked of workers.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To be remote, or the server's own.
    Target(Target),
    /// A label.
    Label {
        /// Its key.
        key: String,
        /// A glob.
        wanted: String,
    },
    /// To have connected: before that nobody knows what it has.
    HasConnected,
    /// A kind of accelerator.
    Accelerator(String),
    /// So many GPUs.
    Gpus(u32),
    /// So many GPUs with so much memory.
    Vram {
        /// In GB.
        gb: f64,
        /// How many.
        gpus: u32,
    },
    /// To confine the trainer as closely.
    Sandbox(SandboxLevel),
    /// An agent that is not an older one.
    NewerAgent,
    /// To give jobs directories of these names.
    Paths(Vec<String>),
    /// To be connected, and to take new jobs.
    Ready,
    /// Nothing that passes by itself.
    Free,
}

impl Ask {
    /// Whether the worker lacks it that this keeps a job from.
    fn is_missed(&self, blocker: &Blocker) -> bool {
        match (self, blocker) {
            (Self::Target(_), Blocker::WrongTarget { .. })
            | (Self::HasConnected, Blocker::NeverConnected)
            | (Self::Accelerator(_), Blocker::Accelerator { .. })
            | (Self::Gpus(_), Blocker::Gpus { .. })
            | (Self::Vram { .. }, Blocker::Gpus { .. } | Blocker::Vram { .. })
            | (Self::Sandbox(_), Blocker::Sandbox { .. })
            | (Self::NewerAgent, Blocker::CannotStop | Blocker::LacksFiles { .. })
            | (Self::Paths(_), Blocker::LacksPaths { .. })
            | (Self::Free, _) => true,
            (Self::Label { key, .. }, Blocker::Label { key: missed, .. }) => key == missed,
            (Self::Ready, blocker) => blocker.remedy() > Remedy::Time,
            _ => false,
        }
    }

    /// Whether it is only worth telling where a worker lacks it.
    const fn goes_without_saying(&self) -> bool {
        matches!(self, Self::HasConnected | Self::NewerAgent | Self::Ready)
    }
}

/// In the order of the rules.
fn asks(spec: &Spec) -> Vec<Ask> {
    let demand = &spec.demand;
    let target = (spec.target != Target::Auto).then_some(Ask::Target(spec.target));
    let labels = demand.labels.0.iter().map(|(key, wanted)| Ask::Label { key: key.clone(), wanted: wanted.clone() });
    let vram = demand.min_vram_gb.zip(demand.gpus()).map(|(gb, gpus)| Ask::Vram { gb, gpus });
    let asks = target.into_iter().chain(labels).chain([Ask::HasConnected]);
    let asks = asks.chain(demand.accelerator.clone().map(Ask::Accelerator));
    let asks = asks.chain(demand.gpu_count.map(Ask::Gpus)).chain(vram);
    let asks = asks.chain((demand.sandbox != SandboxLevel::None).then_some(Ask::Sandbox(demand.sandbox)));
    let paths = (!spec.paths.is_empty()).then(|| Ask::Paths(spec.paths.clone()));
    asks.chain([Ask::NewerAgent]).chain(paths).chain([Ask::Ready, Ask::Free]).collect()
}

impl Summary {
    /// By what is in the way of the job on each worker; none if there are no workers.
    pub fn of<B: AsRef<[Blocker]>>(spec: &Spec, workers: impl IntoIterator<Item = B>) -> Option<Self> {
        let asks = asks(spec);
        let (mut count, mut missing) = (0, vec![0; asks.len()]);
        for blockers in workers {
            count += 1;
            let first = asks.iter().position(|ask| blockers.as_ref().iter().any(|blocker| ask.is_missed(blocker)));
            if let Some(first) = first {
                missing[first] += 1;
            }
        }
        (count > 0).then(|| Self { workers: count, steps: steps(asks, &missing, count) })
    }
}

fn steps(asks: Vec<Ask>, missing: &[usize], workers: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut left = workers;
    for (ask, missing) in asks.into_iter().zip(missing) {
        left -= missing;
        if *missing > 0 || !ask.goes_without_saying() {
            steps.push(Step { ask, left });
        }
        if left == 0 {
            break;
        }
    }
    steps
}
