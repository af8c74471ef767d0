//! Buttons that change something: plain forms, which the browser sends over REST and stays on the page. What came of it
//! is said in a corner ([`crate::ui::notes`]).

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

/// What a button does: without JavaScript it posts to `form`, with it it sends `method` to `rest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionTarget {
    pub form_url: String,
    pub method: &'static str,
    pub api_url: String,
}

/// Shows a change before the server has answered: told `true` at once, and `false` if it was refused. It outlives the
/// button, which it may take away.
pub(crate) type OptimisticUpdate = Arc<dyn Fn(bool) + Send + Sync>;

/// What a form says, as the API takes it.
pub(crate) type BodyBuilder = fn(&SubmitEvent) -> String;

/// What is said when it is done.
#[derive(Debug, Clone)]
pub(crate) struct SuccessMessage {
    pub text: Text,
    pub undo: Option<Undo>,
}

/// The form with its one button.
#[component]
pub(crate) fn ActionButton(
    deed: ActionTarget,
    label: &'static str,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
    /// Without it the page itself shows what has changed.
    #[prop(optional_no_strip)]
    said: Option<SuccessMessage>,
    #[prop(optional_no_strip)] turn: Option<OptimisticUpdate>,
    /// The key that goes to the button.
    #[prop(optional)]
    key: Option<&'static str>,
    /// The form's id, for fields that stand elsewhere.
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
            // The news of the change arrive over the stream, and may have taken this button away already.
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

/// The button that takes something back, and then takes itself away.
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

/// A button that first says what will happen. It is a disclosure, so that asking again needs no JavaScript; an address
/// with `?ask=` opens it.
#[component]
pub(crate) fn ConfirmedAction(
    deed: ActionTarget,
    label: &'static str,
    text: &'static str,
    confirm: &'static str,
    keep: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-error")] class: &'static str,
    /// As [`ActionButton`] has it.
    #[prop(optional_no_strip)]
    said: Option<SuccessMessage>,
    /// As [`ActionButton`] has it.
    #[prop(optional_no_strip)]
    turn: Option<OptimisticUpdate>,
    /// The key that opens it.
    #[prop(optional)]
    key: Option<&'static str>,
    /// What an address asks with to find it open; also the id of the form, to which the fields belong.
    #[prop(optional)]
    ask: Option<&'static str>,
    /// As [`ActionButton`] has it.
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

/// A form that first says what will happen. It takes no program: its page answers with a word for the next one.
#[component]
pub(crate) fn ConfirmedForm(
    /// Where it is sent.
    #[prop(into)]
    action: String,
    label: &'static str,
    /// What it is called where several stand in a list.
    #[prop(optional_no_strip)]
    named: Option<String>,
    text: &'static str,
    confirm: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(default = "btn btn-sm btn-error")] confirm_class: &'static str,
    /// Whether it is asked already.
    #[prop(optional)]
    open: bool,
    /// What is sent along.
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

/// Words of a list that ends with a link to all of it.
#[component]
pub(crate) fn MoreLink(
    #[prop(into)] href: String,
    label: &'static str,
    /// `external`, if it leads to a plain page.
    #[prop(optional)]
    rel: Option<&'static str>,
) -> impl IntoView {
    view! { <a class="more-link" href=href rel=rel>{label}<Icon glyph=Glyph::Arrow/></a> }.into_erased()
}

/// A link to a page of forms ([`crate::ui::Plain`]) that looks like a button.
#[component]
pub(crate) fn ButtonLink(
    #[prop(into)] href: String,
    label: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-primary")] class: &'static str,
    /// The key that follows it.
    #[prop(optional)]
    key: Option<&'static str>,
) -> impl IntoView {
    view! { <a class=class rel="external" href=href data-key=key><Icon glyph=glyph/>{label}</a> }.into_erased()
}

/// The way to submit a job, for who may.
#[component]
pub(crate) fn TrainLink() -> impl IntoView {
    let may = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit));
    may.then(|| view! { <ButtonLink href="/train" label=t().jobs.new glyph=Glyph::Train key="c"/> }).into_erased()
}

/// The form that signs out.
#[component]
pub(crate) fn SignOut() -> impl IntoView {
    view! {
        <form method="post" action="/ui/logout">
            <button class="nav-link w-full"><Icon glyph=Glyph::SignOut/>{t().nav.sign_out}</button>
        </form>
    }
    .into_erased()
}
