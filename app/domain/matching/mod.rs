//! Decides whether a job matches a worker, and if not, why.
//!
//! The planner, explanations and previews all use this module, so their results always agree.

mod blocker;
#[cfg(test)]
mod tests;

pub use self::blocker::{Blocker, Remedy};
use super::capability::Capability;
use super::glob;
use super::gpu::Gpu;
use super::job::{Demand, JobSpec, JobTarget};
use super::worker::{ConnectionState, Worker};

/// A worker in planning, with its allocated GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// UUIDs of the GPUs of each active lease.
    pub held_gpus: Vec<Vec<&'w str>>,
    /// Whether labels that its agent reported are used.
    pub use_reported_labels: bool,
}

type MatchRule = for<'a> fn(&'a JobSpec, &Candidate<'a>) -> Option<Blocker<'a>>;

/// The rules: first blockers that only a change of job or worker removes, then those that need an admin, then those
/// that disappear by waiting. Rules after [`never_connected`] apply only to workers with a reported capability.
const RULES: [MatchRule; 18] = [
    wrong_target,
    label_mismatch,
    never_connected,
    wrong_accelerator,
    too_few_gpus,
    too_little_vram,
    weak_sandbox,
    retired,
    cannot_self_stop,
    lacks_files,
    lacks_paths,
    draining,
    host_unhealthy,
    gpus_unavailable,
    not_connected,
    unassigned_run,
    finishing,
    no_capacity,
];

/// Returns all blockers, the most relevant first.
pub fn blockers<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> impl Iterator<Item = Blocker<'a>> {
    RULES.into_iter().filter_map(move |rule| rule(spec, candidate))
}

/// Returns whether there is no blocker. As the planner remembers the result, it must not depend on the time.
pub fn fits(spec: &JobSpec, candidate: &Candidate<'_>) -> bool {
    // Target and labels last: labels cost the most, and the planner has already compared most of them.
    let (target_and_labels, others) = RULES.split_at(2);
    others.iter().chain(target_and_labels).all(|rule| rule(spec, candidate).is_none())
}

/// Returns the UUIDs of the GPUs that the job would get; none if too few are free.
///
/// A worker that runs one job at a time allocates the whole host, except GPUs with too little memory. Otherwise the job
/// gets the required number, or one; of one model if possible, and the smallest that suffice. Unavailable GPUs are
/// never allocated.
pub fn grant_gpus<'w>(demand: &Demand, candidate: &Candidate<'w>) -> Option<Vec<&'w str>> {
    let Some(capability) = candidate.worker.capability() else { return Some(Vec::new()) };
    let free = candidate.free_gpus().filter(|gpu| has_enough_memory(demand, gpu));
    let required = granted_gpu_count(demand, capability);
    let chosen: Vec<&'w Gpu> =
        if capability.max_jobs == 1 { free.collect() } else { choose_gpus(free.collect(), required) };
    (chosen.len() >= required).then(|| chosen.into_iter().map(|gpu| gpu.uuid.as_str()).collect())
}

/// Chooses `count` GPUs; of one model if there are enough, with the least memory.
fn choose_gpus(mut free: Vec<&Gpu>, count: usize) -> Vec<&Gpu> {
    let size = |gpu: &Gpu| gpu.vram_gb.unwrap_or(f64::INFINITY);
    free.sort_by(|a, b| size(a).total_cmp(&size(b)).then_with(|| a.name.cmp(&b.name)));
    let same_model = free.chunk_by(|a, b| a.name == b.name).find(|chunk| chunk.len() >= count);
    same_model.unwrap_or(&free).iter().take(count).copied().collect()
}

impl<'w> Candidate<'w> {
    /// Creates a candidate from a worker and its leases.
    pub fn new(worker: &'w Worker, held_gpus: Vec<Vec<&'w str>>) -> Self {
        Self { worker, held_gpus, use_reported_labels: !worker.ignores_reported_labels }
    }

