//! The first page of a new worker: its token, commands that start its agent, and whether the agent has connected.

use std::time::Duration;

use leptos::prelude::*;

use super::action::ButtonLink;
use super::copy::CopyBlock;
use super::icon::Icon;
use super::time::RelativeTime;
use super::worker_table::describe_gpus;
use crate::protocol::workers::{RejectedAgentView, WorkerView, uses_loopback_address};
use crate::ui::erase::Erase;
use crate::ui::flash::{StartMethod, StartMethodKind};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::prefs::Prefs;

/// How long to wait for the agent before likely causes are listed.
const TROUBLESHOOTING_DELAY: Duration = Duration::from_mins(1);

/// The new token and the methods to start an agent, from the [`Flash`](crate::ui::flash::Flash).
#[component]
pub(crate) fn NewTokenPanel(token: String, start_methods: Vec<StartMethod>) -> impl IntoView {
    let words = &t().worker;
    let session = use_context::<Prefs>().and_then(|prefs| prefs.session);
    let fingerprint = session.and_then(|session| session.fingerprint);
    let uses_loopback = start_methods.iter().any(|method| uses_loopback_address(&method.text));
    let start_methods = start_methods
        .into_iter()
        .enumerate()
        .map(|(index, method)| view! { <StartMethodDetails method=method open={index == 0}/> });
    view! {
        <section class="panel p-5" aria-labelledby="token">
            <h2 id="token" class="panel-title"><Icon glyph=Glyph::Key/>{words.token_title}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.token_text}</p>
            <CopyBlock text=token label=words.token/>
        </section>
        <section class="panel" aria-labelledby="connect">
            <h2 id="connect" class="panel-title px-5 pt-5 pb-3"><Icon glyph=Glyph::Play/>{words.connect_title}</h2>
            {uses_loopback.then(|| view! {
                <div class="notice notice-warn mx-5"><Icon glyph=Glyph::Warning/><p>{words.own_address}</p></div>
            })}
            {start_methods.collect_view()}
            {fingerprint.map(|fingerprint| view! {
                <p class="border-t border-line px-5 py-4 text-sm text-muted">
                    {words.fingerprint_hint} " " <code class="break-all">{fingerprint.to_string()}</code>
                </p>
            })}
        </section>
    }
    .into_erased()
}

/// A method to start the agent. All have the same `name`, so that the browser opens only one at a time.
#[component]
fn StartMethodDetails(method: StartMethod, open: bool) -> impl IntoView {
    let words = &t().worker;
    let (name, hint) = match method.kind {
        StartMethodKind::Shell => (words.shell, words.connect_text),
        StartMethodKind::Systemd => ("systemd", words.start_systemd),
        StartMethodKind::Docker => ("Docker", words.start_docker),
        StartMethodKind::Runpod => ("RunPod", words.start_rented),
        StartMethodKind::Vast => ("Vast.ai", words.start_rented),
        StartMethodKind::Environment => (words.environment, words.environment_hint),
    };
    view! {
        <details class="fold start-method" name="start-method" open=open>
            <summary>{name}</summary>
            <p class="mb-2 max-w-prose text-sm text-muted">{hint}</p>
            <CopyBlock text=method.text label=name/>
        </details>
    }
    .into_erased()
}

/// Returns the likely causes if the agent does not connect.
fn causes() -> impl Iterator<Item = Text> {
    let causes = &t().worker.causes;
    [causes.address, causes.firewall, causes.certificate, causes.token, causes.agent_ended].into_iter()
}

/// Shows whether the agent has registered, and turns green when it does.
#[component]
pub(crate) fn FirstContact(worker: RwSignal<WorkerView>, #[prop(optional)] token_shown: bool) -> impl IntoView {
    let words = &t().worker;
    let is_connected = Memo::new(move |_| worker.with(has_registered));
    let shows_causes = RwSignal::new(!token_shown);
    let agent_text = Memo::new(move |_| {
        worker.with(|worker| if is_connected.get() { describe_agent(worker) } else { String::new() })
    });
    let rejected =
        Memo::new(move |_| worker.with(|worker| worker.last_rejection.clone()).filter(|_| !is_connected.get()));
    let worker_url = worker.with_untracked(|worker| format!("/admin/workers/{}", worker.id));
    Effect::new(move |_| {
        if let Ok(handle) = set_timeout_with_handle(move || _ = shows_causes.try_set(true), TROUBLESHOOTING_DELAY) {
            on_cleanup(move || handle.clear());
        }
    });
    view! {
        <section class=move || if is_connected.get() { "panel contact is-here" } else { "panel contact" } aria-live="polite">
            <span class="contact-sign"><span class="contact-ring"></span>{move || is_connected.get().then(|| view! { <Icon glyph=Glyph::Check/> })}</span>
            <div class="min-w-0 grow">
                <p class="font-semibold">{move || if is_connected.get() { words.connected } else { words.waiting }}</p>
                <p class="text-muted">{move || if is_connected.get() { agent_text.get() } else { words.waiting_hint.to_owned() }}</p>
                {move || rejected.get().map(|agent| view! { <RejectedAgentNotice agent=agent/> })}
                {token_shown.then(|| view! {
                    <p class="no-js-only"><a class="quiet-link" href=worker_url target="_blank" rel="noopener">{words.check_in_new_tab}</a></p>
                })}
                {move || (shows_causes.get() && !is_connected.get()).then(|| view! {
                    <div class="mt-3">
                        <p class="font-medium">{words.causes_title}</p>
                        <ul class="mt-1 list-disc space-y-1 pl-5 text-muted">
                            {causes().map(|cause| view! { <li>{cause}</li> }).collect_view()}
                        </ul>
                        {(!token_shown).then(|| view! { <p class="mt-2 text-muted">{words.token_lost}</p> })}
                    </div>
                })}
            </div>
            {move || is_connected.get().then(|| view! { <ButtonLink href="/train" label=words.first_job glyph=Glyph::Train/> })}
        </section>
    }
    .into_erased()
}

