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
    edit_title: Phrase("Edit {0}"),
    reported: "Labels that its agent reports",
    reported_hint: "They come from the agent’s own settings, and are changed there.",
    none_reported: "It reports none.",
    overridden: Phrase("does not count: yours says {0}"),
    not_counted: "does not count",
    ignore: "Ignore what its agent reports",
    ignore_hint: "Jobs then choose it by your labels alone. For hosts whose operator is not to choose their jobs.",
    older: "Refuse older agents",
    older_hint: "An agent of the older protocol uses the worker’s token for everything and gets HF_TOKEN with a job’s offer.",
    older_agents: "Older agents",
    older_refused: "refused",
    ignored_everywhere: "This server ignores what agents report, on all workers.",
    overtaken: "Somebody else has changed this worker meanwhile. What you typed is still below; what is stored now stands beside it. Saving again puts yours in its place.",
    stored: "Stored now",
};
