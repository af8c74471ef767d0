//! The shares of teams and members at a time, for one round of planning.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::{ShareKey, ShareSettings, ShareUsage, Teams};
use crate::domain::job::{Demand, Job};
use crate::domain::job_share::{DEFAULT_TEAM, JobClass};

/// A GPU that a share has now counts as if it had had it for this long already, in milliseconds. So a burst of jobs that
/// start in the same moment is divided too.
const LOOKAHEAD: f64 = 3_600_000.0;

/// The jobs of a member that have a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareLoad {
    /// Number of jobs that are counted.
    pub jobs: u32,
    /// Number of GPUs that are allocated to them.
    pub gpus: u32,
    /// Number of GPUs that they have required: on a host that runs one job at a time, a job gets all GPUs.
    pub required_gpus: u32,
    /// Number of idle jobs.
    pub idle_jobs: u32,
    /// Number of GPUs that are allocated to idle jobs.
    pub idle_gpus: u32,
}

impl ShareLoad {
    /// The load of one job with this number of GPUs.
    pub fn of(job: &Job, gpus: usize) -> Self {
        let allocated = u32::try_from(gpus).unwrap_or(u32::MAX);
        if job.spec.class.is_counted() {
            let required_gpus = counted_gpus(&job.spec.demand).min(allocated);
            Self { jobs: 1, gpus: allocated, required_gpus, ..Self::default() }
        } else {
            Self { idle_jobs: 1, idle_gpus: allocated, ..Self::default() }
        }
    }

    /// Adds another load.
    pub fn add(&mut self, other: Self) {
        self.combine(other, u32::saturating_add);
    }

    /// Removes a load that was added.
    pub fn remove(&mut self, other: Self) {
        self.combine(other, u32::saturating_sub);
    }

    fn combine(&mut self, other: Self, combine: impl Fn(u32, u32) -> u32) {
        self.jobs = combine(self.jobs, other.jobs);
        self.gpus = combine(self.gpus, other.gpus);
        self.required_gpus = combine(self.required_gpus, other.required_gpus);
        self.idle_jobs = combine(self.idle_jobs, other.idle_jobs);
        self.idle_gpus = combine(self.idle_gpus, other.idle_gpus);
    }
}

/// Returns the number of GPUs that a job counts for a limit: what it requires, or one.
pub fn counted_gpus(demand: &Demand) -> u32 {
    demand.required_gpus().unwrap_or(1)
}

/// What the connected workers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FleetSize {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of jobs that they run at a time.
    pub slots: u32,
}

impl FleetSize {
    /// Adds what a worker has.
    pub const fn add(&mut self, other: Self) {
        self.gpus = self.gpus.saturating_add(other.gpus);
        self.slots = self.slots.saturating_add(other.slots);
    }

    /// Removes what a worker had.
    pub const fn remove(&mut self, other: Self) {
        self.gpus = self.gpus.saturating_sub(other.gpus);
        self.slots = self.slots.saturating_sub(other.slots);
    }
}

/// A level of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareLevel {
    /// A team.
    Team,
    /// A member of a team.
    Member,
}

/// A limit of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareLimit {
    /// The maximum number of GPUs.
    Gpus(u32),
    /// The GPU-hours of this month.
    GpuHours(u32),
    /// The maximum number of running jobs.
    RunningJobs(u32),
}

/// A limit that prevents a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedShareLimit {
    /// Whose.
    pub level: ShareLevel,
    /// Which.
    pub limit: ShareLimit,
}

/// The state of a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareStanding<'t> {
    /// The name of the team or of the member.
    pub name: &'t str,
    /// What it may use.
    pub settings: ShareSettings,
    /// What it has used, and uses.
    pub usage: ShareUsage,
    /// What runs.
    pub load: ShareLoad,
}

/// The order of shares on one level; the smallest comes first.
#[derive(Debug, Clone, Copy)]
pub struct ShareRank<'t> {
    has_guaranteed: bool,
    score: f64,
    name: &'t str,
}

impl PartialEq for ShareRank<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ShareRank<'_> {}

impl PartialOrd for ShareRank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShareRank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_guarantee = self.has_guaranteed.cmp(&other.has_guaranteed);
        by_guarantee.then_with(|| self.score.total_cmp(&other.score)).then_with(|| self.name.cmp(other.name))
    }
}

impl<'t> ShareStanding<'t> {
    /// A share that has used nothing.
    fn unused(name: &'t str, settings: Option<ShareSettings>) -> Self {
        let settings = settings.unwrap_or_default();
        Self { name, settings, usage: ShareUsage::default(), load: ShareLoad::default() }
    }

