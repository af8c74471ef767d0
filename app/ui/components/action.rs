//! Buttons that change something. They are plain forms; with JavaScript, the browser calls the REST API instead, stays
//! on the page and shows the result as a notification ([`crate::ui::notifications`]).

use std::sync::Arc;

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_query_map;

use super::flash_banner::notice_text;
use super::icon::{Glyph, Icon};
use crate::domain::access::Permission;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::flash::Undo;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::notifications::use_notifications;
use crate::ui::prefs::Prefs;

/// The request of a button: with JavaScript it sends `method` to `api_url`, without JavaScript the form posts to
/// `form_url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionTarget {
    pub form_url: String,
    pub method: &'static str,
    pub api_url: String,
}

/// Shows a change before the server has answered: called with `true` before the request is sent, and with `false` if
/// the request fails. It outlives the button, which it may remove.
pub(crate) type OptimisticUpdate = Arc<dyn Fn(bool) + Send + Sync>;

/// Builds the JSON request body from a submitted form.
pub(crate) type BodyBuilder = fn(&SubmitEvent) -> String;

/// The notification of a successful action.
#[derive(Debug, Clone)]
pub(crate) struct SuccessMessage {
    pub text: Text,
    pub undo: Option<Undo>,
}

/// A form with a single button, which sends the request of `deed`.
#[component]
pub(crate) fn ActionButton(
    deed: ActionTarget,
    label: &'static str,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
    /// Omitted if the page itself shows the change.
    #[prop(optional_no_strip)]
    said: Option<SuccessMessage>,
    #[prop(optional_no_strip)] turn: Option<OptimisticUpdate>,
    /// The shortcut key that focuses the button.
    #[prop(optional)]
    key: Option<&'static str>,
    /// The id of the form, for fields outside of it.
    #[prop(optional_no_strip)]
    id: Option<&'static str>,
    #[prop(optional_no_strip)] body: Option<BodyBuilder>,
) -> impl IntoView {
    let pending = RwSignal::new(false);
    let notes = use_notifications();
    let ActionTarget { form_url, method, api_url } = deed;
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if pending.get_untracked() {
            return;
        }
        pending.set(true);
        let (api_url, said, turn, body) = (api_url.clone(), said.clone(), turn.clone(), body.map(|body| body(&event)));
        spawn_local(async move {
            if let Some(turn) = &turn {
                turn(true);
            }
            let result = browser::send(method, api_url, body).await;
            // The optimistic update or a change notification may have removed the button and disposed of this signal.
            pending.try_set(false);
            match (result, said) {
                (Ok(()), Some(SuccessMessage { text, undo })) => notes.success(text, undo),
                (Ok(()), None) => {}
                (Err(problem), _) => {
                    if let Some(turn) = &turn {
                        turn(false);
                    }
                    notes.error(problem);
                }
            }
        });
    };
    view! {
        <form method="post" action=form_url id=id on:submit=submit>
            <button class=class data-key=key aria-busy=move || pending.get().then_some("true")>
                {glyph.map(|glyph| view! { <Icon glyph=glyph/> })}
                {label}
            </button>
        </form>
    }
    .into_erased()
}

/// A button that undoes a change. If `undo` has an API URL, `gone` removes the button; otherwise the browser submits
/// the form, and the next page shows the result.
#[component]
pub(crate) fn UndoButton(undo: Undo, gone: OptimisticUpdate) -> impl IntoView {
    let (Undo { form: form_url, fields, rest: api_url }, label) = (undo, t().habits.undo);
    if let Some((api_url, code)) = api_url {
        let said = SuccessMessage { text: notice_text(code), undo: None };
        let deed = ActionTarget { form_url, method: "POST", api_url };
        return view! { <ActionButton deed=deed label=label said=Some(said) turn=Some(gone) key="u"/> }.into_erased();
    }
    let fields = fields.into_iter().map(|(name, value)| view! { <input type="hidden" name=name value=value/> });
    view! {
        <form method="post" action=form_url>
            {fields.collect_view()}
            <button class="btn btn-sm" data-key="u">{label}</button>
        </form>
    }
    .into_erased()
}

