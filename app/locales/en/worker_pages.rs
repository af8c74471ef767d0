//! English: the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "newest first",
    attempts: "Attempts",
    of_late: count("in the last day", "in the last {0} days"),
    success: "Success rate",
    ended_so: Phrase("{0} completed, {1} failed, {2} lost"),
    fast_failures: "Fast failures in a row",
    fast_failures_hint: "within a minute of the start, in the last 24 hours",
    no_attempts: "No attempt yet",
    no_attempts_hint: "What is offered to this worker is listed here, with how it ended.",
    no_events: "Nothing on record",
    no_events_hint: "The audit trail no longer has entries about this worker.",
    said_goodbye: "It said goodbye.",
    fell_silent: "Nothing was heard of it for too long.",
    server_gone: "The server that it was connected to is gone.",
    until: Phrase("until {0}"),
    withheld: Phrase("Withheld: {0}"),
    given_back: Phrase("Given back: {0}"),
    fit_again: "It takes jobs again.",
    from_host: Phrase("From host {0}"),
};
