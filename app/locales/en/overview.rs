//! English: the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "Overview",
    disk_full: "The server's disk is almost full. What runs goes on, but no new jobs are taken until an admin has made room.",
    workers_online: "Workers online",
    workers_of: Phrase("of {0}"),
    gpus: "GPUs",
    gpus_busy: count("1 in use", "{0} in use"),
    running: "Running",
    waiting: "Waiting",
    failed: "Failed",
    ended_well: count("{0} completed", "{0} completed"),
    now_running: "Running now",
    nothing_running: "Nothing is running",
    nothing_running_hint: "Submit a configuration and it starts on the next free worker.",
    recent: "Recent jobs",
    all_jobs: "All jobs",
    fleet: "Fleet",
    all_workers: "All workers",
    start_title: "Three steps to your first job",
    start_intro: "This server hands training jobs to machines with GPUs. None has joined yet.",
    step_worker: "Create a worker",
    step_worker_text: "Gives you a token and the command for the GPU machine.",
    step_connect: "Start the agent there",
    step_connect_text: "Paste the command on the GPU machine. It finds its GPUs and reports in.",
    step_job: "Train in Cloud",
    step_job_text: "Choose a configuration and submit it. Progress, log and files appear here.",
    done: "Done",
};