    /// Returns how much of the fleet it uses in relation to its weight: the larger of GPUs and slots (dominant resource
    /// fairness).
    fn score(&self, class: JobClass, size: FleetSize) -> f64 {
        let of = |used: f64, now: u32, all: u32| (used + LOOKAHEAD * f64::from(now)) / f64::from(all.max(1));
        let ShareLoad { gpus, jobs, idle_gpus, idle_jobs, .. } = self.load;
        let dominant = if class.is_counted() {
            of(self.usage.gpu_time, gpus, size.gpus).max(of(self.usage.slot_time, jobs, size.slots))
        } else {
            of(0.0, idle_gpus, size.gpus).max(of(0.0, idle_jobs, size.slots))
        };
        dominant / f64::from(self.settings.weight.max(1))
    }

    fn reached_limit(&self, gpus: u32) -> Option<ShareLimit> {
        let ShareSettings { max_gpus, max_gpu_hours, max_running_jobs, .. } = self.settings;
        let running_jobs = max_running_jobs.filter(|max| self.load.jobs >= *max).map(ShareLimit::RunningJobs);
        let is_over = |max: &u32| self.load.required_gpus.saturating_add(gpus) > *max;
        let hours = self.usage.month_gpu_time / 3_600_000.0;
        let gpu_hours = max_gpu_hours.filter(|max| gpus > 0 && hours >= f64::from(*max)).map(ShareLimit::GpuHours);
        running_jobs.or(gpu_hours).or(max_gpus.filter(is_over).map(ShareLimit::Gpus))
    }
}

