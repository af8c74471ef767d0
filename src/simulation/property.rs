//! What must hold: the invariants of ARCHITECTURE.md as users and hosts see them.

use super::trace;

/// A property, by its name in docs/PROOF.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property(pub &'static str);

pub const ONE_EXCLUSIVE_TRAINER: Property = Property("I1 an exclusive job has one trainer");
pub const ONCE_PER_HOST: Property = Property("I1 a host runs a job once");
pub const ATTEMPTS_INCREASE: Property = Property("I1 attempt numbers only increase");
pub const TERMINAL_IS_FINAL: Property = Property("I2 a terminal state never changes");
pub const SUBMIT_IS_KEPT: Property = Property("I2 an acknowledged submit is not lost");
pub const SUBMIT_COUNTS_ONCE: Property = Property("I2 a submit creates one job");
pub const TRAINER_COMPLETES: Property = Property("I2 only its trainer completes a job");
pub const ONE_JOB_PER_GPU: Property = Property("I3 a GPU is used once");
pub const JOBS_END: Property = Property("I4 every job ends");
pub const RESTART_IS_FREE: Property = Property("I5 a restart of the server costs no attempt");
pub const LOG_IS_COMPLETE: Property = Property("I6 a log is what the trainer wrote");
pub const DRAIN_LASTS: Property = Property("I7 only a user ends a drain");
pub const AUDIT_IS_INTACT: Property = Property("I9 the audit log is intact");
pub const CLOCK_IS_FREE: Property = Property("I10 a clock that is set costs no attempt");

impl Property {
    /// Ends the simulation, because this does not hold.
    pub fn violated(self, details: &str) -> ! {
        trace::record(format_args!("VIOLATED: {}: {details}", self.0));
        eprintln!("{}: {details}", self.0);
        std::process::exit(1);
    }
}

/// Ends the simulation, because it cannot continue.
pub fn stop(problem: &str) -> ! {
    Property("the simulation fails").violated(problem)
}
