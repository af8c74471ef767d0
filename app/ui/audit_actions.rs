//! Sentences for the actions and faults of the audit log. `src/server/http/ui/audit_words.rs` checks at compile time
//! that every code of the domain has one.

use super::i18n::t;
#[cfg(feature = "ssr")]
use super::locales::words::{OverviewActions, ServerPagesAuditFaults};

/// Codes of the actions that have a sentence.
#[cfg(feature = "ssr")]
pub const ACTIONS: &[&str] = &OverviewActions::WORDS;

/// Codes of the faults that have a sentence.
#[cfg(feature = "ssr")]
pub const FAULTS: &[&str] = &ServerPagesAuditFaults::WORDS;

/// Returns an action's sentence in the user's language.
pub(crate) fn action_sentence(action: &str) -> Option<&'static str> {
    t().overview.actions.of(action)
}

/// Returns all actions with their sentences in the user's language.
#[cfg(feature = "ssr")]
pub(crate) fn action_sentences() -> impl Iterator<Item = (&'static str, &'static str)> {
    OverviewActions::WORDS.into_iter().zip(t().overview.actions.0)
}
