//! Commands of generated fleet tests, in a format that is short to read when a test fails.

use std::fmt;

use proptest::prelude::*;
use proptest::{collection, option, sample};

use super::job::{JobChange, job_change};
use crate::domain::ids::AttemptNumber;
use crate::domain::job::{AttemptReport, JobTarget};
use crate::domain::plan::ConcurrencyLimits;
use crate::domain::worker::WorkerKind;

/// Number of hosts; they are identified by index.
const HOSTS: usize = 3;
/// Number of jobs that commands refer to; later ones are only planned.
const JOBS: usize = 4;

#[derive(Debug, Clone)]
pub(super) struct HostSpec {
    /// Memory of each GPU in GB.
    pub gpus: Vec<u32>,
    pub max_jobs: u32,
    pub kind: WorkerKind,
    pub local: bool,
    /// Whether its agent is an older one, which needs no heartbeats while its stream is open.
    pub older: bool,
    /// Whether it has registered at the start of the test.
    pub registers_first: bool,
}

/// A submit.
#[derive(Debug, Clone)]
pub(super) struct JobRequest {
    pub by: &'static str,
    pub priority: u8,
    pub gpus: Option<u32>,
    pub vram_gb: Option<u32>,
    pub rack: Option<&'static str>,
    pub target: JobTarget,
    pub max_retries: u32,
    pub retry_on_failure: bool,
    /// Time limit of an attempt in seconds.
    pub max_runtime: Option<i64>,
    /// Whether two trainers of the job must never run at the same time.
    pub exclusive: bool,
}

/// The newest offer of a job: the worker and the attempt.
pub(super) type NewestAttempt = Option<(usize, AttemptNumber)>;

/// The attempt that a message refers to.
#[derive(Debug, Clone, Copy)]
pub(super) enum AttemptChoice {
    Newest,
    /// An older attempt, as from a zombie.
    Older,
    /// An attempt that was never offered.
    Newer,
    /// Older agents do not send it.
    Unspecified,
}

impl AttemptChoice {
    pub fn resolve(self, newest: NewestAttempt) -> Option<AttemptNumber> {
        let AttemptNumber(number) = newest.map(|(_, attempt)| attempt).unwrap_or_default();
        match self {
            Self::Newest => Some(AttemptNumber(number)),
            Self::Older => Some(AttemptNumber(number.saturating_sub(1))),
            Self::Newer => Some(AttemptNumber(number + 1)),
            Self::Unspecified => None,
        }
    }
}

/// The attempts that an agent claims to run.
#[derive(Debug, Clone)]
pub(super) enum ClaimedAttempts {
    Nothing,
    /// All attempts that it was last offered, whatever their outcome.
    All(AttemptChoice),
    One(usize, AttemptChoice),
}

impl ClaimedAttempts {
    /// Returns jobs and attempts.
    pub fn resolve(&self, worker: usize, newest: &[NewestAttempt]) -> Vec<(usize, Option<AttemptNumber>)> {
        let is_assigned = |job: &usize| newest[*job].is_some_and(|(to, _)| to == worker);
        match *self {
            Self::Nothing => Vec::new(),
            Self::All(choice) => {
                (0..newest.len()).filter(is_assigned).map(|job| (job, choice.resolve(newest[job]))).collect()
            }
            Self::One(job, choice) => vec![(job, choice.resolve(newest.get(job).copied().flatten()))],
        }
    }
}

/// The sender of a report.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reporter {
    /// The worker of the newest attempt, with the job token, which outlives the worker.
    Holder,
    /// A worker, with its own token.
    Worker(usize),
}

#[derive(Debug, Clone)]
pub(super) enum FleetCommand {
    Submit(JobRequest),
    ChangeJob(usize, JobChange),
    Retry(usize),
    /// With a deadline in seconds.
    Drain(usize, Option<i64>),
    Resume(usize),
    SetRack(usize, &'static str),
    Delete(usize),
    /// From the first host, or from another one with the same token.
    Register {
        worker: usize,
        elsewhere: bool,
        claims: ClaimedAttempts,
    },
    Heartbeat {
        worker: usize,
        claims: ClaimedAttempts,
    },
    /// An older agent's heartbeat: the job that it runs, if any.
    OlderAgentClaim(usize, Option<usize>),
    /// A heartbeat that reports some of the worker's GPUs as unavailable: one bit for each.
    GpusReported(usize, u8),
    /// The stream with this number was opened.
    StreamOpened(usize, u8),
    StreamEnded(usize, u8),
    Disconnect(usize),
    Report {
        job: usize,
        by: Reporter,
        attempt: AttemptChoice,
        report: AttemptReport,
    },
    /// In seconds.
    TimePassed(i64),
    SweepOffers,
    CheckHealth(usize),
    RestartServer,
}

/// A fleet, its limits, and a sequence of commands.
#[derive(Clone)]
pub(super) struct Scenario {
    pub hosts: Vec<HostSpec>,
    pub limits: ConcurrencyLimits,
    pub commands: Vec<FleetCommand>,
}

/// One line for each host and each command.
impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hosts.iter().try_for_each(|host| write!(f, "\n  {host:?}"))?;
        write!(f, "\n  {:?}", self.limits)?;
        self.commands.iter().try_for_each(|command| write!(f, "\n  {command:?}"))
    }
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    let limits = (option::weighted(0.3, 1_u32..5), option::weighted(0.3, 1_u32..4));
    (collection::vec(host(), HOSTS), limits, collection::vec(command(), 1..100)).prop_map(
        |(hosts, (jobs, jobs_per_user), commands)| Scenario {
            hosts,
            limits: ConcurrencyLimits { jobs, jobs_per_user },
            commands,
        },
    )
}

