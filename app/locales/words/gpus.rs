//! The words of GPUs.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Gpus {
        title: Text,
        intro: Text,
        view: Text,
        as_tiles: Text,
        as_table: Text,
        none_yet: Text,
        none_yet_hint: Text,
        none_match: Text,
        none_match_hint: Text,
        show_all: Text,
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
        ecc: Phrase,
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
