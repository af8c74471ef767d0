//! The words around workers' tokens.

use super::Text;

pub(crate) struct WorkerToken {
    pub conflict: Text,
    pub conflict_hint: fn(&str) -> String,
    pub conflict_settle: Text,
    pub conflict_settled: Text,
    pub access: Text,
    pub token_ends: Text,
    pub token_never_ends: Text,
    pub token_ends_at: Text,
    pub token_has_ended: Text,
    pub old_token_ends: Text,
    pub networks: Text,
    pub any_network: Text,
    pub days: Text,
    pub days_hint: Text,
    pub rotate: Text,
    pub rotate_hint: Text,
    pub overlap: Text,
    pub overlap_hint: Text,
    pub overlap_none: Text,
    pub overlap_hour: Text,
    pub overlap_day: Text,
    pub overlap_week: Text,
}
