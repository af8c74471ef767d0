//! The words of the plain pages of a worker.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    /// The plain pages of a worker.
    pub(crate) WorkerPages {
        newest_first: Text,
        attempts: Text,
        of_late: Count,
        success: Text,
        ended_so: Phrase,
        fast_failures: Text,
        fast_failures_hint: Text,
        no_attempts: Text,
        no_attempts_hint: Text,
        no_events: Text,
        no_events_hint: Text,
        said_goodbye: Text,
        fell_silent: Text,
        server_gone: Text,
        until: Phrase,
        withheld: Phrase,
        given_back: Phrase,
        fit_again: Text,
        from_host: Phrase,
        edit_title: Phrase,
        reported: Text,
        reported_hint: Text,
        none_reported: Text,
        overridden: Phrase,
        not_counted: Text,
        ignore: Text,
        ignore_hint: Text,
        older: Text,
        older_hint: Text,
        older_agents: Text,
        older_refused: Text,
        ignored_everywhere: Text,
        overtaken: Text,
        stored: Text,
    }
}
