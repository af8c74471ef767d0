//! The words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::{Phrase, Text, words};

words! {
    /// The words around a job: its views, what can be done with it, its place in the list.
    pub(crate) Work {
        views: Text,
        events: Text,
        clone: Text,
        again_of: Phrase,
        cancel_waiting: Text,
        keep_waiting: Text,
        retry: Text,
        retry_text: Text,
        begins: Text,
        from_scratch: Text,
        from_newest: Text,
        resume_from: Phrase,
        changed: Text,
        retry_confirm: Text,
        priority: Text,
        priority_text: Text,
        set: Text,
        top: Text,
        raise: Phrase,
        memory_each: Phrase,
        accelerator: Text,
        longest: Text,
        exclusive: Text,
        exclusive_text: Text,
        weights: Text,
        no_weights: Text,
        no_weights_made: Text,
        all_files: Text,
        checkpoints: Text,
        resumes_here: Text,
        resumes_again: Text,
        of_user: Text,
        with_label: Text,
        since: Text,
        until: Text,
        ended_since: Text,
        narrow: Text,
        without: Phrase,
        waiting: Text,
        waits_since: Text,
        asks_for: Text,
        anything: Text,
        loss: Phrase,
        left: Phrase,
        actions: Text,
        actions_of: Phrase,
    }

    /// A job's life as lanes.
    pub(crate) Lanes {
        title: Text,
        label: Text,
        waiting: Text,
        back_off: Text,
        checkpoint: Phrase,
    }

    /// Samples.
    pub(crate) Gallery {
        all: Text,
        hint: Text,
        not_made: Text,
        over_steps: Text,
        sample: Phrase,
        earlier: Text,
        later: Text,
        before: Text,
        after: Text,
        compare: Text,
        nothing: Text,
        show: Text,
        full: Text,
        close: Text,
    }
}