fn host() -> impl Strategy<Value = HostSpec> {
    let gpus = collection::vec(sample::select(vec![24_u32, 80]), 0..4);
    let kind = prop_oneof![3 => Just(WorkerKind::Persistent), 1 => Just(WorkerKind::Ephemeral)];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.2), prop::bool::weighted(0.9));
    let host = |(gpus, max_jobs, kind, (local, older, registers_first))| HostSpec {
        gpus,
        max_jobs,
        kind,
        local,
        older,
        registers_first,
    };
    (gpus, 1_u32..4, kind, flags).prop_map(host)
}

fn job_request() -> impl Strategy<Value = JobRequest> {
    let resources = (option::weighted(0.4, 1_u32..3), option::weighted(0.2, sample::select(vec![20_u32, 60])), rack());
    let target = prop_oneof![8 => Just(JobTarget::Auto), 1 => Just(JobTarget::Worker), 1 => Just(JobTarget::Local)];
    let owner = (sample::select(vec!["ada", "bob"]), 9_u8..12);
    let retries = (0_u32..3, any::<bool>(), option::weighted(0.3, Just(40_i64)), any::<bool>());
    (resources, target, owner, retries).prop_map(
        |((gpus, vram_gb, rack), target, (by, priority), (max_retries, retry_on_failure, max_runtime, exclusive))| {
            let rack = (rack == "b").then_some(rack);
            JobRequest {
                by,
                priority,
                gpus,
                vram_gb,
                rack,
                target,
                max_retries,
                retry_on_failure,
                max_runtime,
                exclusive,
            }
        },
    )
}

fn rack() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("a"), 1 => Just("b")]
}

fn command() -> impl Strategy<Value = FleetCommand> {
    let (worker, job) = (0..HOSTS, 0..JOBS);
    let stream = (worker.clone(), 0_u8..2);
    let elsewhere = prop::bool::weighted(0.2);
    prop_oneof![
        5 => job_request().prop_map(FleetCommand::Submit),
        3 => (job.clone(), job_change()).prop_map(|(job, change)| FleetCommand::ChangeJob(job, change)),
        1 => job.clone().prop_map(FleetCommand::Retry),
        2 => (worker.clone(), option::of(sample::select(vec![0_i64, 40])))
            .prop_map(|(worker, seconds)| FleetCommand::Drain(worker, seconds)),
        1 => worker.clone().prop_map(FleetCommand::Resume),
        1 => (worker.clone(), rack()).prop_map(|(worker, rack)| FleetCommand::SetRack(worker, rack)),
        1 => worker.clone().prop_map(FleetCommand::Delete),
        3 => (worker.clone(), elsewhere, claims())
            .prop_map(|(worker, elsewhere, claims)| FleetCommand::Register { worker, elsewhere, claims }),
        3 => (worker.clone(), claims()).prop_map(|(worker, claims)| FleetCommand::Heartbeat { worker, claims }),
        3 => (worker.clone(), option::of(job)).prop_map(|(worker, runs)| FleetCommand::OlderAgentClaim(worker, runs)),
        3 => (worker.clone(), 0_u8..16).prop_map(|(worker, unavailable)| FleetCommand::GpusReported(worker, unavailable)),
        4 => stream.clone().prop_map(|(worker, stream)| FleetCommand::StreamOpened(worker, stream)),
        1 => stream.prop_map(|(worker, stream)| FleetCommand::StreamEnded(worker, stream)),
        1 => worker.clone().prop_map(FleetCommand::Disconnect),
        16 => report_command(),
        4 => sample::select(vec![1_i64, 15, 40, 130, 2_000]).prop_map(FleetCommand::TimePassed),
        2 => Just(FleetCommand::SweepOffers),
        3 => worker.prop_map(FleetCommand::CheckHealth),
        1 => Just(FleetCommand::RestartServer),
    ]
}

fn claims() -> impl Strategy<Value = ClaimedAttempts> {
    prop_oneof![
        2 => Just(ClaimedAttempts::Nothing),
        3 => attempt_choice().prop_map(ClaimedAttempts::All),
        1 => (0..JOBS, attempt_choice()).prop_map(|(job, choice)| ClaimedAttempts::One(job, choice)),
    ]
}

fn attempt_choice() -> impl Strategy<Value = AttemptChoice> {
    prop_oneof![8 => Just(AttemptChoice::Newest), 2 => Just(AttemptChoice::Older), 1 => Just(AttemptChoice::Newer), 2 => Just(AttemptChoice::Unspecified)]
}

fn report_command() -> impl Strategy<Value = FleetCommand> {
    let by = prop_oneof![4 => Just(Reporter::Holder), 1 => (0..HOSTS).prop_map(Reporter::Worker)];
    let report = prop_oneof![
        3 => Just(AttemptReport::Starting),
        2 => Just(AttemptReport::Running),
        2 => Just(AttemptReport::Completed),
        1 => Just(AttemptReport::Failed { exit_code: Some(1), error: String::new() }),
        1 => Just(AttemptReport::Cancelled),
        2 => Just(AttemptReport::Requeue { error: String::new() }),
        1 => Just(AttemptReport::HostUnhealthy { error: String::new() }),
    ];
    (0..JOBS, by, attempt_choice(), report).prop_map(|(job, by, attempt, report)| FleetCommand::Report {
        job,
        by,
        attempt,
        report,
    })
}
