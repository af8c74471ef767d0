//! The newest entries of the audit log.

use leptos::prelude::*;

use super::action::MoreLink;
use super::subject_link::subject_link;
use super::time::RelativeTime;
use crate::domain::text::escape;
use crate::protocol::audit::{AuditEntry, AuditPage, strip_worker_prefix};
use crate::ui::audit_actions::action_sentence;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// A panel with the newest audit entries and a link to the audit log.
#[component]
pub(crate) fn LatestEvents(audit_log: Memo<Option<AuditPage>>) -> impl IntoView {
    let words = t();
    let rows = move || {
        audit_log.with(|audit_log| {
            audit_log
                .as_ref()
                .map(|audit_log| audit_log.entries.iter().map(|entry| event_row(audit_log, entry)).collect_view())
        })
    };
    view! {
        <section class="panel" aria-labelledby="events">
            <h2 id="events" class="panel-head">
                {words.overview.events}
                <MoreLink href="/admin/audit" label=words.nav.audit rel="external"/>
            </h2>
            <ol class="rows">{rows}</ol>
        </section>
    }
    .into_erased()
}

/// Renders an audit entry: its action, time, actor and target.
fn event_row(audit_log: &AuditPage, entry: &AuditEntry) -> AnyView {
    let AuditEntry { at, actor, action, target, .. } = entry;
    let label = action_sentence(action).map_or_else(|| escape(action).into_owned(), ToOwned::to_owned);
    let target = target_other_than(actor, target).map(|target| view! { " → "{subject_link(audit_log, target)} });
    view! {
        <li class="latest">
            <span>{label}</span>
            <span class="text-muted"><RelativeTime at=*at/></span>
            <span class="row-sub wrap-anywhere">{subject_link(audit_log, actor)}{target}</span>
        </li>
    }
    .into_erased()
}

/// Returns the target of an event, unless it is empty or the actor itself.
fn target_other_than<'t>(actor: &str, target: &'t str) -> Option<&'t str> {
    (!target.is_empty() && strip_worker_prefix(actor) != target).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_target_is_shown_if_it_differs_from_the_actor() {
        let table = [
            ("unknown", "", None),
            ("unknown", "ada", Some("ada")),
            ("worker:w_1", "w_1", None),
            ("ada", "w_1", Some("w_1")),
        ];
        for (actor, target, other) in table {
            assert_eq!(target_other_than(actor, target), other, "{actor} {target}");
        }
    }
}