/// A button that explains its effect and asks for confirmation. It is a `<details>` element, so that it needs no
/// JavaScript to open; a URL with `?ask=` opens it as well.
#[component]
pub(crate) fn ConfirmedAction(
    deed: ActionTarget,
    label: &'static str,
    text: &'static str,
    confirm: &'static str,
    keep: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-error")] class: &'static str,
    /// Passed to [`ActionButton`].
    #[prop(optional_no_strip)]
    said: Option<SuccessMessage>,
    /// Passed to [`ActionButton`].
    #[prop(optional_no_strip)]
    turn: Option<OptimisticUpdate>,
    /// The shortcut key that opens or closes the confirmation.
    #[prop(optional)]
    key: Option<&'static str>,
    /// The value of `?ask=` that opens the confirmation; also the id of the form, for fields outside of it.
    #[prop(optional)]
    ask: Option<&'static str>,
    /// Passed to [`ActionButton`].
    #[prop(optional_no_strip)]
    body: Option<BodyBuilder>,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let details = NodeRef::<leptos::html::Details>::new();
    let asked = use_query_map();
    let open = move || ask.is_some() && asked.with(|query| query.get("ask")).as_deref() == ask;
    let close = move || {
        if let Some(details) = details.get_untracked() {
            details.set_open(false);
        }
    };
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        if event.key() == "Escape" {
            close();
            browser::focus_summary(&event);
        }
    };
    view! {
        <details class="confirm" node_ref=details open=open on:keydown=on_key>
            <summary class="btn btn-sm" data-key=key><Icon glyph=glyph/>{label}</summary>
            <div class="confirm-body">
                <p>{text}</p>
                {children.map(|children| children())}
                <div class="mt-3 flex flex-wrap items-start justify-end gap-2">
                    <button type="button" class="js-only btn btn-sm btn-ghost" on:click=move |_| close()>{keep}</button>
                    <ActionButton deed=deed label=confirm class=class said=said turn=turn id=ask body=body/>
                </div>
            </div>
        </details>
    }
    .into_erased()
}

/// A form that explains its effect and asks for confirmation. It never uses the REST API: the browser submits the form,
/// and the next page shows the result ([`crate::ui::flash`]).
#[component]
pub(crate) fn ConfirmedForm(
    /// The URL to which the form posts.
    #[prop(into)]
    action: String,
    label: &'static str,
    /// The accessible name, which distinguishes it from others in a list.
    #[prop(optional_no_strip)]
    named: Option<String>,
    text: &'static str,
    confirm: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(default = "btn btn-sm btn-error")] confirm_class: &'static str,
    /// Whether the confirmation is initially open.
    #[prop(optional)]
    open: bool,
    /// The fields of the form.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    view! {
        <details class="confirm" open=open>
            <summary class=class aria-label=named>{glyph.map(|glyph| view! { <Icon glyph=glyph/> })}{label}</summary>
            <form class="confirm-body" method="post" action=action>
                <p>{text}</p>
                {children.map(|children| children())}
                <p class="mt-3 flex justify-end"><button class=confirm_class>{confirm}</button></p>
            </form>
        </details>
    }
    .into_erased()
}

/// A link from an excerpt to the complete list.
#[component]
pub(crate) fn MoreLink(
    #[prop(into)] href: String,
    label: &'static str,
    /// `external` makes the browser load the page, instead of the client-side router.
    #[prop(optional)]
    rel: Option<&'static str>,
) -> impl IntoView {
    view! { <a class="more-link" href=href rel=rel>{label}<Icon glyph=Glyph::Arrow/></a> }.into_erased()
}

/// A link that looks like a button. It bypasses the client-side router, because most of its targets are rendered on the
/// server only.
#[component]
pub(crate) fn ButtonLink(
    #[prop(into)] href: String,
    label: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-primary")] class: &'static str,
    /// The shortcut key that follows the link.
    #[prop(optional)]
    key: Option<&'static str>,
) -> impl IntoView {
    view! { <a class=class rel="external" href=href data-key=key><Icon glyph=glyph/>{label}</a> }.into_erased()
}

/// A link to the form for a new job, if the user has permission to submit jobs.
#[component]
pub(crate) fn TrainLink() -> impl IntoView {
    let may = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit));
    may.then(|| view! { <ButtonLink href="/train" label=t().jobs.new glyph=Glyph::Train key="c"/> }).into_erased()
}

#[component]
pub(crate) fn SignOut() -> impl IntoView {
    view! {
        <form method="post" action="/ui/logout">
            <button class="nav-link w-full"><Icon glyph=Glyph::SignOut/>{t().nav.sign_out}</button>
        </form>
    }
    .into_erased()
}
