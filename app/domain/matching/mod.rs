//! Whether a job fits a worker, and if not, why not.
//!
//! The planner, explanations and previews all ask here, so that none of them can disagree.

mod blocker;
#[cfg(test)]
mod tests;

pub use self::blocker::{Blocker, Remedy};
use super::capability::Capability;
use super::glob;
use super::gpu::Gpu;
use super::job::{Demand, Spec, Target};
use super::worker::{Link, Worker};

/// A worker as the planner sees it, and the ledger of its GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// What each lease in force holds of it: UUIDs of GPUs.
    pub held: Vec<Vec<&'w str>>,
    /// Whether the labels that its agent reported count.
    pub reported: bool,
}

type Rule = fn(&Spec, &Candidate<'_>) -> Option<Blocker>;

/// First what only a change of job or worker helps against, then what a person sees to, then what passes by itself. What
/// follows [`never_connected`] is known of workers that have reported it.
const RULES: [Rule; 18] = [
    target,
    label,
    never_connected,
    accelerator,
    gpus,
    vram,
    sandbox,
    spent,
    cannot_stop,
    lacks_files,
    lacks_paths,
    draining,
    unfit,
    withheld,
    contact,
    astray,
    finishing,
    room,
];

/// Everything that keeps the job from the worker, in the order in which it is worth telling.
pub fn blockers<'a>(spec: &'a Spec, candidate: &'a Candidate<'_>) -> impl Iterator<Item = Blocker> + 'a {
    RULES.into_iter().filter_map(move |rule| rule(spec, candidate))
}

/// Whether nothing keeps the job from the worker.
pub fn fits(spec: &Spec, candidate: &Candidate<'_>) -> bool {
    // Backwards: most workers that a planner asks are taken, and that is quick to see.
    RULES.iter().rev().all(|rule| rule(spec, candidate).is_none())
}

/// The GPUs that the job would get, by UUID; none if too few are free.
///
/// A worker that takes one job at a time gives it the whole host, less the GPUs whose memory would not do. Otherwise it
/// gives as many as were asked for, or one; of one model if that is possible, and no larger than needed. What its agent
/// withholds is not given.
pub fn grant<'w>(demand: &Demand, candidate: &Candidate<'w>) -> Option<Vec<&'w str>> {
    let Some(capability) = candidate.worker.capability() else { return Some(Vec::new()) };
    let free = candidate.free().filter(|gpu| suits(demand, gpu));
    let wanted = wanted(demand, capability);
    let chosen: Vec<&'w Gpu> = if capability.max_jobs == 1 { free.collect() } else { choose(free.collect(), wanted) };
    (chosen.len() >= wanted).then(|| chosen.into_iter().map(|gpu| gpu.uuid.as_str()).collect())
}

/// `count` of these; of one model if there are enough of one, with the least memory that does.
fn choose(mut free: Vec<&Gpu>, count: usize) -> Vec<&Gpu> {
    let size = |gpu: &Gpu| gpu.vram_gb.unwrap_or(f64::INFINITY);
    free.sort_by(|a, b| size(a).total_cmp(&size(b)).then_with(|| a.name.cmp(&b.name)));
    let alike = free.chunk_by(|a, b| a.name == b.name).find(|chunk| chunk.len() >= count);
    alike.unwrap_or(&free).iter().take(count).copied().collect()
}

impl<'w> Candidate<'w> {
    /// A worker with what its leases hold.
    pub fn new(worker: &'w Worker, held: Vec<Vec<&'w str>>) -> Self {
        Self { worker, held, reported: !worker.ignores_reported }
    }

    /// Whether it hears of one more job, and takes it.
    pub fn has_room(&self) -> bool {
        has_room(self.worker, self.held.len())
    }

    /// GPUs that no job holds, and that one may have.
    fn free(&self) -> impl Iterator<Item = &'w Gpu> {
        let all = self.worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
        let given = all.iter().filter(|gpu| gpu.withheld.is_none());
        given.filter(|gpu| !self.held.iter().any(|held| held.contains(&gpu.uuid.as_str())))
    }
}

/// Whether a worker that has so many jobs hears of one more, and takes it.
pub fn has_room(worker: &Worker, jobs: usize) -> bool {
    let hears = worker.stream().is_some() && worker.drain.is_none();
    let hears = hears && worker.astray.is_none() && worker.finishing.is_none();
    hears && worker.capability().is_some_and(|capability| count(jobs) < capability.max_jobs && capability.gives())
}

/// How many GPUs the job takes here: what it asks for; else one, if there are any.
fn wanted(demand: &Demand, capability: &Capability) -> usize {
    demand.gpus().map_or(usize::from(!capability.gpus.is_empty()), |count| count as usize)
}

