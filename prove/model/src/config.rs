//! Bounds of a check: the fleet, and how often each fault and each command may occur.

use crate::properties::Reached;

/// What a job requires.
#[derive(Debug, Clone, Copy)]
pub struct JobShape {
    pub exclusive: bool,
    pub gpus: Option<u32>,
    pub max_retries: u32,
    pub retry_on_failure: bool,
    /// The job that this one retries, when it has ended.
    pub retry_of: Option<u8>,
    /// Whether it is submitted at the start.
    pub submitted: bool,
}

/// What a host offers.
#[derive(Debug, Clone, Copy)]
pub struct HostShape {
    pub gpus: u8,
    pub max_jobs: u32,
}

/// How many times something may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// A message is lost, late, or doubled, or a stream breaks.
    pub messages: u8,
    /// An agent is killed; its supervisors and trainers continue.
    pub agent_kills: u8,
    /// An agent stops and reports it; its supervisors and trainers continue.
    pub agent_stops: u8,
    /// A worker's token is used on another host.
    pub moves: u8,
    /// An agent is killed with its supervisors, or its host is restarted.
    pub host_crashes: u8,
    /// A host loses its attempts in a restart. Its installation stays; losing that too is like a move.
    pub disk_losses: u8,
    /// A server is killed.
    pub server_kills: u8,
    /// The leading server loses its term but continues to serve.
    pub leader_changes: u8,
    /// A server reads state that is up to a second old.
    pub old_reads: u8,
    /// A trainer fails.
    pub failures: u8,
    /// A user cancels a job.
    pub cancels: u8,
    /// A user drains a worker.
    pub drains: u8,
    /// A user rotates a token.
    pub rotations: u8,
    /// A user deletes a worker.
    pub deletions: u8,
}

/// One check.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each switches one thing on or off")]
pub struct Config {
    pub name: &'static str,
    pub hosts: &'static [HostShape],
    /// The number of workers; further hosts have the token of the first.
    pub workers: usize,
    pub jobs: &'static [JobShape],
    pub servers: u8,
    pub budget: Budget,
    /// States with a higher number of an attempt are not followed.
    pub max_attempt: u8,
    /// Whether agents report progress.
    pub progress: bool,
    /// Hosts that are always in contact while a server runs.
    pub steady_hosts: &'static [usize],
    /// Whether the loops of servers may be late.
    pub slow_loops: bool,
    /// Whether time passes only while agents reach a server in time; then restarts must not cost an attempt (I5).
    pub prompt: bool,
    /// Whether every state is followed to its end without further faults (I4).
    pub settles: bool,
    /// States that it must reach, or it would prove little.
    pub reaches: &'static [Reached],
}

impl Config {
    /// Returns the bounds in words.
    pub fn bounds(&self) -> String {
        let Self { hosts, workers, jobs, servers, budget, max_attempt, .. } = self;
        let faults = format!("{budget:?}");
        let faults = faults.trim_start_matches("Budget { ").trim_end_matches(" }");
        let faults: Vec<&str> = faults.split(", ").filter(|fault| !fault.ends_with(": 0")).collect();
        let faults = if faults.is_empty() { "no faults but silence".to_owned() } else { faults.join(", ") };
        let (hosts, jobs) = (hosts.len(), jobs.len());
        format!(
            "servers: {servers}, workers: {workers}, hosts: {hosts}, jobs: {jobs}, attempts: {max_attempt}; {faults}"
        )
    }
}

/// A guard that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The next attempt of an exclusive job is not delayed.
    NoFencingDelay,
    /// Responses to a lost attempt do not extend the delay.
    FencingDelayNotRenewed,
    /// A retry by a user does not wait for the old attempt.
    RetryIgnoresFencingDelay,
    /// The supervisor does not stop the trainer when its lease ends.
    LeaseIgnored,
    /// The trainer starts before the offer is accepted.
    StartBeforeAcceptance,
    /// A report is applied to the newest attempt, whatever attempt it is about.
    OldReportsAccepted,
    /// A new attempt gets the number of the one before.
    AttemptNumberRepeated,
    /// A user can cancel a job that has ended.
    EndedJobCancelled,
    /// A submit is acknowledged before it is stored.
    AcknowledgedBeforeCommit,
    /// A lost attempt is recovered although its GPU was given to another job.
    RecoveredWithoutResources,
    /// A claim recovers an attempt whose end was reported.
    RecoveredAfterEnd,
    /// What a worker's former installation has received or run stays assigned to it.
    AttemptsNotAbandoned,
    /// The agent starts an offer while its GPU is still in use.
    GpuSharedOnHost,
    /// Silent workers are never marked offline.
    SilenceNotJudged,
    /// No planning after the pass over offers.
    NotPlanned,
    /// Offers never expire, and are not sent again.
    OfferLost,
    /// A restarted agent does not adopt attempts.
    NotAdopted,
    /// The supervisor ends with its agent.
    SupervisorEndsWithAgent,
    /// A registration ends a drain.
    DrainEndedByRegistration,
    /// A rotated token stays valid.
    OldTokenAccepted,
    /// Silence counts although the server was not listening.
    SilenceWithoutListening,
    /// Silence is judged by a server that is not the leader.
    JudgedWithoutLeading,
    /// The end is reported before the trainer has stopped.
    ReportedBeforeEnd,
    /// The processes of a killed supervisor are not killed.
    OrphansNotKilled,
}
