//! English: what is to be trained.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::train::Train;

pub(super) const TRAIN: Train = Train {
    title: "Train in Cloud",
    intro: "Submit a configuration. The job keeps the files as they are now, whatever changes later.",
    configuration: "Configuration",
    target: "Target",
    target_worker: "On a remote worker only. Waits until one is free.",
    target_auto: "On a worker if one fits, else on this server’s own GPUs.",
    target_local: "On this server’s own GPUs only.",
    gpu_count: "GPUs",
    gpu_count_hint: "Left empty, what the configuration asks for.",
    labels: "Worker labels",
    labels_hint: "One “key=value” a line; the worker must have all of them. “*” stands for anything.",
    labels_example: "gpu_type=a100*",
    known_labels: "In the fleet",
    advanced: "Retries and checkpoints",
    retries: "Start again after a lost worker",
    retries_hint: "So many times at most, if the worker or its host was at fault. The trainer’s own failure is final.",
    checkpoints: "Checkpoints to send here",
    checkpoints_hint: "From them another worker goes on after a lost one.",
    checkpoints_last: "The newest",
    checkpoints_all: "All",
    checkpoints_none: "None",
    exclusive: "Never twice at once",
    exclusive_text: "A worker that loses contact stops the job, and no other begins it before. After a lost worker this takes longer.",
    submit: "Submit job",
    files: count("1 file", "{0} files"),
    revision: Phrase("revision {0}"),
    none: "No configuration yet",
    none_hint: "Put one on the server first, with the command line or the API:",
    fleet_now: "Fleet now",
    fleet: Phrase("{0} idle, {1} busy, {2} offline"),
    fleet_empty: "No worker has joined. The job will wait.",
};
