//! What can happen to a fleet, in words that are short to read when a story fails.

use std::fmt;

use proptest::prelude::*;
use proptest::{collection, option, sample};

use crate::domain::ids::Attempt;
use crate::domain::job::{Report, Target};
use crate::domain::plan::Limits;
use crate::domain::worker::Kind;

/// Hosts in a story; they are named by their places.
const HOSTS: usize = 3;
/// Jobs that commands speak of; later ones are only planned.
const JOBS: usize = 4;

/// What a worker is.
#[derive(Debug, Clone)]
pub(super) struct Host {
    /// The memory of each GPU in GB.
    pub gpus: Vec<u32>,
    pub max_jobs: u32,
    pub kind: Kind,
    pub local: bool,
    /// Whether its agent is an older one: while its stream is open it needs no heartbeats.
    pub older: bool,
    /// Whether it has registered when the story begins.
    pub comes: bool,
}

/// What somebody asks for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub by: &'static str,
    pub priority: u8,
    pub gpus: Option<u32>,
    pub vram_gb: Option<u32>,
    pub rack: Option<&'static str>,
    pub target: Target,
    pub max_retries: u32,
    pub retry_on_failure: bool,
    /// How many seconds an attempt may train.
    pub max_runtime: Option<i64>,
    /// Whether no two of its trainers may ever run at once.
    pub exclusive: bool,
}

/// The newest offer of a job: to which worker, and which attempt.
pub(super) type Newest = Option<(usize, Attempt)>;

/// Which attempt somebody speaks of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Newest,
    /// A zombie's.
    Older,
    /// One that was never offered.
    Newer,
    /// Older agents do not say.
    Unsaid,
}

impl Which {
    pub fn of(self, newest: Newest) -> Option<Attempt> {
        let Attempt(number) = newest.map(|(_, attempt)| attempt).unwrap_or_default();
        match self {
            Self::Newest => Some(Attempt(number)),
            Self::Older => Some(Attempt(number.saturating_sub(1))),
            Self::Newer => Some(Attempt(number + 1)),
            Self::Unsaid => None,
        }
    }
}

/// What an agent says that it runs.
#[derive(Debug, Clone)]
pub(super) enum Claims {
    Nothing,
    /// All that it was given last, whatever became of it.
    All(Which),
    One(usize, Which),
}

impl Claims {
    /// Jobs and attempts.
    pub fn of(&self, worker: usize, newest: &[Newest]) -> Vec<(usize, Option<Attempt>)> {
        let given = |job: &usize| newest[*job].is_some_and(|(to, _)| to == worker);
        match *self {
            Self::Nothing => Vec::new(),
            Self::All(which) => (0..newest.len()).filter(given).map(|job| (job, which.of(newest[job]))).collect(),
            Self::One(job, which) => vec![(job, which.of(newest.get(job).copied().flatten()))],
        }
    }
}

/// Who reports.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Whom the newest attempt was offered to, with the job's token, which outlives the worker.
    Holder,
    /// A worker, with its own token.
    Worker(usize),
}

#[derive(Debug, Clone)]
pub(super) enum Command {
    Submit(Ask),
    Cancel(usize),
    Retry(usize),
    SetPriority(usize, u8),
    /// With a deadline in so many seconds.
    Drain(usize, Option<i64>),
    Resume(usize),
    SetRack(usize, &'static str),
    Delete(usize),
    /// From the host that was first, or from another with the same token.
    Register {
        worker: usize,
        elsewhere: bool,
        claims: Claims,
    },
    Heartbeat {
        worker: usize,
        claims: Claims,
    },
    /// An older agent's heartbeat: which job it runs, if any.
    Word(usize, Option<usize>),
    /// A heartbeat that withholds some of the worker's GPUs: a bit for each.
    Gpus(usize, u8),
    /// The stream of this number opened.
    Listen(usize, u8),
    StreamEnded(usize, u8),
    Goodbye(usize),
    Report {
        job: usize,
        by: By,
        attempt: Which,
        report: Report,
    },
    /// So many seconds.
    Pass(i64),
    SweepOffers,
    CheckHealth(usize),
    RestartServer,
}

/// A fleet, its limits, and what happens to it.
#[derive(Clone)]
pub(super) struct Story {
    pub hosts: Vec<Host>,
    pub limits: Limits,
    pub commands: Vec<Command>,
}

/// A line for each host and each command.
impl fmt::Debug for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hosts.iter().try_for_each(|host| write!(f, "\n  {host:?}"))?;
        write!(f, "\n  {:?}", self.limits)?;
        self.commands.iter().try_for_each(|command| write!(f, "\n  {command:?}"))
    }
}

