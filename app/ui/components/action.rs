//! Buttons that change something: plain forms, which the browser sends over REST and stays on the page.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::icon::{Glyph, Icon};
use crate::domain::access::Permission;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// What a button does: without JavaScript it posts to `form`, with it it sends `method` to `rest`.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    pub form: String,
    pub method: &'static str,
    pub rest: String,
}

/// The form with its one button.
#[component]
pub(crate) fn ActionButton(
    deed: Deed,
    label: &'static str,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
) -> impl IntoView {
    let pending = RwSignal::new(false);
    let refusal = RwSignal::new(None::<String>);
    let Deed { form, method, rest } = deed;
    let submit = move |event: leptos::ev::SubmitEvent| {
        event.prevent_default();
        if pending.get_untracked() {
            return;
        }
        pending.set(true);
        refusal.set(None);
        let rest = rest.clone();
        spawn_local(async move {
            let result = browser::send(method, rest).await;
            // The news of the change arrive over the stream, and may have taken this button away already.
            pending.try_set(false);
            if let Err(problem) = result {
                refusal.try_set(Some(problem.detail));
            }
        });
    };
    view! {
        <form method="post" action=form on:submit=submit class="inline-flex flex-col items-end gap-1">
            <button class=class aria-busy=move || pending.get().then_some("true")>
                {glyph.map(|glyph| view! { <Icon glyph=glyph/> })}
                {label}
            </button>
            <span role="status">{move || refusal.get().map(|text| view! { <span class="text-sm text-bad">{text}</span> })}</span>
        </form>
    }
    .erased()
}

/// A button that first says what will happen. It is a disclosure, so that asking again needs no JavaScript.
#[component]
pub(crate) fn ConfirmedAction(
    deed: Deed,
    label: &'static str,
    text: &'static str,
    confirm: &'static str,
    keep: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-error")] class: &'static str,
) -> impl IntoView {
    let details = NodeRef::<leptos::html::Details>::new();
    let close = move || {
        if let Some(details) = details.get_untracked() {
            details.set_open(false);
        }
    };
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        if event.key() == "Escape" {
            close();
        }
    };
    view! {
        <details class="confirm" node_ref=details on:keydown=on_key>
            <summary class="btn btn-sm"><Icon glyph=glyph/>{label}</summary>
            <div class="confirm-body">
                <p>{text}</p>
                <div class="mt-3 flex flex-wrap items-start justify-end gap-2">
                    <button type="button" class="js-only btn btn-sm btn-ghost" on:click=move |_| close()>{keep}</button>
                    <ActionButton deed=deed label=confirm class=class/>
                </div>
            </div>
        </details>
    }
    .erased()
}

/// Words of a list that ends with a link to all of it.
#[component]
pub(crate) fn MoreLink(href: &'static str, label: &'static str) -> impl IntoView {
    view! { <a class="more-link" href=href>{label}<Icon glyph=Glyph::Arrow/></a> }.erased()
}

/// A link to a page of forms ([`crate::ui::Plain`]) that looks like a button.
#[component]
pub(crate) fn ButtonLink(
    #[prop(into)] href: String,
    label: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-primary")] class: &'static str,
) -> impl IntoView {
    view! { <a class=class rel="external" href=href><Icon glyph=glyph/>{label}</a> }.erased()
}

/// The way to submit a job, for who may.
#[component]
pub(crate) fn TrainLink() -> impl IntoView {
    let may = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::JobSubmit));
    may.then(|| view! { <ButtonLink href="/train" label=t().jobs.new glyph=Glyph::Train/> }).erased()
}

/// The form that signs out.
#[component]
pub(crate) fn SignOut() -> impl IntoView {
    view! {
        <form method="post" action="/ui/logout">
            <button class="nav-link w-full"><Icon glyph=Glyph::SignOut/>{t().nav.sign_out}</button>
        </form>
    }
    .erased()
}
