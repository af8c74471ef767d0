//! A worker's token on its page: who created it, its last use, its limits, its rotation, and an alert if two agents use
//! it.

use leptos::prelude::*;

use super::field::Field;
use super::icon::Icon;
use super::last_seen::LastSeen;
use super::time::RelativeTime;
use crate::domain::time::Millis;
use crate::protocol::workers::WorkerView;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// An alert that two agents use the token, with a button that resolves it.
#[component]
pub(crate) fn TokenConflictAlert(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().token;
    let (conflict, id) = (
        Memo::new(move |_| worker.with(|worker| worker.token_conflict.clone())),
        worker.with_untracked(|worker| worker.id.clone()),
    );
    let content = move || {
        let (conflict, action) = (conflict.get()?, format!("/ui/workers/{id}/settle"));
        let alert = view! {
            <section class="panel p-5 mb-6" role="alert">
                <h2 class="panel-title"><Icon glyph=Glyph::Warning/>{words.conflict} " " <RelativeTime at=conflict.at/></h2>
                <p class="mt-1 mb-3 max-w-prose text-muted">{conflict_hint(&conflict.host)}</p>
                <form method="post" action=action><button class="btn btn-sm">{words.conflict_settle}</button></form>
            </section>
        };
        Some(alert.into_erased())
    };
    view! { {content} }.into_erased()
}

fn conflict_hint(host: &str) -> String {
    let words = &t().token;
    if host.is_empty() { words.conflict_hint.to_owned() } else { words.conflict_hint_on.of(host) }
}

/// The properties of the token, and a form that rotates it.
#[component]
pub(crate) fn TokenPanel(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().token;
    let clock = use_clock();
    let action = worker.with_untracked(|worker| format!("/ui/workers/{}/token", worker.id));
    view! {
        <section class="panel self-start" aria-labelledby="access">
            <h2 id="access" class="panel-head">{words.access}</h2>
            <dl class="facts">
                {move || worker.with(|worker| token_facts(worker, clock))}
            </dl>
            <details class="fold p-5">
                <summary>{words.rotate}</summary>
                <p class="my-3 max-w-prose text-muted">{words.rotate_hint}</p>
                <form method="post" action=action class="form">
                    <Field id="expires_in_days" label=words.days hint=words.days_hint optional=true>
                        <input class="input w-full" id="expires_in_days" name="expires_in_days" type="number" min="1"
                            max="3660" aria-describedby="expires_in_days-hint"/>
                    </Field>
                    <Field id="overlap_seconds" label=words.overlap hint=words.overlap_hint>
                        <select class="select w-full" id="overlap_seconds" name="overlap_seconds" aria-describedby="overlap_seconds-hint">
                            <option value="">{words.overlap_none}</option>
                            <option value="3600">{words.overlap_hour}</option>
                            <option value="86400">{words.overlap_day}</option>
                            <option value="604800">{words.overlap_week}</option>
                        </select>
                    </Field>
                    <button class="btn btn-primary"><Icon glyph=Glyph::Key/>{words.rotate}</button>
                </form>
            </details>
        </section>
    }
    .into_erased()
}

/// Renders who created the token, its last use, and its limits.
fn token_facts(worker: &WorkerView, clock: PageClock) -> AnyView {
    let words = &t().token;
    let creator = worker.token_created_by.as_ref().map(|name| format!(" {}", t().job.submitted_by.of(name)));
    let created = worker.token_created_at.map(|at| {
        view! { <div><dt>{words.token_made}</dt><dd><RelativeTime at=at/>{creator}</dd></div> }
    });
    let address_text =
        worker.last_used_from.as_ref().map(|address| format!(" {}", t().worker.contact_from.of(address)));
    let expiry = match (worker.token_expires_at, worker.token_unused_ends_at) {
        (Some(at), _) => clock.format_timestamp(at),
        (None, Some(at)) => words.token_ends_unused.of(clock.format_timestamp(at)),
        (None, None) => words.token_never_ends.to_owned(),
    };
    let old_token = worker.old_token_ends_at.map(|at| {
        view! { <div><dt>{words.old_token_ends}</dt><dd>{clock.format_timestamp(at)}</dd></div> }
    });
    let networks = worker.allowed_networks.join(", ");
    let networks = if networks.is_empty() { words.any_network.to_owned() } else { networks };
    view! {
        {created}
        <div><dt>{words.token_used}</dt><dd><LastSeen worker=worker.clone()/>{address_text}</dd></div>
        <div><dt>{words.token_ends}</dt><dd>{expiry}</dd></div>
        {old_token}
        <div><dt>{words.networks}</dt><dd class="break-all">{networks}</dd></div>
    }
    .into_erased()
}

/// How long before its expiry a token gets a badge.
const EXPIRY_WARNING: Millis = Millis::from_secs(7 * 86_400);

/// Badges for a token that two agents use, and for one that has expired or expires soon.
#[component]
pub(crate) fn TokenBadges(worker: WorkerView) -> impl IntoView {
    let words = &t().token;
    let clock = use_clock();
    let warning = |label, title: String| {
        view! {
            <span class="status status-bad" title=title><Icon glyph=Glyph::Warning/><span>{label}</span></span>
        }
        .into_erased()
    };
    let conflict = worker.token_conflict.map(|conflict| warning(words.conflict, conflict_hint(&conflict.host)));
    let expiry = worker.token_expires_at;
    let expiry_badge = move || {
        let (end, now) = (expiry?, clock.now());
        let expiry_time = clock.format_timestamp(end);
        if end <= now {
            Some(warning(words.token_has_ended, expiry_time))
        } else if end - now < EXPIRY_WARNING {
            Some(view! { <span class="chip">{words.token_ends_at} " " {expiry_time}</span> }.into_erased())
        } else {
            None
        }
    };
    view! { {conflict} {expiry_badge} }.into_erased()
}