fn suits(demand: &Demand, gpu: &Gpu) -> bool {
    demand.min_vram_gb.is_none_or(|least| gpu.vram_gb.is_some_and(|gb| gb >= least))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn target(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let other = match spec.target {
        Target::Auto => false,
        Target::Worker => candidate.worker.local,
        Target::Local => !candidate.worker.local,
    };
    other.then_some(Blocker::WrongTarget { wanted: spec.target })
}

fn label(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    spec.demand.labels.0.iter().find_map(|(key, wanted)| {
        let found = candidate.worker.label(key, candidate.reported);
        let matches = found.is_some_and(|value| glob::matches(wanted, value));
        let label = || Blocker::Label { key: key.clone(), wanted: wanted.clone(), found: found.map(str::to_owned) };
        (!matches).then(label)
    })
}

fn never_connected(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    matches!(candidate.worker.link, Link::NeverSeen).then_some(Blocker::NeverConnected)
}

fn accelerator(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let (wanted, found) = (spec.demand.accelerator.as_ref()?, &candidate.worker.capability()?.accelerator);
    (wanted != found).then(|| Blocker::Accelerator { wanted: wanted.clone(), found: found.clone() })
}

fn gpus(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let (wanted, found) = (spec.demand.gpus()?, count(candidate.worker.capability()?.gpus.len()));
    (found < wanted).then_some(Blocker::Gpus { wanted, found })
}

fn vram(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let (wanted_gb, gpus) = (spec.demand.min_vram_gb?, spec.demand.gpus()?);
    let capability = candidate.worker.capability()?;
    let enough = capability.gpus.iter().filter(|gpu| suits(&spec.demand, gpu)).count() >= gpus as usize;
    // That there are too few in all was said by an earlier rule.
    if enough || capability.gpus.len() < gpus as usize {
        return None;
    }
    let mut sizes: Vec<f64> = capability.gpus.iter().filter_map(|gpu| gpu.vram_gb).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let found_gb = sizes.get((gpus as usize).saturating_sub(1)).copied();
    Some(Blocker::Vram { wanted_gb, gpus, found_gb })
}

fn sandbox(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let wanted = spec.demand.sandbox;
    // Older agents have none.
    let sandbox = candidate.worker.capability()?.sandbox.as_ref();
    let found = sandbox.map(|sandbox| sandbox.most).unwrap_or_default();
    let why = || sandbox.and_then(|sandbox| sandbox.why_not_more.clone());
    (found < wanted).then(|| Blocker::Sandbox { wanted, found, why: why() })
}

fn spent(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    candidate.worker.spent.is_some().then_some(Blocker::Spent)
}

fn cannot_stop(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    (spec.exclusive && candidate.worker.is_older()).then_some(Blocker::CannotStop)
}

fn lacks_files(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let lacks = candidate.worker.is_older() && !spec.files.is_empty();
    lacks.then(|| Blocker::LacksFiles { files: spec.files.clone() })
}

/// An agent that does not say which it has may have any, unless it is an older one, which has none.
fn lacks_paths(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    if spec.paths.is_empty() {
        return None;
    }
    let capability = candidate.worker.capability()?;
    let has = match &capability.paths {
        Some(paths) => paths.as_slice(),
        None if capability.is_older() => &[],
        None => return None,
    };
    let names: Vec<String> = spec.paths.iter().filter(|name| !has.contains(name)).cloned().collect();
    (!names.is_empty()).then_some(Blocker::LacksPaths { names })
}

fn draining(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    candidate.worker.drain.is_some().then_some(Blocker::Draining)
}

/// What a worker has that is here. How one does that is gone, nobody knows: it says so when it registers.
fn present<'w>(candidate: &Candidate<'w>) -> Option<&'w Capability> {
    match &candidate.worker.link {
        Link::Connecting { capability, .. } | Link::Online { capability, .. } => Some(capability),
        Link::NeverSeen | Link::Offline { .. } => None,
    }
}

fn unfit(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    present(candidate)?.unfit.clone().map(|why| Blocker::Unfit { why })
}

fn withheld(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let capability = present(candidate)?;
    let wanted = wanted(&spec.demand, capability);
    let would_do = || capability.gpus.iter().filter(|gpu| suits(&spec.demand, gpu));
    let left = would_do().filter(|gpu| gpu.withheld.is_none()).count();
    // That the host has too few in all was said by an earlier rule.
    if left >= wanted || would_do().count() < wanted {
        return None;
    }
    let why = would_do().filter_map(|gpu| Some((gpu.index, gpu.withheld.clone()?))).collect();
    Some(Blocker::GpusWithheld { wanted: count(wanted), left: count(left), why })
}

fn contact(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    match candidate.worker.link {
        Link::Offline { .. } => Some(Blocker::Offline),
        Link::Connecting { .. } => Some(Blocker::Connecting),
        // That it has never connected was said by an earlier rule.
        Link::NeverSeen | Link::Online { .. } => None,
    }
}

fn astray(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    candidate.worker.astray.clone().map(|job| Blocker::Astray { job })
}

fn finishing(_: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    candidate.worker.finishing.map(|_| Blocker::Finishing)
}

fn room(spec: &Spec, candidate: &Candidate<'_>) -> Option<Blocker> {
    let capability = candidate.worker.capability()?;
    if count(candidate.held.len()) >= capability.max_jobs {
        return Some(Blocker::Occupied { max_jobs: capability.max_jobs });
    }
    let wanted = wanted(&spec.demand, capability);
    let would_do = capability.gpus.iter().filter(|gpu| suits(&spec.demand, gpu));
    let given = would_do.filter(|gpu| gpu.withheld.is_none()).count();
    let free = candidate.free().filter(|gpu| suits(&spec.demand, gpu)).count();
    // That the host has too few in all, or gives too few out, was said by an earlier rule.
    (free < wanted && wanted <= given).then(|| Blocker::GpusBusy { wanted: count(wanted), free: count(free) })
}
