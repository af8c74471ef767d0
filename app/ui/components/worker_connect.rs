//! A new worker's first page: its token, the command to run, and whether it has come.

use std::time::Duration;

use leptos::prelude::*;

use super::action::ButtonLink;
use super::copy::CopyBlock;
use super::icon::{Glyph, Icon};
use crate::protocol::access::SessionView;
use crate::protocol::status::WorkerType;
use crate::protocol::workers::{CreatedWorker, WorkerView};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// After so long without contact, likely causes are listed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Token and commands, from the flash.
#[component]
pub(crate) fn TokenOnce(created: CreatedWorker, worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().worker;
    let session = use_context::<Prefs>().and_then(|prefs| prefs.session);
    let environment = environment(&created, worker.with_untracked(|worker| worker.worker_type), session.as_ref());
    let fingerprint = session.and_then(|session| session.fingerprint);
    view! {
        <section class="panel p-5" aria-labelledby="token">
            <h2 id="token" class="panel-title"><Icon glyph=Glyph::Key/>{words.token_title}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.token_text}</p>
            <CopyBlock text=created.token.clone() label=words.token/>
        </section>
        <section class="panel p-5" aria-labelledby="connect">
            <h2 id="connect" class="panel-title"><Icon glyph=Glyph::Play/>{words.connect_title}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.connect_text}</p>
            <h3 class="block-name">{words.shell}</h3>
            <CopyBlock text=created.connection_command label=words.shell/>
            <h3 class="block-name mt-4">{words.environment}</h3>
            <p class="mb-2 text-sm text-muted">{words.environment_hint}</p>
            <CopyBlock text=environment label=words.environment/>
            {fingerprint.map(|fingerprint| view! {
                <p class="mt-4 max-w-prose text-sm text-muted">
                    {words.fingerprint_hint} " " <code class="break-all">{fingerprint.to_string()}</code>
                </p>
            })}
        </section>
    }
    .erased()
}

/// The agent's settings as lines of an environment file.
fn environment(created: &CreatedWorker, kind: Option<WorkerType>, session: Option<&SessionView>) -> String {
    let mut lines = Vec::new();
    if let Some(session) = session {
        lines.push(format!("SIMPLETUNER_ORCHESTRATOR_URL={}", session.base_url));
    }
    if let Some(fingerprint) = session.and_then(|session| session.fingerprint) {
        lines.push(format!("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT={fingerprint}"));
    }
    lines.push(format!("SIMPLETUNER_WORKER_TOKEN={}", created.token));
    lines.push(format!("SIMPLETUNER_WORKER_NAME={}", created.name));
    if let Some(kind) = kind {
        lines.push(format!("SIMPLETUNER_WORKER_PERSISTENT={}", kind == WorkerType::Persistent));
    }
    lines.join("\n")
}

/// Waits for the worker's first contact and turns green with it.
#[component]
pub(crate) fn FirstContact(worker: RwSignal<WorkerView>, #[prop(optional)] token_shown: bool) -> impl IntoView {
    let words = &t().worker;
    let came = Memo::new(move |_| worker.with(|worker| worker.last_heartbeat.is_some()));
    let late = RwSignal::new(!token_shown);
    Effect::new(move |_| {
        if let Ok(handle) = set_timeout_with_handle(move || _ = late.try_set(true), PATIENCE) {
            on_cleanup(move || handle.clear());
        }
    });
    view! {
        <section class=move || if came.get() { "panel contact is-here" } else { "panel contact" } aria-live="polite">
            <span class="contact-sign"><span class="contact-ring"></span>{move || came.get().then(|| view! { <Icon glyph=Glyph::Check/> })}</span>
            <div class="min-w-0 grow">
                <p class="font-semibold">{move || if came.get() { words.connected } else { words.waiting }}</p>
                <p class="text-muted">{move || if came.get() { words.connected_hint } else { words.waiting_hint }}</p>
                {move || (late.get() && !came.get()).then(|| view! {
                    <div class="mt-3">
                        <p class="font-medium">{words.causes_title}</p>
                        <ul class="mt-1 list-disc space-y-1 pl-5 text-muted">
                            {words.causes.iter().map(|cause| view! { <li>{*cause}</li> }).collect_view()}
                        </ul>
                        {(!token_shown).then(|| view! { <p class="mt-2 text-muted">{words.token_lost}</p> })}
                    </div>
                })}
            </div>
            {move || came.get().then(|| view! { <ButtonLink href="/train" label=words.first_job glyph=Glyph::Train/> })}
        </section>
    }
    .erased()
}
