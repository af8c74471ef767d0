//! English: the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "oldest first",
    no_events_hint: "The audit trail no longer has entries about this job.",
    details: "Details",
    submitted: Phrase("Submitted: {0}, revision {1}"),
    resubmitted: Phrase("Submitted again, after {0}"),
    prioritised: Phrase("Priority changed from {0} to {1}"),
    offered: Phrase("Attempt {0} offered to {1}"),
    offer_expired: Phrase("Attempt {0} was not taken by {1}; the job waits again"),
    starting: Phrase("{1} took attempt {0} and prepares the trainer"),
    running: Phrase("The trainer of attempt {0} runs on {1}"),
    kept_back: Phrase("Kept back until {0}: a lost trainer may still run"),
    requeued: Phrase("Attempt {0} was lost, and the job waits again: {1}"),
    cancelling: Phrase("Cancelled; {0} was asked to stop the trainer"),
    cancelled: "Cancelled",
    completed: Phrase("Attempt {0} completed on {1}"),
    failed: Phrase("Failed: {0}"),
    secrets_given: Phrase("Attempt {0} was given secrets: {1}"),
    by_worker: Phrase("by worker {0}"),
    by_server: "by the server",
    all_revisions: "All revisions",
    stored: "Stored",
    in_short: "In short",
    cancel_title: Phrase("Cancel {0}?"),
};
