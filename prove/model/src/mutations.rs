//! Removed guards: for each, the check that must fail, and the property by which.

use crate::checks::{
    crashes, drains, exclusive, exclusive_messages, exclusive_retry, late_claim, late_report, messages, moved,
    restarts, submits, tokens, two_jobs, two_servers,
};
use crate::config::{Config, Mutation};
use crate::properties::SETTLES;

/// A mutation, the check, and the beginning of the property's name.
pub type MutationCheck = (Mutation, Config, &'static str);

const ONE_TRAINER: &str = "I1 an exclusive job has one trainer";

/// Returns all mutations.
pub fn mutation_checks() -> Vec<MutationCheck> {
    vec![
        (Mutation::NoFencingDelay, moved(), ONE_TRAINER),
        (Mutation::FencingDelayNotRenewed, exclusive(), ONE_TRAINER),
        (Mutation::RetryIgnoresFencingDelay, exclusive_retry(), ONE_TRAINER),
        (Mutation::LeaseIgnored, exclusive_messages(), ONE_TRAINER),
        (Mutation::StartBeforeAcceptance, exclusive_messages(), ONE_TRAINER),
        (Mutation::AttemptsNotAbandoned, moved(), ONE_TRAINER),
        (Mutation::AttemptNumberRepeated, messages(), "I1 attempt numbers only increase"),
        (Mutation::EndedJobCancelled, drains(), "I2 a terminal state never changes"),
        (Mutation::AcknowledgedBeforeCommit, submits(), "I2 an acknowledged submit is not lost"),
        (Mutation::RecoveredWithoutResources, late_report(), "I3 a GPU is allocated once"),
        (Mutation::GpuSharedOnHost, two_jobs(), "I3 a GPU is used once"),
        (Mutation::RecoveredAfterEnd, late_claim(), SETTLES),
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
