//! QR codes as SVG.

use leptos::prelude::*;
use qrcode::{Color, EcLevel, QrCode};

use crate::ui::erase::Erase;

/// The width of the quiet zone around the code, in modules (ISO/IEC 18004).
const QUIET_ZONE: usize = 4;

/// A QR code of `text`; nothing if the text is too long.
#[component]
pub(crate) fn Qr(#[prop(into)] text: String, label: &'static str) -> impl IntoView {
    let Ok(code) = QrCode::with_error_correction_level(text, EcLevel::M) else { return ().into_erased() };
    let size = code.width() + 2 * QUIET_ZONE;
    view! {
        <svg class="qr" viewBox=format!("0 0 {size} {size}") role="img" aria-label=label shape-rendering="crispEdges">
            <rect width=size height=size fill="#fff"></rect>
            <path fill="#000" d=path(&code)></path>
        </svg>
    }
    .into_erased()
}

/// Returns the SVG path of the dark modules.
fn path(code: &QrCode) -> String {
    let width = code.width();
    let dark_modules = code.to_colors().into_iter().enumerate().filter(|(_, color)| *color == Color::Dark);
    let square =
        |(index, _): (usize, Color)| format!("M{} {}h1v1h-1z", index % width + QUIET_ZONE, index / width + QUIET_ZONE);
    dark_modules.map(square).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finder_patterns_are_in_three_corners() {
        let code = QrCode::with_error_correction_level("otpauth://totp/x", EcLevel::M).expect("short");
        let (path, width) = (path(&code), code.width());
        for (x, y) in [(0, 0), (width - 7, 0), (0, width - 7)] {
            let (x, y) = (x + QUIET_ZONE, y + QUIET_ZONE);
            for (module, is_dark) in [((x, y), true), ((x + 1, y + 1), false), ((x + 3, y + 3), true)] {
                assert_eq!(path.contains(&format!("M{} {}h1", module.0, module.1)), is_dark, "{module:?}");
            }
        }
        let last = width - 1 + QUIET_ZONE;
        assert!(!path.contains(&format!("M{} {}h1", last + 1, last)), "nothing in the quiet zone");
    }
}
