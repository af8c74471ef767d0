//! The words of what is done to several at once.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    /// Of lists in which rows are chosen.
    pub(crate) Picking {
        one: Phrase,
        all: Text,
        picked: Count,
        none: Text,
        delete: Text,
        cancel: Text,
    }
}

#[cfg(feature = "ssr")]
words! {
    /// Of the page that asks, and of what is said after it.
    pub(crate) Bulk {
        drain: Count,
        resume: Count,
        delete: Count,
        cancel: Count,
        retry: Count,
        drain_text: Text,
        delete_text: Text,
        cancel_text: Text,
        retry_text: Text,
        happens: Text,
        nothing: Text,
        nothing_text: Text,
        missing: Count,
        keep: Text,
        between: Text,
        takes_nothing: Text,
        finishes: Phrase,
        leaves: Text,
        finishes_and_leaves: Phrase,
        takes_nothing_later: Text,
        drains_already: Text,
        takes_again: Text,
        drains_not: Text,
        deleted: Text,
        deleted_with: Count,
        not_offline: Text,
        leaves_queue: Text,
        stops: Text,
        stops_already: Text,
        ended: Text,
        of_somebody_else: Phrase,
        submitted_again: Text,
        not_ended: Text,
        drained: Count,
        resumed: Count,
        gone: Count,
        cancelled: Count,
        retried: Count,
        nothing_done: Text,
        unchanged: Count,
        both: Phrase,
        refused: Phrase,
    }
}
