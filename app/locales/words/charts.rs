//! The words of charts.

use crate::ui::locales::sentence::{Phrase, Text, words};

words! {
    pub(crate) Charts {
        metrics: Text,
        over: Text,
        by_step: Text,
        by_time: Text,
        scale: Text,
        linear: Text,
        log: Text,
        no_points: Text,
        no_points_made: Text,
        kept_every: Phrase,
        throughput: Text,
        at_step: Phrase,
        summary: Phrase,
        numbers: Text,
        step: Text,
        time: Text,
        gpu: Phrase,
        gpus: Text,
        gpus_of_job: Text,
        no_readings: Text,
        range: Text,
        hour: Text,
        day: Text,
        fleet: Text,
        all_gpus: Text,
        with_job: Text,
        busy_of: Phrase,
    }
}
