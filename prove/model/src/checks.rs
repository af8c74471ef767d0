//! The checks, each focused on a few faults so that it is exhaustive within its bounds.

use crate::config::{Budget, Config, HostShape, JobShape};
use crate::properties::Reached;

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
    moves: 0,
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

/// Two hosts, of which the second is always in contact.
const BASE: Config = Config {
    name: "",
    hosts: &[HOST, HOST],
    workers: 2,
    jobs: &[JOB],
    servers: 1,
    budget: NONE,
    max_attempt: 2,
    progress: false,
    steady_hosts: &[1],
    slow_loops: false,
    prompt: false,
    settles: true,
    reaches: &[],
};

const ONE_HOST: Config = Config { hosts: &[HOST], workers: 1, steady_hosts: &[], ..BASE };

/// Both hosts lose contact at any time. Three attempts, because an offer expires before its worker counts as silent.
pub fn exclusive() -> Config {
    let reaches = &[Reached::Fenced, Reached::FencedByLease, Reached::Recovered, Reached::Superseded];
    let (jobs, steady_hosts) = (&[EXCLUSIVE], &[]);
    Config { name: "exclusive", jobs, max_attempt: 3, steady_hosts, progress: true, settles: false, reaches, ..BASE }
}

pub fn exclusive_messages() -> Config {
    let budget = Budget { messages: 1, ..NONE };
    let reaches = &[Reached::Fenced, Reached::FencedByLease];
    Config { name: "exclusive, messages", jobs: &[EXCLUSIVE], progress: true, budget, reaches, ..BASE }
}

/// A user cancels a job and retries it while its trainer may still run.
pub fn exclusive_retry() -> Config {
    let budget = Budget { cancels: 1, ..NONE };
    let reaches = &[Reached::Fenced, Reached::Retried, Reached::Cancelled];
    let jobs = &[EXCLUSIVE, RETRY];
    Config { name: "exclusive, retry", jobs, progress: true, budget, max_attempt: 1, settles: false, reaches, ..BASE }
}

/// A second host gets the token of the first, whose trainer may still run.
pub fn moved() -> Config {
    let budget = Budget { moves: 1, agent_stops: 1, ..NONE };
    let reaches = &[Reached::Fenced, Reached::FencedByLease];
    let (jobs, steady_hosts) = (&[EXCLUSIVE], &[]);
    Config { name: "moved", workers: 1, steady_hosts, jobs, budget, settles: false, reaches, ..BASE }
}

pub fn messages() -> Config {
    let reaches = &[Reached::Completed, Reached::Lost, Reached::Offline];
    Config { name: "messages", budget: Budget { messages: 1, ..NONE }, reaches, ..BASE }
}

pub fn two_jobs() -> Config {
    let budget = Budget { messages: 1, ..NONE };
    let reaches = &[Reached::Completed, Reached::Failed, Reached::Recovered, Reached::Superseded];
    Config { name: "two jobs", hosts: &[SLOTS], jobs: &[JOB, JOB], budget, reaches, ..ONE_HOST }
}

/// A report of an attempt arrives when its host has lost its disk, and its GPU is given to another job.
pub fn late_report() -> Config {
    let budget = Budget { messages: 1, disk_losses: 1, ..NONE };
    Config { name: "late report", hosts: &[SLOTS], jobs: &[JOB, JOB], budget, settles: false, ..ONE_HOST }
}

/// A claim of an attempt arrives after the report of its end, which was sent later.
pub fn late_claim() -> Config {
    let jobs = &[JobShape { retry_on_failure: true, ..JOB }];
    let budget = Budget { messages: 1, failures: 1, ..NONE };
    Config { name: "late claim", jobs, budget, reaches: &[Reached::Completed, Reached::Lost], ..ONE_HOST }
}

