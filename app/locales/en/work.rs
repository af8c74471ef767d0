//! English: the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "Views of the job",
    events: "Events",
    clone: "Change and submit",
    again_of: Phrase("again after {0}"),
    cancel_waiting: "It has not started. It leaves the queue, and a cancelled job does not start again.",
    keep_waiting: "Keep it waiting",
    retry: "Run again",
    retry_text: "A new job of the same revision of the configuration, with the same demands. It goes on from the newest checkpoint, if there is one.",
    retry_confirm: "Run this job again",
    priority: "Priority",
    priority_text: "0 to 50; the more urgent goes first. An hour of waiting outweighs one point.",
    set: "Set",
    top: "Most urgent",
    raise: Phrase("Raise priority to {0}"),
    memory_each: Phrase("{0} GB each"),
    accelerator: "Accelerator",
    longest: "Longest run",
    exclusive: "Exclusive",
    exclusive_text: "never two trainers at once",
    weights: "Weights",
    no_weights: "The weights come with the end of the training.",
    all_files: "All files",
    checkpoints: "Checkpoints",
    resumes_here: "the next attempt goes on from here",
    of_user: "Submitted by",
    with_label: "Label, such as team=nlp",
    narrow: "Filter",
    without: Phrase("Remove the filter {0}"),
    waiting: "Waiting",
    waits_since: "Waiting since the submit",
    asks_for: "Asks for",
    anything: "any worker",
    loss: Phrase("loss {0}"),
    left: Phrase("{0} left"),
    actions: "Actions",
    actions_of: Phrase("Actions for {0}"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "Timeline",
    label: "What the job did and when; the same is in the table below",
    waiting: "Waiting",
    back_off: "Waiting for a retry",
    checkpoint: Phrase("Checkpoint at step {0}"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "All samples",
    hint: "by step",
    not_made: "Not made at this step",
    over_steps: "Over all steps",
    sample: Phrase("Sample {0} over all steps"),
    earlier: "Earlier step",
    later: "Later step",
    before: "Previous sample",
    after: "Next sample",
    compare: "Compare with",
    nothing: "nothing",
    show: "Show",
    full: "Sample in full size",
    close: "Close",
};
