//! The words of the plain pages of a job.

use crate::ui::locales::sentence::{Phrase, Text, words};

words! {
    /// The plain pages of a job.
    pub(crate) JobPages {
        events_hint: Text,
        no_events_hint: Text,
        details: Text,
        submitted: Phrase,
        resubmitted: Phrase,
        prioritised: Phrase,
        offered: Phrase,
        offer_expired: Phrase,
        starting: Phrase,
        running: Phrase,
        kept_back: Phrase,
        requeued: Phrase,
        cancelling: Phrase,
        cancelled: Text,
        completed: Phrase,
        failed: Phrase,
        secrets_given: Phrase,
        by_worker: Phrase,
        by_server: Text,
        all_revisions: Text,
        stored: Text,
        in_short: Text,
        cancel_title: Phrase,
    }
}
