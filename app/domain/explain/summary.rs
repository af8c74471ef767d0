//! The number of workers left after each requirement: "8 workers: 3 have site=graz, 0 of them have 16 GPUs".

use crate::domain::job::{JobSpec, JobTarget};
use crate::domain::matching::{Blocker, Remedy};
use crate::domain::sandbox::SandboxLevel;

/// A summary; see the module documentation.
#[derive(Debug, Clone, PartialEq)]
pub struct FitSummary {
    /// Total number of workers.
    pub workers: usize,
    /// The requirements in order, until no worker is left.
    pub steps: Vec<FitStep>,
}

/// One requirement and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct FitStep {
    /// The requirement.
    pub requirement: JobRequirement,
    /// Number of the remaining workers that meet it.
    pub remaining: usize,
}

/// A requirement on workers.
#[derive(Debug, Clone, PartialEq)]
pub enum JobRequirement {
    /// Remote, or the server's own.
    Target(JobTarget),
    /// Has a label.
    Label {
        /// The label's key.
        key: String,
        /// The required glob.
        wanted: String,
    },
    /// Has connected; before that, its capability is not known.
    HasConnected,
    /// Has this kind of accelerator.
    Accelerator(String),
    /// Has this many GPUs.
    Gpus(u32),
    /// Has this many GPUs with this much memory.
    Vram {
        /// The memory in GB.
        gb: f64,
        /// Number of GPUs.
        gpus: u32,
    },
    /// Supports the sandbox level.
    Sandbox(SandboxLevel),
    /// Has an agent that is not an older one.
    CurrentAgent,
    /// Provides directories with these names.
    Paths(Vec<String>),
    /// Is connected, and accepts new jobs.
    Ready,
    /// Has no blockers that disappear by waiting.
    Free,
}

impl JobRequirement {
    /// Returns whether a worker with this blocker does not meet the requirement.
    fn is_unmet_by(&self, blocker: &Blocker<'_>) -> bool {
        match (self, blocker) {
            (Self::Target(_), Blocker::WrongTarget { .. })
            | (Self::HasConnected, Blocker::NeverConnected)
            | (Self::Accelerator(_), Blocker::Accelerator { .. })
            | (Self::Gpus(_), Blocker::Gpus { .. })
            | (Self::Vram { .. }, Blocker::Gpus { .. } | Blocker::Vram { .. })
            | (Self::Sandbox(_), Blocker::Sandbox { .. })
            | (Self::CurrentAgent, Blocker::CannotSelfStop | Blocker::LacksFiles { .. })
            | (Self::Paths(_), Blocker::LacksPaths { .. })
            | (Self::Free, _) => true,
            (Self::Label { key, .. }, Blocker::Label { key: blocked_key, .. }) => key == blocked_key,
            (Self::Ready, blocker) => blocker.remedy() > Remedy::Wait,
            _ => false,
        }
    }

    /// Returns whether the requirement is shown only if a worker does not meet it.
    const fn is_implicit(&self) -> bool {
        matches!(self, Self::HasConnected | Self::CurrentAgent | Self::Ready)
    }
}

/// Returns the requirements in the order of the rules.
fn job_requirements(spec: &JobSpec) -> Vec<JobRequirement> {
    let demand = &spec.demand;
    let target = (spec.target != JobTarget::Auto).then_some(JobRequirement::Target(spec.target));
    let labels =
        demand.labels.0.iter().map(|(key, wanted)| JobRequirement::Label { key: key.clone(), wanted: wanted.clone() });
    let vram = demand.min_vram_gb.zip(demand.required_gpus()).map(|(gb, gpus)| JobRequirement::Vram { gb, gpus });
    let requirements = target.into_iter().chain(labels).chain([JobRequirement::HasConnected]);
    let requirements = requirements.chain(demand.accelerator.clone().map(JobRequirement::Accelerator));
    let requirements = requirements.chain(demand.gpu_count.map(JobRequirement::Gpus)).chain(vram);
    let requirements =
        requirements.chain((demand.sandbox != SandboxLevel::None).then_some(JobRequirement::Sandbox(demand.sandbox)));
    let paths = (!spec.paths.is_empty()).then(|| JobRequirement::Paths(spec.paths.clone()));
    requirements
        .chain([JobRequirement::CurrentAgent])
        .chain(paths)
        .chain([JobRequirement::Ready, JobRequirement::Free])
        .collect()
}

/// Counts workers by the first requirement that they do not meet.
pub(super) struct FitCounts {
    workers: usize,
    requirements: Vec<JobRequirement>,
    missing: Vec<usize>,
}

impl FitCounts {
    pub(super) fn new(spec: &JobSpec) -> Self {
        let requirements = job_requirements(spec);
        Self { workers: 0, missing: vec![0; requirements.len()], requirements }
    }

    /// Counts a worker with these blockers.
    pub(super) fn add(&mut self, blockers: &[Blocker<'_>]) {
        self.workers += 1;
        let is_unmet = |requirement: &JobRequirement| blockers.iter().any(|blocker| requirement.is_unmet_by(blocker));
        if let Some(first) = self.requirements.iter().position(is_unmet) {
            self.missing[first] += 1;
        }
    }

    /// Returns the summary; none if there are no workers.
    pub(super) fn summary(self) -> Option<FitSummary> {
        let Self { workers, requirements, missing } = self;
        (workers > 0).then(|| FitSummary { workers, steps: fit_steps(requirements, &missing, workers) })
    }
}

fn fit_steps(requirements: Vec<JobRequirement>, missing: &[usize], workers: usize) -> Vec<FitStep> {
    let mut steps = Vec::new();
    let mut remaining = workers;
    for (requirement, missing) in requirements.into_iter().zip(missing) {
        remaining -= missing;
        if *missing > 0 || !requirement.is_implicit() {
            steps.push(FitStep { requirement, remaining });
        }
        if remaining == 0 {
            break;
        }
    }
    steps
}
