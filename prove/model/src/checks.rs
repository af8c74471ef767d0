//! The checks, each focused on a few faults so that it is exhaustive within its bounds, and the mutations.

use crate::config::{Budget, Config, HostShape, JobShape, Mutation};
use crate::properties::{Reached, SETTLES};

/// A mutation, the check that must find it, and the beginning of the property that must fail.
pub type MutationCheck = (Mutation, Config, &'static str);

const HOST: HostShape = HostShape { gpus: 1, max_jobs: 1 };
/// Two slots for one GPU: only the GPU limits the jobs.
const SLOTS: HostShape = HostShape { gpus: 1, max_jobs: 2 };
const JOB: JobShape = JobShape {
    exclusive: false,
    gpus: Some(1),
    max_retries: 1,
    retry_on_failure: false,
    retry_of: None,
    submitted: true,
};
const EXCLUSIVE: JobShape = JobShape { exclusive: true, ..JOB };
const RETRY: JobShape = JobShape { retry_of: Some(0), submitted: false, ..EXCLUSIVE };
const LATER: JobShape = JobShape { submitted: false, ..JOB };
const NONE: Budget = Budget {
    messages: 0,
    agent_kills: 0,
    agent_stops: 0,
    host_crashes: 0,
    disk_losses: 0,
    server_kills: 0,
    leader_changes: 0,
    old_reads: 0,
    failures: 0,
    cancels: 0,
    drains: 0,
    rotations: 0,
    deletions: 0,
};

const BASE: Config = Config {
    name: "",
    hosts: &[HOST, HOST],
    jobs: &[JOB],
    servers: 1,
    budget: NONE,
    max_attempt: 2,
    progress: false,
    steady_hosts: &[],
    ended_stays_ended: true,
    slow_loops: false,
    prompt: false,
    settles: false,
    reaches: &[],
};

/// The trainer of an exclusive job never runs twice.
fn exclusive() -> Config {
    let reaches = &[Reached::Fenced, Reached::FencedByLease, Reached::Recovered, Reached::Superseded];
    Config { name: "exclusive", max_attempt: 3, jobs: &[EXCLUSIVE], progress: true, reaches, ..BASE }
}

fn exclusive_messages() -> Config {
    Config { max_attempt: 2, name: "exclusive, messages", settles: true, steady_hosts: &[1], budget: Budget { messages: 1, ..NONE }, ..exclusive() }
}

fn exclusive_retry() -> Config {
    let budget = Budget { cancels: 1, ..NONE };
    let reaches = &[Reached::Fenced, Reached::Retried, Reached::Cancelled];
    Config { name: "exclusive, retry", steady_hosts: &[1], jobs: &[EXCLUSIVE, RETRY], budget, max_attempt: 1, reaches, ..exclusive() }
}

fn messages() -> Config {
    Config { name: "messages", steady_hosts: &[1], budget: Budget { messages: 1, ..NONE }, settles: true, ..BASE }
}

fn two_jobs() -> Config {
    Config { name: "two jobs", hosts: &[SLOTS], jobs: &[JOB, JOB], budget: Budget { messages: 1, ..NONE }, settles: true, ..BASE }
}

fn restarts() -> Config {
    let budget = Budget { agent_kills: 2, server_kills: 1, ..NONE };
    let reaches = &[Reached::Adopted, Reached::Completed];
    Config { name: "restarts", hosts: &[HOST], budget, prompt: true, reaches, ..BASE }
}

fn restarts_exclusive() -> Config {
    Config { name: "restarts, exclusive", jobs: &[EXCLUSIVE], ..restarts() }
}

/// A report of an attempt arrives when its host has lost its disk, and its GPU is given to another job.
fn late_report() -> Config {
    let budget = Budget { messages: 1, disk_losses: 1, ..NONE };
    Config { name: "late report", hosts: &[SLOTS], jobs: &[JOB, JOB], budget, ..BASE }
}

/// A claim is sent before the report that the attempt has ended, and processed after it.
fn late_claim() -> Config {
    let jobs = &[JobShape { retry_on_failure: true, ..JOB }];
    let budget = Budget { messages: 1, failures: 1, ..NONE };
    let hosts = &[HOST];
    Config { name: "late claim", hosts, jobs, budget, settles: true, ended_stays_ended: false, ..BASE }
}

fn two_servers() -> Config {
    let budget = Budget { server_kills: 1, leader_changes: 1, ..NONE };
    Config { name: "two servers", hosts: &[HOST], servers: 2, budget, settles: true, reaches: &[Reached::LeaderChanged], ..BASE }
}

fn old_reads() -> Config {
    let budget = Budget { old_reads: 1, cancels: 1, ..NONE };
    let hosts = &[HOST];
    Config { name: "old reads", hosts, servers: 2, jobs: &[EXCLUSIVE], budget, progress: true, settles: true, ..BASE }
}

fn tokens() -> Config {
    let budget = Budget { rotations: 1, deletions: 1, ..NONE };
    let reaches = &[Reached::TokenRejected, Reached::Deleted];
    Config { name: "tokens", hosts: &[HOST], budget, reaches, settles: true, ..BASE }
}

fn drains() -> Config {
    let budget = Budget { drains: 1, cancels: 1, ..NONE };
    Config { name: "drains", steady_hosts: &[1], budget, settles: true, reaches: &[Reached::Draining, Reached::Cancelled], ..BASE }
}

fn crashes() -> Config {
    let budget = Budget { host_crashes: 1, disk_losses: 1, failures: 1, ..NONE };
    Config { name: "crashes", steady_hosts: &[1], budget, settles: true, reaches: &[Reached::Orphaned, Reached::Failed], ..BASE }
}

fn submits() -> Config {
    Config { name: "submits", hosts: &[HOST], jobs: &[LATER], budget: Budget { server_kills: 1, ..NONE }, settles: true, ..BASE }
}

/// Checks that take a few minutes together.
pub fn checks() -> Vec<Config> {
    vec![
        exclusive(),
        exclusive_messages(),
        exclusive_retry(),
        messages(),
        two_jobs(),
        restarts(),
        restarts_exclusive(),
        two_servers(),
        old_reads(),
        tokens(),
        drains(),
        crashes(),
        submits(),
        late_report(),
        late_claim(),
    ]
}

/// Larger bounds.
pub fn nightly_checks() -> Vec<Config> {
    vec![]
}

/// Removed guards.
pub fn mutation_checks() -> Vec<MutationCheck> {
    const ONE_TRAINER: &str = "I1 an exclusive job has one trainer";
    let exclusive = || Config { steady_hosts: &[1], ..exclusive() };
    vec![
        (Mutation::NoFencingDelay, exclusive_retry(), ONE_TRAINER),
        (Mutation::FencingDelayNotRenewed, exclusive_retry(), ONE_TRAINER),
        (Mutation::RetryIgnoresFencingDelay, exclusive_retry(), ONE_TRAINER),
        (Mutation::LeaseIgnored, exclusive(), ONE_TRAINER),
        (Mutation::StartBeforeAcceptance, exclusive_messages(), ONE_TRAINER),
        (Mutation::AttemptNumberRepeated, messages(), "I1 attempt numbers only increase"),
        (Mutation::EndedJobCancelled, drains(), "I2 a terminal state never changes"),
        (Mutation::AcknowledgedBeforeCommit, submits(), "I2 an acknowledged submit is not lost"),
        (Mutation::RecoveredWithoutResources, late_report(), "I3 a GPU is allocated once"),
        (Mutation::GpuSharedOnHost, two_jobs(), "I3 a GPU is used once"),
        (Mutation::SilenceNotJudged, crashes(), SETTLES),
        (Mutation::NotPlanned, crashes(), SETTLES),
        (Mutation::OfferLost, messages(), SETTLES),
        (Mutation::NotAdopted, restarts(), "I5"),
        (Mutation::SupervisorEndsWithAgent, restarts(), "I5"),
        (Mutation::DrainEndedByRegistration, drains(), "I7"),
        (Mutation::OldTokenAccepted, tokens(), "I8"),
        (Mutation::SilenceWithoutListening, restarts(), "I10"),
        (Mutation::JudgedWithoutLeading, two_servers(), "I10"),
        (Mutation::OldReportsAccepted, Config { settles: false, ..messages() }, "I11"),
        (Mutation::ReportedBeforeEnd, drains(), "I11"),
        (Mutation::OrphansNotKilled, crashes(), "I11"),
    ]
}
