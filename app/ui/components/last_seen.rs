//! The time of a worker's last heartbeat.

use leptos::prelude::*;

use super::time::RelativeTime;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(crate) fn LastSeen(worker: WorkerView) -> impl IntoView {
    match worker.last_heartbeat {
        Some(at) => view! { <RelativeTime at=at/> }.into_erased(),
        None => t().time.never.into_erased(),
    }
}
