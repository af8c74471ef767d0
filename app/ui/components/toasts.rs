//! Toasts with the results of actions, and the list of past notifications.

use std::sync::Arc;

use leptos::prelude::*;

use super::action::{OptimisticUpdate, UndoButton};
use super::icon::Icon;
use super::problem_panel::RequestIdText;
use super::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::notifications::{Notification, Notifications, Toast, use_notifications};

/// The toasts in the corner. Both live regions exist before they have content, because screen readers would not
/// announce it otherwise.
#[component]
pub(crate) fn Toasts() -> impl IntoView {
    let notifications = use_notifications();
    let region = move |is_error: bool| {
        move || {
            let toasts = notifications.toasts.get().into_iter().filter(|toast| toast.notification.is_error == is_error);
            toasts.map(|toast| view! { <ToastCard toast=toast notifications=notifications/> }).collect_view()
        }
    };
    view! {
        <div class="toasts">
            <div role="status">{region(false)}</div>
            <div role="alert">{region(true)}</div>
        </div>
    }
    .into_erased()
}

#[component]
fn ToastCard(toast: Toast, notifications: Notifications) -> impl IntoView {
    let Toast { id, notification, undo } = toast;
    let (class, glyph) = notification_style(&notification);
    let undo = undo.map(|undo| {
        let optimistic_update: OptimisticUpdate = Arc::new(move |_| notifications.dismiss(id));
        view! { <UndoButton undo=undo optimistic_update=optimistic_update/> }
    });
    view! {
        <div class=format!("toast {class}")>
            <Icon glyph=glyph/>
            <div class="toast-text">
                <p>{notification.text}</p>
                {notification.request_id.map(|id| view! { <p class="toast-id"><RequestIdText id=id/></p> })}
            </div>
            {undo}
            <button type="button" class="icon-button" aria-label=t().common.dismiss on:click=move |_| notifications.dismiss(id)>
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
    .into_erased()
}

fn notification_style(notification: &Notification) -> (&'static str, Glyph) {
    if notification.is_error { ("notice-bad", Glyph::Warning) } else { ("notice-good", Glyph::CheckCircle) }
}

/// The notifications of this tab, newest first.
#[component]
pub(crate) fn NotificationsMenu() -> impl IntoView {
    let words = &t().shell;
    let Some(notifications) = use_context::<Notifications>() else { return ().into_erased() };
    let content = move || {
        let history = notifications.history.get();
        if history.is_empty() {
            return view! { <p class="text-muted">{words.notes_none}</p> }.into_erased();
        }
        let item = |notification: Notification| {
            let (class, glyph) = notification_style(&notification);
            view! {
                <li class=class>
                    <Icon glyph=glyph/>
                    <div class="toast-text">
                        <p>{notification.text}</p>
                        <p class="toast-id"><RelativeTime at=notification.at/>{notification.request_id.map(|id| view! { <RequestIdText id=id/> })}</p>
                    </div>
                </li>
            }
        };
        view! { <ol class="notes-list">{history.into_iter().rev().map(item).collect_view()}</ol> }.into_erased()
    };
    view! {
        <details class="js-only notes">
            <summary class="nav-link">
                <Icon glyph=Glyph::Bell/>
                <span class="notes-name">{words.notes}</span>
                {move || Some(notifications.history.with(Vec::len)).filter(|count| *count > 0).map(|count| view! { <span class="filter-count ml-auto">{count}</span> })}
            </summary>
            <div class="notes-body">{content}</div>
        </details>
    }
    .into_erased()
}
