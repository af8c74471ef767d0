//! One event as a sentence, with its raw record in a fold.

use leptos::prelude::*;

use super::icon::Icon;
use crate::domain::text::{escape, escape_lines};
use crate::protocol::audit::AuditLogEvent;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// How an event is described.
pub(crate) struct EventDescription {
    pub class: &'static str,
    pub glyph: Glyph,
    pub sentence: String,
    /// Details; may be empty.
    pub note: String,
    /// The time since the previous event, if it is relevant.
    pub since: Option<String>,
    /// Who caused the event.
    pub actor: String,
}

/// The style of a neutral event, and of one that this version does not know.
pub(crate) const PLAIN_EVENT: (&str, Glyph) = ("status status-wait", Glyph::Ring);

/// An entry of a list with the class `events`.
#[component]
pub(crate) fn EventEntry(event: AuditLogEvent, description: EventDescription) -> impl IntoView {
    let raw = serde_json::to_string_pretty(&event.detail).unwrap_or_default();
    let raw = escape_lines(&format!("{}\n{raw}", event.event)).into_owned();
    let note =
        (!description.note.is_empty()).then(|| view! { <p class="text-muted wrap-anywhere">{description.note}</p> });
    view! {
        <li class="event">
            <span class=description.class><Icon glyph=description.glyph/></span>
            <div class="min-w-0">
                <p class="wrap-anywhere">{description.sentence}</p>
                {note}
                <p class="row-sub wrap-anywhere">
                    <time datetime=event.at.to_string()>{use_clock().format_timestamp(event.at)}</time>
                    {description.since.map(|since| format!(" · +{since}"))}
                    " · "
                    {description.actor}
                </p>
                <details class="fold">
                    <summary>{t().server_pages().job.details}</summary>
                    <pre class="source" tabindex="0" role="region" aria-label=event.event.clone()><code>{raw}</code></pre>
                </details>
            </div>
        </li>
    }
    .into_erased()
}

/// Returns who caused an event; `name` returns the name of a worker by its ID.
pub(crate) fn describe_actor(actor: &str, name: impl FnOnce(&str) -> String) -> String {
    let words = &t().server_pages().job;
    match actor.strip_prefix("worker:") {
        Some(id) => words.by_worker.of(name(id)),
        None if actor == "system" => words.by_server.to_owned(),
        None => t().job.submitted_by.of(escape(actor)),
    }
}
