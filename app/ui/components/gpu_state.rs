//! How the state of a GPU is displayed: the same in tables, tiles, squares and filters.

use crate::protocol::status::GpuState;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::status_style::StatusStyle;

/// Returns the class of the border of a tile or a square.
pub(crate) const fn edge_class(state: GpuState) -> &'static str {
    match state {
        GpuState::Busy => "is-busy",
        GpuState::Free => "is-free",
        GpuState::InUse => "is-warn",
        GpuState::Quarantined => "is-bad",
        GpuState::NotConnected => "is-off",
    }
}

pub(crate) fn gpu_state_style(state: GpuState) -> StatusStyle {
    let words = &t().gpus;
    let (class, glyph, label) = match state {
        GpuState::NotConnected => ("status status-off", Glyph::Dotted, words.not_connected),
        GpuState::Quarantined => ("status status-bad", Glyph::Warning, words.quarantined),
        GpuState::InUse => ("status status-warn", Glyph::StopCircle, words.in_use),
        GpuState::Busy => ("status status-active", Glyph::Play, words.busy),
        GpuState::Free => ("status status-good", Glyph::Filled, words.free),
    };
    StatusStyle { class, glyph, label }
}
