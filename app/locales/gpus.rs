//! The words around GPUs.

use super::{Count, Named, Text};

pub(crate) struct Gpus {
    pub title: Text,
    pub gpu: Text,
    pub state: Text,
    pub memory: Text,
    pub memory_of: Named,
    pub utilisation: Text,
    pub utilisation_of: Named,
    pub temperature: Text,
    pub power: Text,
    pub clocks: Text,
    pub read: Text,
    pub no_reading: Text,
    pub part_of: Named,
    pub unified: Text,
    pub free: Text,
    pub busy: Text,
    pub quarantined: Text,
    pub in_use: Text,
    pub not_connected: Text,
    pub withheld: Count,
    pub withheld_hint: Text,
}
