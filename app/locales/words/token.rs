//! The words of workers’ tokens.

use crate::ui::locales::sentence::{Phrase, Text, words};

words! {
    pub(crate) WorkerToken {
        conflict: Text,
        conflict_hint: Text,
        conflict_hint_on: Phrase,
        conflict_settle: Text,
        conflict_settled: Text,
        access: Text,
        token_made: Text,
        token_used: Text,
        token_ends: Text,
        token_never_ends: Text,
        token_ends_unused: Phrase,
        token_ends_at: Text,
        token_has_ended: Text,
        old_token_ends: Text,
        networks: Text,
        any_network: Text,
        days: Text,
        days_hint: Text,
        rotate: Text,
        rotate_hint: Text,
        overlap: Text,
        overlap_hint: Text,
        overlap_none: Text,
        overlap_hour: Text,
        overlap_day: Text,
        overlap_week: Text,
    }
}
