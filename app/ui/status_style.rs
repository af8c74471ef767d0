//! The look of a status: its icon, word and color.

use super::glyph::Glyph;
use super::locales::sentence::Text;

/// The style of a status. Class names are literals, because the style sheet is generated from the words in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StatusStyle {
    pub class: &'static str,
    pub glyph: Glyph,
    pub label: Text,
}