    /// Uses labels that its agent reported only if that is allowed.
    #[must_use]
    pub fn restricted(self, use_reported_labels: bool) -> Self {
        Self { use_reported_labels: self.use_reported_labels && use_reported_labels, ..self }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&'w str> {
        self.worker.label(key, self.use_reported_labels)
    }

    /// Returns whether it receives offers and accepts another job.
    pub fn has_capacity(&self) -> bool {
        has_capacity(self.worker, self.held_gpus.len())
    }

    /// Returns available GPUs that are not allocated.
    fn free_gpus(&self) -> impl Iterator<Item = &'w Gpu> {
        let gpus = self.worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
        let available = gpus.iter().filter(|gpu| gpu.unavailable.is_none());
        available.filter(|gpu| !self.held_gpus.iter().any(|lease_gpus| lease_gpus.contains(&gpu.uuid.as_str())))
    }
}

/// Returns whether a worker with this number of jobs receives offers and accepts another one.
pub fn has_capacity(worker: &Worker, jobs: usize) -> bool {
    let receives_offers = worker.stream_id().is_some() && worker.drain.is_none();
    let receives_offers = receives_offers && worker.unassigned_run.is_none() && worker.finishing_since.is_none();
    receives_offers
        && worker.capability().is_some_and(|capability| to_u32(jobs) < capability.max_jobs && capability.can_run_jobs())
}

/// Returns how many GPUs the job gets on this worker: the required number; otherwise one, if there are GPUs.
fn granted_gpu_count(demand: &Demand, capability: &Capability) -> usize {
    demand.required_gpus().map_or(usize::from(!capability.gpus.is_empty()), |count| count as usize)
}

fn has_enough_memory(demand: &Demand, gpu: &Gpu) -> bool {
    demand.min_vram_gb.is_none_or(|min_gb| gpu.vram_gb.is_some_and(|gb| gb >= min_gb))
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn wrong_target<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let is_wrong = match spec.target {
        JobTarget::Auto => false,
        JobTarget::Worker => candidate.worker.local,
        JobTarget::Local => !candidate.worker.local,
    };
    is_wrong.then_some(Blocker::WrongTarget { wanted: spec.target })
}

fn label_mismatch<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    spec.demand.labels.0.iter().find_map(|(key, wanted)| {
        let found = candidate.label(key);
        let matches = found.is_some_and(|value| glob::matches(wanted, value));
        (!matches).then_some(Blocker::Label { key, wanted, found })
    })
}

fn never_connected<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    matches!(candidate.worker.connection, ConnectionState::NeverConnected).then_some(Blocker::NeverConnected)
}

fn wrong_accelerator<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let (wanted, found) = (spec.demand.accelerator.as_deref()?, candidate.worker.capability()?.accelerator.as_str());
    (wanted != found).then_some(Blocker::Accelerator { wanted, found })
}

fn too_few_gpus<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let (wanted, found) = (spec.demand.required_gpus()?, to_u32(candidate.worker.capability()?.gpus.len()));
    (found < wanted).then_some(Blocker::Gpus { wanted, found })
}

fn too_little_vram<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let (wanted_gb, gpus) = (spec.demand.min_vram_gb?, spec.demand.required_gpus()?);
    let capability = candidate.worker.capability()?;
    let enough = capability.gpus.iter().filter(|gpu| has_enough_memory(&spec.demand, gpu)).count() >= gpus as usize;
    // An earlier rule reports that there are too few GPUs in total.
    if enough || capability.gpus.len() < gpus as usize {
        return None;
    }
    let mut sizes: Vec<f64> = capability.gpus.iter().filter_map(|gpu| gpu.vram_gb).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let found_gb = sizes.get((gpus as usize).saturating_sub(1)).copied();
    Some(Blocker::Vram { wanted_gb, gpus, found_gb })
}

fn weak_sandbox<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let wanted = spec.demand.sandbox;
    // Older agents have no sandbox.
    let sandbox = candidate.worker.capability()?.sandbox.as_ref();
    let found = sandbox.map(|sandbox| sandbox.most).unwrap_or_default();
    let why = sandbox.and_then(|sandbox| sandbox.why_not_more.as_deref());
    (found < wanted).then_some(Blocker::Sandbox { wanted, found, why })
}

