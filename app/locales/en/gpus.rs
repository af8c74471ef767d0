//! English: GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPUs",
    intro: "Every GPU of the fleet, as it is now.",
    view: "Show as",
    as_tiles: "Tiles",
    as_table: "Tables",
    none_yet: "No GPU yet",
    none_yet_hint: "GPUs appear here as soon as a worker that has some reports in.",
    none_match: "No GPU is in this state",
    none_match_hint: "GPUs in other states are hidden by the filter.",
    show_all: "Show all GPUs",
    gpu: "GPU",
    state: "State",
    memory: "Memory",
    memory_of: Phrase("Memory in use on GPU {0}"),
    utilisation: "Utilisation",
    utilisation_of: Phrase("Utilisation of GPU {0}"),
    temperature: "Temperature",
    power: "Power",
    clocks: "Clocks",
    read: "Read",
    no_reading: "no reading",
    ecc: Phrase("ECC errors: {0}"),
    part_of: Phrase("Part of {0}"),
    unified: "Shares the host’s memory",
    free: "Free",
    busy: "With a job",
    quarantined: "Quarantined",
    in_use: "In use by others",
    not_connected: "Not connected",
    withheld: count("1 GPU withheld", "{0} GPUs withheld"),
    withheld_hint: "Its agent keeps GPUs from jobs: one is broken, or a process that belongs to no job uses it. The worker’s page says which, and why.",
};
