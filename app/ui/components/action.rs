//! Buttons that change something. They are plain forms; with JavaScript, the browser posts the same form, stays on the
//! page and shows the result as a notification ([`crate::ui::notifications`]).

use std::sync::Arc;

use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_query_map;

use super::icon::Icon;
use crate::domain::access::Permission;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormResponse, Undo};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::notifications::use_notifications;
use crate::ui::prefs::Prefs;

/// Shows a change before the server has answered: called with `true` before the request is sent, and with `false` if
/// the request fails. It outlives the button, which it may remove.
pub(crate) type OptimisticUpdate = Arc<dyn Fn(bool) + Send + Sync>;

/// A form with a single button.
#[component]
pub(crate) fn ActionButton(
    /// The URL to which the form posts.
    action: String,
    label: &'static str,
    #[prop(default = "btn btn-sm")] class: &'static str,
    #[prop(optional)] glyph: Option<Glyph>,
    #[prop(optional_no_strip)] optimistic_update: Option<OptimisticUpdate>,
    /// The shortcut key that focuses the button.
    #[prop(optional)]
    key: Option<&'static str>,
    /// The id of the form, for fields outside of it.
    #[prop(optional_no_strip)]
    id: Option<&'static str>,
) -> impl IntoView {
    let pending = RwSignal::new(false);
    let notifications = use_notifications();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if pending.get_untracked() {
            return;
        }
        pending.set(true);
        let (response, optimistic_update) = (browser::post_form(&event), optimistic_update.clone());
        spawn_local(async move {
            if let Some(update) = &optimistic_update {
                update(true);
            }
            let result = response.await;
            // The optimistic update or a change notification may have removed the button and disposed of this signal.
            pending.try_set(false);
            match result {
                Ok(FormResponse { text, undo }) => notifications.success(text, undo),
                Err(problem) => {
                    if let Some(update) = &optimistic_update {
                        update(false);
                    }
                    notifications.error(problem);
                }
            }
        });
    };
    view! {
        <form method="post" action=action id=id on:submit=submit>
            <button class=class data-key=key aria-busy=move || pending.get().then_some("true")>
                {glyph.map(|glyph| view! { <Icon glyph=glyph/> })}
                {label}
            </button>
        </form>
    }
    .into_erased()
}

/// A button that undoes a change. Without fields it stays on the page, and `optimistic_update` removes it. An undo with
/// fields restores values that the page shows in many places: the browser submits it, and the next page shows the result.
#[component]
pub(crate) fn UndoButton(undo: Undo, optimistic_update: OptimisticUpdate) -> impl IntoView {
    let (Undo { form, fields }, label) = (undo, t().shell.undo);
    if fields.is_empty() {
        return view! { <ActionButton action=form label=label optimistic_update=Some(optimistic_update) key="u"/> }
            .into_erased();
    }
    let fields = fields.into_iter().map(|(name, value)| view! { <input type="hidden" name=name value=value/> });
    view! {
        <form method="post" action=form>
            {fields.collect_view()}
            <button class="btn btn-sm" data-key="u">{label}</button>
        </form>
    }
    .into_erased()
}

/// A button that explains its effect and asks for confirmation. It is a `<details>` element, so that it needs no
/// JavaScript to open; a URL with `?confirm=` opens it as well.
#[component]
pub(crate) fn ConfirmedAction(
    /// The URL to which the form posts.
    action: String,
    label: &'static str,
    text: &'static str,
    confirm: &'static str,
    keep: &'static str,
    glyph: Glyph,
    #[prop(default = "btn btn-sm btn-error")] class: &'static str,
    /// The class of the button that opens the confirmation.
    #[prop(default = "btn btn-sm")]
    summary_class: &'static str,
    /// Passed to [`ActionButton`].
    #[prop(optional_no_strip)]
    optimistic_update: Option<OptimisticUpdate>,
    /// The shortcut key that opens or closes the confirmation.
    #[prop(optional)]
    key: Option<&'static str>,
    /// The value of `?confirm=` that opens the confirmation; also the id of the form, for fields outside of it.
    #[prop(optional)]
    confirm_id: Option<&'static str>,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let details = NodeRef::<leptos::html::Details>::new();
    let query_map = use_query_map();
    let open = move || confirm_id.is_some() && query_map.with(|query| query.get("confirm")).as_deref() == confirm_id;
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
            <summary class=summary_class data-key=key><Icon glyph=glyph/>{label}</summary>
            <div class="confirm-body">
                <p>{text}</p>
                {children.map(|children| children())}
                <div class="mt-3 flex flex-wrap items-start justify-end gap-2">
                    <button type="button" class="js-only btn btn-sm btn-ghost" on:click=move |_| close()>{keep}</button>
                    <ActionButton action=action label=confirm class=class optimistic_update=optimistic_update id=confirm_id/>
                </div>
            </div>
        </details>
    }
    .into_erased()
}

/// A form that explains its effect and asks for confirmation. The browser always submits it, and the next page shows the
/// result ([`crate::ui::flash`]): the effect is another page.
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
    let can_submit = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobSubmit));
    can_submit
        .then(|| view! { <ButtonLink href="/train" label=t().jobs.new glyph=Glyph::Train key="c"/> })
        .into_erased()
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