fn retired<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    candidate.worker.retired_at.is_some().then_some(Blocker::Retired)
}

fn cannot_self_stop<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    (spec.exclusive && candidate.worker.has_older_agent()).then_some(Blocker::CannotSelfStop)
}

fn lacks_files<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let lacks_any = candidate.worker.has_older_agent() && !spec.files.is_empty();
    lacks_any.then_some(Blocker::LacksFiles { files: &spec.files })
}

/// An agent that does not report its directories may have any, except an older agent, which has none.
fn lacks_paths<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    if spec.paths.is_empty() {
        return None;
    }
    let capability = candidate.worker.capability()?;
    let provided = match &capability.paths {
        Some(paths) => paths.as_slice(),
        None if capability.is_older_agent() => &[],
        None => return None,
    };
    let missing = spec.paths.iter().filter(|name| !provided.contains(name));
    let names: Vec<&str> = missing.map(String::as_str).collect();
    (!names.is_empty()).then_some(Blocker::LacksPaths { names })
}

fn draining<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    candidate.worker.drain.is_some().then_some(Blocker::Draining)
}

/// Returns the capability of a connected worker. For a disconnected one, the state of its GPUs is unknown until it
/// registers.
fn connected_capability<'w>(candidate: &Candidate<'w>) -> Option<&'w Capability> {
    match &candidate.worker.connection {
        ConnectionState::Connecting { capability, .. } | ConnectionState::Online { capability, .. } => Some(capability),
        ConnectionState::NeverConnected | ConnectionState::Offline { .. } => None,
    }
}

fn host_unhealthy<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    connected_capability(candidate)?.unhealthy_reason.as_deref().map(|why| Blocker::HostUnhealthy { why })
}

fn gpus_unavailable<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let capability = connected_capability(candidate)?;
    let wanted = granted_gpu_count(&spec.demand, capability);
    let suitable = || capability.gpus.iter().filter(|gpu| has_enough_memory(&spec.demand, gpu));
    let left = suitable().filter(|gpu| gpu.unavailable.is_none()).count();
    // An earlier rule reports that the host has too few in total.
    if left >= wanted || suitable().count() < wanted {
        return None;
    }
    let why = suitable().filter_map(|gpu| Some((gpu.index, gpu.unavailable.as_ref()?))).collect();
    Some(Blocker::GpusUnavailable { wanted: to_u32(wanted), left: to_u32(left), why })
}

fn not_connected<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    match candidate.worker.connection {
        ConnectionState::Offline { .. } => Some(Blocker::Offline),
        ConnectionState::Connecting { .. } => Some(Blocker::Connecting),
        // An earlier rule reports that it has never connected.
        ConnectionState::NeverConnected | ConnectionState::Online { .. } => None,
    }
}

fn unassigned_run<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    candidate.worker.unassigned_run.as_ref().map(|job| Blocker::UnassignedRun { job })
}

fn finishing<'a>(_: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    candidate.worker.finishing_since.map(|_| Blocker::Finishing)
}

fn no_capacity<'a>(spec: &'a JobSpec, candidate: &Candidate<'a>) -> Option<Blocker<'a>> {
    let capability = candidate.worker.capability()?;
    if to_u32(candidate.held_gpus.len()) >= capability.max_jobs {
        return Some(Blocker::AtCapacity { max_jobs: capability.max_jobs });
    }
    let wanted = granted_gpu_count(&spec.demand, capability);
    let suitable = capability.gpus.iter().filter(|gpu| has_enough_memory(&spec.demand, gpu));
    let available = suitable.filter(|gpu| gpu.unavailable.is_none()).count();
    let free = candidate.free_gpus().filter(|gpu| has_enough_memory(&spec.demand, gpu)).count();
    // Earlier rules report that the host has too few GPUs in total, or too few available ones.
    (free < wanted && wanted <= available).then(|| Blocker::GpusBusy { wanted: to_u32(wanted), free: to_u32(free) })
}
