//! English: what is done to several at once.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::bulk::{Bulk, Picking};

pub(super) const PICKING: Picking = Picking {
    one: Phrase("Select {0}"),
    all: "Select all on this page",
    picked: count("1 selected", "{0} selected"),
    none: "Clear",
    delete: "Delete offline",
    cancel: "Cancel jobs",
};

pub(super) const BULK: Bulk = Bulk {
    drain: count("Drain 1 worker", "Drain {0} workers"),
    resume: count("Resume 1 worker", "Resume {0} workers"),
    delete: count("Delete 1 worker", "Delete {0} workers"),
    cancel: count("Cancel 1 job", "Cancel {0} jobs"),
    retry: count("Run 1 job again", "Run {0} jobs again"),
    drain_text: "What drains finishes what it runs and takes no new jobs until it is resumed.",
    delete_text: "A deleted worker's token stops working at once. Its past jobs, their logs and files stay.",
    cancel_text: "A cancelled job does not start again.",
    retry_text: "Each becomes a new job with the same demands and the same revision of the configuration: from scratch if it completed, else from its newest checkpoint.",
    happens: "What will happen",
    nothing: "Nothing to do",
    nothing_text: "Nothing would change. Go back and select others.",
    missing: count("1 of them is not there any more.", "{0} of them are not there any more."),
    keep: "Back to the list",
    between: ", ",
    takes_nothing: "Takes nothing new.",
    finishes: Phrase("Finishes {0}, and takes nothing new."),
    leaves: "Takes nothing new, and leaves.",
    finishes_and_leaves: Phrase("Finishes {0}, and then leaves."),
    takes_nothing_later: "Is offline; takes nothing new when it comes back.",
    drains_already: "Drains already: stays as it is.",
    takes_again: "Takes jobs again.",
    drains_not: "Does not drain: stays as it is.",
    deleted: "Is deleted.",
    deleted_with: count(
        "Is deleted; the job it holds goes back to the queue.",
        "Is deleted; the {0} jobs it holds go back to the queue.",
    ),
    not_offline: "Is not offline: stays.",
    leaves_queue: "Leaves the queue.",
    stops: "Its trainer is stopped, and may write a last checkpoint.",
    stops_already: "Is being cancelled already.",
    ended: "Has ended: stays as it is.",
    of_somebody_else: Phrase("Belongs to {0}: stays as it is."),
    submitted_again: "Is submitted again, as a new job.",
    not_ended: "Has not ended: stays as it is.",
    drained: count("1 worker takes no new jobs.", "{0} workers take no new jobs."),
    resumed: count("1 worker takes jobs again.", "{0} workers take jobs again."),
    gone: count("1 worker is deleted.", "{0} workers are deleted."),
    cancelled: count("1 job is being cancelled.", "{0} jobs are being cancelled."),
    retried: count("1 job is submitted again.", "{0} jobs are submitted again."),
    nothing_done: "Nothing was changed.",
    unchanged: count("1 was so already.", "{0} were so already."),
    both: Phrase("{0} {1}"),
    refused: Phrase("Not {0}: {1}"),
};
