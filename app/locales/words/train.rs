//! The words of what is to be trained.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Train {
        title: Text,
        intro: Text,
        configuration: Text,
        target: Text,
        target_worker: Text,
        target_auto: Text,
        target_local: Text,
        gpu_count: Text,
        gpu_count_hint: Text,
        labels: Text,
        labels_hint: Text,
        labels_example: Text,
        known_labels: Text,
        advanced: Text,
        retries: Text,
        retries_hint: Text,
        checkpoints: Text,
        checkpoints_hint: Text,
        checkpoints_last: Text,
        checkpoints_all: Text,
        checkpoints_none: Text,
        exclusive: Text,
        exclusive_text: Text,
        submit: Text,
        files: Count,
        revision: Phrase,
        none: Text,
        none_hint: Text,
        fleet_now: Text,
        fleet: Phrase,
        fleet_empty: Text,
    }
}