/// The teams and members that have jobs or have used something.
#[derive(Debug, Clone, Default)]
pub struct ShareTree<'t> {
    known: Option<&'t Teams>,
    size: FleetSize,
    teams: Vec<ShareStanding<'t>>,
    team_by_name: HashMap<&'t str, usize>,
    members: Vec<(usize, ShareStanding<'t>)>,
    member_by_name: HashMap<(usize, &'t str), usize>,
}

impl<'t> ShareTree<'t> {
    /// Creates the tree of a fleet.
    pub fn new(known: &'t Teams, size: FleetSize) -> Self {
        Self { known: Some(known), size, ..Self::default() }
    }

    /// Enlarges the fleet by what a worker has.
    pub const fn enlarge(&mut self, by: FleetSize) {
        self.size.add(by);
    }

    /// Adds the default team, and all teams and members that are known, with or without jobs.
    #[must_use]
    pub fn with_all_teams(mut self) -> Self {
        self.team(DEFAULT_TEAM);
        for team in self.known.into_iter().flat_map(Teams::values) {
            self.team(&team.name);
            for user in team.members.keys() {
                self.member(&team.name, user);
            }
        }
        self
    }

    /// Adds what a member of a team has used and uses.
    pub fn add(&mut self, key: &'t ShareKey, usage: &ShareUsage, load: ShareLoad) {
        self.add_for(&key.team, &key.user, usage, load);
    }

    /// Adds the lease of a job.
    pub fn add_job(&mut self, job: &'t Job, gpus: usize) {
        self.add_for(&job.spec.team, &job.submitted_by, &ShareUsage::default(), ShareLoad::of(job, gpus));
    }

    fn add_for(&mut self, team: &str, user: &'t str, usage: &ShareUsage, load: ShareLoad) {
        let member = self.member(team, user);
        let (team, member) = &mut self.members[member];
        for share in [member, &mut self.teams[*team]] {
            share.usage.gpu_time += usage.gpu_time;
            share.usage.slot_time += usage.slot_time;
            share.usage.month_gpu_time += usage.month_gpu_time;
            share.load.add(load);
        }
    }

    /// Returns the index of a team.
    pub(super) fn team(&mut self, name: &str) -> usize {
        let name = self.resolve(name);
        if let Some(index) = self.team_by_name.get(name) {
            return *index;
        }
        self.teams.push(self.unused_team(name));
        self.team_by_name.insert(name, self.teams.len() - 1);
        self.teams.len() - 1
    }

    /// Returns the index of a member of a team.
    pub(super) fn member(&mut self, team: &str, user: &'t str) -> usize {
        let team = self.team(team);
        if let Some(index) = self.member_by_name.get(&(team, user)) {
            return *index;
        }
        self.members.push((team, self.unused_member(self.teams[team].name, user)));
        self.member_by_name.insert((team, user), self.members.len() - 1);
        self.members.len() - 1
    }

    /// The team for which a job counts.
    pub fn team_of(&self, job: &Job) -> &'t str {
        self.resolve(&job.spec.team)
    }

    /// Jobs of a team that was deleted count for the default team.
    fn resolve(&self, team: &str) -> &'t str {
        self.known.and_then(|known| known.get(team)).map_or(DEFAULT_TEAM, |team| team.name.as_str())
    }

    fn unused_team(&self, name: &'t str) -> ShareStanding<'t> {
        let known = self.known.and_then(|known| known.get(name));
        ShareStanding::unused(name, known.map(|team| team.settings))
    }

    fn unused_member<'u>(&self, team: &str, user: &'u str) -> ShareStanding<'u> {
        let known = self.known.and_then(|known| known.get(team)?.members.get(user));
        ShareStanding::unused(user, known.map(|member| member.settings))
    }

    pub(super) fn team_rank(&self, team: usize, class: JobClass) -> ShareRank<'t> {
        self.rank(&self.teams[team], class)
    }

    pub(super) fn member_rank(&self, member: usize, class: JobClass) -> ShareRank<'t> {
        self.rank(&self.members[member].1, class)
    }

    fn rank(&self, share: &ShareStanding<'t>, class: JobClass) -> ShareRank<'t> {
        let has_guaranteed = !class.is_counted() || share.load.required_gpus >= share.settings.guaranteed_gpus;
        ShareRank { has_guaranteed, score: share.score(class, self.size), name: share.name }
    }

    /// Returns the limit of the team or the member that prevents a job.
    pub fn reached_limit(&self, job: &Job) -> Option<ReachedShareLimit> {
        if !job.spec.class.is_counted() {
            return None;
        }
        let gpus = counted_gpus(&job.spec.demand);
        let [team, member] = self.standings(job);
        let reached = |level, share: &ShareStanding<'_>| {
            share.reached_limit(gpus).map(|limit| ReachedShareLimit { level, limit })
        };
        reached(ShareLevel::Team, &team).or_else(|| reached(ShareLevel::Member, &member))
    }

    /// Removes the lease of a job.
    pub fn remove_job(&mut self, job: &'t Job, gpus: usize) {
        let member = self.member(&job.spec.team, &job.submitted_by);
        let (team, member) = &mut self.members[member];
        for share in [member, &mut self.teams[*team]] {
            share.load.remove(ShareLoad::of(job, gpus));
        }
    }

    /// Returns whether a share comes before another one of its level.
    pub fn comes_before(&self, share: &ShareStanding<'_>, other: &ShareStanding<'_>) -> bool {
        share.score(JobClass::Normal, self.size) < other.score(JobClass::Normal, self.size)
    }

    /// Returns the shares of a job: of its team, and of its member.
    pub fn standings<'s>(&'s self, job: &'s Job) -> [ShareStanding<'s>; 2] {
        let name = self.resolve(&job.spec.team);
        let index = self.team_by_name.get(name);
        let team = index.map_or_else(|| self.unused_team(name), |index| self.teams[*index]);
        let member = index.and_then(|team| self.member_by_name.get(&(*team, job.submitted_by.as_str())));
        let member =
            member.map_or_else(|| self.unused_member(name, &job.submitted_by), |member| self.members[*member].1);
        [team, member]
    }

    /// The teams with their members, each level in the order in which they get the next GPU.
    pub fn in_order(&self) -> Vec<(&ShareStanding<'t>, Vec<&ShareStanding<'t>>)> {
        let mut teams: Vec<usize> = (0..self.teams.len()).collect();
        teams.sort_by_key(|team| self.team_rank(*team, JobClass::Normal));
        let members = |team: usize| {
            let mut members: Vec<&ShareStanding<'t>> = self.members_of(team).collect();
            members.sort_by_key(|member| self.rank(member, JobClass::Normal));
            members
        };
        teams.into_iter().map(|team| (&self.teams[team], members(team))).collect()
    }

    /// The teams.
    pub fn teams(&self) -> &[ShareStanding<'t>] {
        &self.teams
    }

    fn members_of(&self, team: usize) -> impl Iterator<Item = &ShareStanding<'t>> {
        self.members.iter().filter(move |(of, _)| *of == team).map(|(_, member)| member)
    }

    /// What the fleet has.
    pub const fn size(&self) -> FleetSize {
        self.size
    }
}