pub(super) fn story() -> impl Strategy<Value = Story> {
    let limits = (option::weighted(0.3, 1_u32..5), option::weighted(0.3, 1_u32..4));
    (collection::vec(host(), HOSTS), limits, collection::vec(command(), 1..100)).prop_map(
        |(hosts, (jobs, jobs_per_user), commands)| Story { hosts, limits: Limits { jobs, jobs_per_user }, commands },
    )
}

fn host() -> impl Strategy<Value = Host> {
    let gpus = collection::vec(sample::select(vec![24_u32, 80]), 0..4);
    let kind = prop_oneof![3 => Just(Kind::Persistent), 1 => Just(Kind::Ephemeral)];
    let how = (prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::bool::weighted(0.9));
    let host = |(gpus, max_jobs, kind, (local, older, comes))| Host { gpus, max_jobs, kind, local, older, comes };
    (gpus, 1_u32..4, kind, how).prop_map(host)
}

fn ask() -> impl Strategy<Value = Ask> {
    let wish = (option::weighted(0.4, 1_u32..3), option::weighted(0.2, sample::select(vec![20_u32, 60])), rack());
    let target = prop_oneof![8 => Just(Target::Auto), 1 => Just(Target::Worker), 1 => Just(Target::Local)];
    let who = (sample::select(vec!["ada", "bob"]), 9_u8..12);
    let tries = (0_u32..3, any::<bool>(), option::weighted(0.3, Just(40_i64)), any::<bool>());
    (wish, target, who, tries).prop_map(
        |((gpus, vram_gb, rack), target, (by, priority), (max_retries, retry_on_failure, max_runtime, exclusive))| {
            let rack = (rack == "b").then_some(rack);
            Ask { by, priority, gpus, vram_gb, rack, target, max_retries, retry_on_failure, max_runtime, exclusive }
        },
    )
}

fn rack() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("a"), 1 => Just("b")]
}

fn command() -> impl Strategy<Value = Command> {
    let (worker, job) = (0..HOSTS, 0..JOBS);
    let stream = (worker.clone(), 0_u8..2);
    let elsewhere = prop::bool::weighted(0.2);
    prop_oneof![
        5 => ask().prop_map(Command::Submit),
        2 => job.clone().prop_map(Command::Cancel),
        1 => job.clone().prop_map(Command::Retry),
        1 => (job.clone(), 9_u8..12).prop_map(|(job, priority)| Command::SetPriority(job, priority)),
        2 => (worker.clone(), option::of(sample::select(vec![0_i64, 40])))
            .prop_map(|(worker, seconds)| Command::Drain(worker, seconds)),
        1 => worker.clone().prop_map(Command::Resume),
        1 => (worker.clone(), rack()).prop_map(|(worker, rack)| Command::SetRack(worker, rack)),
        1 => worker.clone().prop_map(Command::Delete),
        3 => (worker.clone(), elsewhere, claims())
            .prop_map(|(worker, elsewhere, claims)| Command::Register { worker, elsewhere, claims }),
        3 => (worker.clone(), claims()).prop_map(|(worker, claims)| Command::Heartbeat { worker, claims }),
        3 => (worker.clone(), option::of(job)).prop_map(|(worker, runs)| Command::Word(worker, runs)),
        3 => (worker.clone(), 0_u8..16).prop_map(|(worker, withheld)| Command::Gpus(worker, withheld)),
        4 => stream.clone().prop_map(|(worker, stream)| Command::Listen(worker, stream)),
        1 => stream.prop_map(|(worker, stream)| Command::StreamEnded(worker, stream)),
        1 => worker.clone().prop_map(Command::Goodbye),
        16 => said(),
        4 => sample::select(vec![1_i64, 15, 40, 130, 2_000]).prop_map(Command::Pass),
        2 => Just(Command::SweepOffers),
        3 => worker.prop_map(Command::CheckHealth),
        1 => Just(Command::RestartServer),
    ]
}

fn claims() -> impl Strategy<Value = Claims> {
    prop_oneof![
        2 => Just(Claims::Nothing),
        3 => which().prop_map(Claims::All),
        1 => (0..JOBS, which()).prop_map(|(job, which)| Claims::One(job, which)),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![8 => Just(Which::Newest), 2 => Just(Which::Older), 1 => Just(Which::Newer), 2 => Just(Which::Unsaid)]
}

fn said() -> impl Strategy<Value = Command> {
    let by = prop_oneof![4 => Just(By::Holder), 1 => (0..HOSTS).prop_map(By::Worker)];
    let report = prop_oneof![
        3 => Just(Report::Starting),
        2 => Just(Report::Running),
        2 => Just(Report::Completed),
        1 => Just(Report::Failed { exit_code: Some(1), error: String::new() }),
        1 => Just(Report::Cancelled),
        2 => Just(Report::Requeue { error: String::new() }),
    ];
    (0..JOBS, by, which(), report).prop_map(|(job, by, attempt, report)| Command::Report { job, by, attempt, report })
}
