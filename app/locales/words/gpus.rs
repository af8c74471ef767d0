//! The words of GPUs.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Gpus {
        title: Text,
        gpu: Text,
        state: Text,
        memory: Text,
        memory_of: Phrase,
        utilisation: Text,
        utilisation_of: Phrase,
        temperature: Text,
        power: Text,
        clocks: Text,
        read: Text,
        no_reading: Text,
        part_of: Phrase,
        unified: Text,
        free: Text,
        busy: Text,
        quarantined: Text,
        in_use: Text,
        not_connected: Text,
        withheld: Count,
        withheld_hint: Text,
    }
}
