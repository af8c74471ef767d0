//! Where a GPU stands: one `match`, one word, one look for the table, the tiles and their filters.

use super::icon::Glyph;
use super::status::Look;
use crate::protocol::gpu::{GpuView, WithheldReason};
use crate::protocol::status::WorkerStatus;
use crate::ui::locales::words::gpus::Gpus;

/// Where a GPU stands. That it is withheld comes first: the job that has it still is named beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GpuState {
    Busy,
    Free,
    InUse,
    Quarantined,
    NotConnected,
}

impl GpuState {
    /// Every state, in the order of the filters.
    pub(crate) const ALL: [Self; 5] = [Self::Busy, Self::Free, Self::InUse, Self::Quarantined, Self::NotConnected];

    /// Of a worker's GPU.
    pub(crate) fn of(worker: WorkerStatus, gpu: &GpuView) -> Self {
        let withheld = gpu.gpu.withheld.as_ref().map(|withheld| withheld.reason);
        match (worker, withheld, &gpu.job_id) {
            (WorkerStatus::Offline, _, _) => Self::NotConnected,
            (_, Some(WithheldReason::Quarantined), _) => Self::Quarantined,
            (_, Some(WithheldReason::InUse), _) => Self::InUse,
            (_, None, Some(_)) => Self::Busy,
            (_, None, None) => Self::Free,
        }
    }

    /// The word in an address.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Free => "free",
            Self::InUse => "in_use",
            Self::Quarantined => "quarantined",
            Self::NotConnected => "not_connected",
        }
    }

    /// Reads it.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// How it looks.
    pub(crate) fn look(self, words: &Gpus) -> Look {
        let (class, glyph, word) = match self {
            Self::NotConnected => ("status status-off", Glyph::Dotted, words.not_connected),
            Self::Quarantined => ("status status-bad", Glyph::Warning, words.quarantined),
            Self::InUse => ("status status-warn", Glyph::StopCircle, words.in_use),
            Self::Busy => ("status status-active", Glyph::Play, words.busy),
            Self::Free => ("status status-good", Glyph::Filled, words.free),
        };
        Look { class, glyph, word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::JobId;
    use crate::domain::time::Timestamp;
    use crate::protocol::gpu::{Gpu, Withheld};
    use crate::ui::locales::Language;
    use crate::ui::prefs::Locale;

    #[test]
    fn each_state_has_a_word_of_its_own() {
        let gpu = |reason: Option<WithheldReason>, is_held: bool| {
            let withheld = reason.map(|reason| Withheld { reason, detail: String::new() });
            let job_id = is_held.then(|| JobId::new(Timestamp(0), [0; 10]));
            GpuView { gpu: Gpu { withheld, ..Gpu::default() }, job_id, ..GpuView::default() }
        };
        let broken = gpu(Some(WithheldReason::Quarantined), true);
        let states = [
            (WorkerStatus::Busy, broken.clone(), "Quarantined"),
            (WorkerStatus::Idle, gpu(Some(WithheldReason::InUse), false), "In use by others"),
            (WorkerStatus::Draining, gpu(None, true), "With a job"),
            (WorkerStatus::Idle, gpu(None, false), "Free"),
            (WorkerStatus::Offline, broken, "Not connected"),
        ];
        for (worker, gpu, word) in states {
            let state = GpuState::of(worker, &gpu);
            assert_eq!(state.look(&Language::of(Locale::En).gpus).word, word);
            assert_eq!(GpuState::parse(state.as_str()), Some(state));
        }
        assert_eq!(GpuState::parse("broken"), None);
    }
}
