//! A notice that new jobs are rejected.

use leptos::prelude::*;

use super::icon::Icon;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// Shown on pages that list or submit jobs, while the server's disk is almost full.
#[component]
pub(crate) fn DiskFull() -> impl IntoView {
    view! {
        <div class="notice notice-warn" role="status">
            <Icon glyph=Glyph::Warning/>
            <p class="grow">{t().overview.disk_full}</p>
        </div>
    }
    .into_erased()
}