/// Agents and the server restart while agents reach the server in time: that costs no attempt (I5).
pub fn restarts() -> Config {
    let budget = Budget { agent_kills: 2, server_kills: 1, ..NONE };
    let reaches = &[Reached::Adopted, Reached::Completed];
    Config { name: "restarts", budget, prompt: true, settles: false, reaches, ..ONE_HOST }
}

fn restarts_exclusive() -> Config {
    Config { name: "restarts, exclusive", jobs: &[EXCLUSIVE], ..restarts() }
}

pub fn two_servers() -> Config {
    let budget = Budget { server_kills: 1, leader_changes: 1, ..NONE };
    let reaches = &[Reached::LeaderChanged, Reached::Recovered];
    Config { name: "two servers", servers: 2, budget, reaches, ..ONE_HOST }
}

/// One server answers from older state.
fn old_reads() -> Config {
    let budget = Budget { old_reads: 1, cancels: 1, ..NONE };
    let reaches = &[Reached::Cancelled, Reached::FencedByLease];
    Config { name: "old reads", servers: 2, jobs: &[EXCLUSIVE], budget, progress: true, reaches, ..ONE_HOST }
}

pub fn tokens() -> Config {
    let budget = Budget { rotations: 1, deletions: 1, ..NONE };
    let reaches = &[Reached::TokenRejected, Reached::Deleted];
    Config { name: "tokens", budget, reaches, ..ONE_HOST }
}

pub fn drains() -> Config {
    let budget = Budget { drains: 1, cancels: 1, ..NONE };
    let reaches = &[Reached::Draining, Reached::Cancelled];
    Config { name: "drains", budget, reaches, ..BASE }
}

pub fn crashes() -> Config {
    let budget = Budget { host_crashes: 1, disk_losses: 1, failures: 1, ..NONE };
    let reaches = &[Reached::Orphaned, Reached::Failed];
    Config { name: "crashes", budget, reaches, ..BASE }
}

pub fn submits() -> Config {
    let budget = Budget { server_kills: 1, ..NONE };
    Config { name: "submits", jobs: &[LATER], budget, reaches: &[Reached::Completed], ..ONE_HOST }
}

/// Checks that take a few minutes together.
pub fn checks() -> Vec<Config> {
    vec![
        exclusive(),
        exclusive_messages(),
        exclusive_retry(),
        moved(),
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
        late_claim(),
    ]
}

/// The same with larger bounds.
pub fn nightly_checks() -> Vec<Config> {
    let two_messages = Budget { messages: 2, ..NONE };
    let with_message = |config: Config| Config { budget: Budget { messages: 1, ..config.budget }, ..config };
    let larger = vec![
        Config { name: "exclusive, slow loops", slow_loops: true, ..exclusive() },
        Config { name: "exclusive, 2 messages", budget: two_messages, ..exclusive_messages() },
        Config { name: "2 messages", budget: two_messages, ..messages() },
        Config { name: "moved, kills", budget: Budget { moves: 1, agent_kills: 1, ..NONE }, ..moved() },
        Config { name: "moved, messages", ..with_message(moved()) },
        Config { name: "drains, messages", ..with_message(drains()) },
        // Without the loss of a disk: a new installation is in "moved, messages".
        Config {
            name: "crashes, messages",
            budget: Budget { messages: 1, host_crashes: 1, ..NONE },
            reaches: &[],
            ..crashes()
        },
        Config { name: "tokens, messages", ..with_message(tokens()) },
        Config { name: "tokens, exclusive", jobs: &[EXCLUSIVE], ..tokens() },
        Config { name: "restarts, two hosts", hosts: &[HOST, HOST], workers: 2, ..restarts() },
        Config {
            name: "two servers, two hosts",
            hosts: &[HOST, HOST],
            workers: 2,
            steady_hosts: &[1],
            ..two_servers()
        },
        Config { name: "three jobs", hosts: &[SLOTS], jobs: &[JOB, JOB, JOB], settles: false, ..ONE_HOST },
        late_report(),
    ];
    checks().into_iter().chain(larger).collect()
}
