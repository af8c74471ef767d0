//! The words of the overview.

use crate::ui::locales::sentence::{Count, Phrase, Text, words};

words! {
    pub(crate) Overview {
        title: Text,
        disk_full: Text,
        workers_online: Text,
        workers_of: Phrase,
        gpus: Text,
        gpus_busy: Count,
        running: Text,
        waiting: Text,
        failed: Text,
        ended_well: Count,
        now_running: Text,
        nothing_running: Text,
        nothing_running_hint: Text,
        nothing_running_waiting: Count,
        recent: Text,
        all_jobs: Text,
        gpus_withheld: Count,
        longest_wait: Phrase,
        failed_lately: Text,
        attention: Text,
        all_well: Text,
        more_attention: Count,
        this_server: Text,
        several_workers: Count,
        jobs_wait: Count,
        more_jobs_wait: Count,
        // By `Severity` and `AttentionKind` of `protocol::overview`.
        severities: [Text; 3],
        concerns: [Text; 16],
        fleet: Text,
        all_workers: Text,
        events: Text,
        // By `ACTIONS` of `ui::trail`.
        actions: [Text; 55],
        start_title: Text,
        start_intro: Text,
        none_joined: Text,
        step_worker: Text,
        step_worker_text: Text,
        step_connect: Text,
        step_connect_text: Text,
        step_job: Text,
        step_job_text: Text,
        done: Text,
    }
}