/// Returns whether an agent has registered since the current token was created. A registration from before a rotation
/// does not count.
fn has_registered(worker: &WorkerView) -> bool {
    match (worker.registered_at, worker.token_created_at) {
        (Some(registered), Some(created)) => registered >= created,
        (registered, _) => registered.is_some(),
    }
}

/// A notice that an agent was rejected, and why.
#[component]
fn RejectedAgentNotice(agent: RejectedAgentView) -> impl IntoView {
    let words = &t().worker;
    let RejectedAgentView { at, reason, from } = agent;
    let reason_text = match reason.as_str() {
        "worker_token_invalid" => words.rejected_token.to_owned(),
        "worker_token_expired" => words.rejected_expired.to_owned(),
        "network_not_allowed" => words.rejected_network.to_owned(),
        _ => words.rejected_reason.of(reason),
    };
    view! {
        <div class="notice notice-warn mt-3 mb-0">
            <Icon glyph=Glyph::Warning/>
            <div class="grow">
                <p class="font-medium">{words.rejected} " " <RelativeTime at=at/> {from.map(|from| format!(" {}", words.contact_from.of(from)))}</p>
                <p>{reason_text}</p>
            </div>
        </div>
    }
    .into_erased()
}

/// Describes an agent that has registered: its address, GPUs and version.
fn describe_agent(worker: &WorkerView) -> String {
    let words = t();
    let facts = [
        worker.last_used_from.as_ref().map(|from| words.worker.contact_from.of(from)),
        Some(describe_gpus(&words.workers, worker)),
        worker.agent_version.as_ref().map(|version| words.worker.contact_agent.of(version)),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn after_a_rotation_it_waits_until_an_agent_registers_with_the_new_token() {
        let page = |registered: Option<&str>, token_created: Option<&str>| {
            let timestamp = |time: &str| format!("2026-11-25T{time}Z");
            let worker = json!({
                "id": "w_1", "worker_id": "w_1", "name": "gpu-1", "status": "offline",
                "status_since": "2026-11-25T00:00:00Z", "local": false, "draining": false, "max_jobs": 1, "gpu_count": 0,
                "labels": {}, "reported_labels": {}, "ignore_reported_labels": false,
                "created_at": "2026-11-25T00:00:00Z", "jobs": [], "last_heartbeat": registered.map(timestamp),
                "registered_at": registered.map(timestamp), "token_created_at": token_created.map(timestamp),
            });
            let worker: WorkerView = serde_json::from_value(worker).expect("a worker");
            Owner::new().with(|| view! { <FirstContact worker=RwSignal::new(worker) token_shown=true/> }.to_html())
        };
        for (registered, token_created, is_connected) in [
            (None, Some("10:00:00"), false),
            (Some("09:59:59.999"), Some("10:00:00"), false),
            (Some("10:00:00"), Some("10:00:00"), true),
            (Some("10:00:07"), Some("10:00:00"), true),
            (Some("10:00:07"), None, true),
        ] {
            let page = page(registered, token_created);
            let has_text = |words: &str| page.contains(&format!(">{words}<"));
            let texts =
                (page.contains("contact is-here"), has_text(t().worker.connected), has_text(t().worker.waiting));
            assert_eq!(texts, (is_connected, is_connected, !is_connected), "{registered:?}, {token_created:?}: {page}");
        }
    }

    #[test]
    fn loopback_address_is_warned_of() {
        let page = |url: &str| {
            let start_methods = vec![StartMethod {
                kind: StartMethodKind::Shell,
                text: format!("simpletuner worker --orchestrator-url {url}"),
            }];
            Owner::new()
                .with(|| view! { <NewTokenPanel token="wt_1".to_owned() start_methods=start_methods/> }.to_html())
        };
        for url in ["http://localhost:8001", "http://127.0.0.1:8001", "http://127.0.1.1", "https://[::1]:8001"] {
            assert!(page(url).contains(t().worker.own_address), "{url}");
        }
        assert!(!page("https://gpu.example").contains(t().worker.own_address));
    }
}
