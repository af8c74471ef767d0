//! That no new jobs are taken.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// What is told where jobs are seen and submitted, while the server's disk is almost full.
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
