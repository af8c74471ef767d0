//! How the state of a GPU looks: one `match`, one word, one look for the table, the tiles and their filters.

use super::icon::Glyph;
use super::status::StatusStyle;
use crate::protocol::status::GpuState;
use crate::ui::i18n::t;

/// The class of its edge, where it is drawn as a tile or a square.
pub(crate) const fn edge_class(state: GpuState) -> &'static str {
    match state {
        GpuState::Busy => "is-busy",
        GpuState::Free => "is-free",
        GpuState::InUse => "is-warn",
        GpuState::Quarantined => "is-bad",
        GpuState::NotConnected => "is-off",
    }
}

/// Its look.
pub(crate) fn gpu_state_style(state: GpuState) -> StatusStyle {
    let words = &t().gpus;
    let (class, glyph, word) = match state {
        GpuState::NotConnected => ("status status-off", Glyph::Dotted, words.not_connected),
        GpuState::Quarantined => ("status status-bad", Glyph::Warning, words.quarantined),
        GpuState::InUse => ("status status-warn", Glyph::StopCircle, words.in_use),
        GpuState::Busy => ("status status-active", Glyph::Play, words.busy),
        GpuState::Free => ("status status-good", Glyph::Filled, words.free),
    };
    StatusStyle { class, glyph, label: word }
}
