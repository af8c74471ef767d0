//! English: GPUs.

use super::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPUs",
    gpu: "GPU",
    state: "State",
    memory: "Memory",
    memory_of: |gpu| format!("Memory in use on GPU {gpu}"),
    utilisation: "Utilisation",
    utilisation_of: |gpu| format!("Utilisation of GPU {gpu}"),
    temperature: "Temperature",
    power: "Power",
    clocks: "Clocks",
    read: "Read",
    no_reading: "no reading",
    part_of: |whole| format!("Part of {whole}"),
    unified: "Shares the host’s memory",
    free: "Free",
    busy: "With a job",
    quarantined: "Quarantined",
    in_use: "In use by others",
    not_connected: "Not connected",
    withheld: |count| if count == 1 { "1 GPU withheld".to_owned() } else { format!("{count} GPUs withheld") },
    withheld_hint: "Its agent keeps GPUs from jobs: one is broken, or a process that belongs to no job uses it. The worker’s page says which, and why.",
};
