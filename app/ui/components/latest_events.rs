//! What happened last, as the audit trail has it.

use leptos::prelude::*;

use super::action::MoreLink;
use super::subject::Subject;
use super::time::Moment;
use crate::domain::text::escaped;
use crate::protocol::audit::AuditEntry;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::trail::sentence;

/// The list, with the way to all of it.
#[component]
pub(crate) fn LatestEvents(events: Memo<Vec<AuditEntry>>) -> impl IntoView {
    let words = t();
    let rows = move || events.get().into_iter().map(|entry| view! { <Event entry=entry/> }).collect_view();
    view! {
        <section class="panel" aria-labelledby="events">
            <h2 id="events" class="panel-head">
                {words.overview.events}
                <MoreLink href="/admin/audit" label=words.nav.audit rel="external"/>
            </h2>
            <ol class="rows">{rows}</ol>
        </section>
    }
    .erased()
}

/// Who did it, and to what; that an agent did something to itself is said once.
#[component]
fn Event(entry: AuditEntry) -> impl IntoView {
    let AuditEntry { at, actor, action, target, .. } = entry;
    let said = sentence(&action).map_or_else(|| escaped(&action).into_owned(), ToOwned::to_owned);
    let actor = actor.strip_prefix("worker:").map_or(actor.clone(), ToOwned::to_owned);
    let target = (actor != target).then(|| view! { " → "<Subject name=target/> });
    view! {
        <li class="latest">
            <span>{said}</span>
            <span class="text-muted"><Moment at=at in_row=true/></span>
            <span class="row-sub wrap-anywhere"><Subject name=actor/>{target}</span>
        </li>
    }
    .erased()
}
