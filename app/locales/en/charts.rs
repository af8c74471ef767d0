//! English: charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "Metrics",
    over: "Horizontal axis",
    by_step: "Steps",
    by_time: "Time",
    scale: "Vertical axis",
    linear: "Linear",
    log: "Log",
    no_points: "The curves start with the first step that the trainer reports.",
    no_points_made: "The trainer reported no steps.",
    kept_every: Phrase(
        "Of the steps that the trainer reported, one in {0} is kept: there are more than the server stores.",
    ),
    throughput: "Steps per second",
    at_step: Phrase("Step {0}"),
    summary: Phrase("first {0}, last {1}, lowest {2}, highest {3}"),
    numbers: "Numbers",
    step: "Step",
    time: "Time",
    gpu: Phrase("GPU {0}"),
    gpus: "GPUs over time",
    gpus_of_job: "GPUs of this job",
    no_readings: "Nothing was heard of its GPUs in this time.",
    range: "Range",
    hour: "Last hour",
    day: "Last day",
    fleet: "GPU utilisation",
    all_gpus: "All GPUs",
    with_job: "With a job",
    busy_of: Phrase("{0} of {1} GPUs with a job"),
};
