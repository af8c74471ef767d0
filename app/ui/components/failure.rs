//! What stands where something could not be shown: what is wrong, what to do, what to quote.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::icon::{Glyph, Icon};
use crate::protocol::problem::Problem;
use crate::ui::answer::set_status;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;

/// A panel instead of what was asked for. On the server it also sets the page's status.
#[component]
pub(crate) fn Failure(problem: Problem) -> impl IntoView {
    let words = &t().problem;
    set_status(problem.status);
    let (title, text) = match problem.status {
        0 => (words.no_answer, words.no_answer_text.to_owned()),
        401 => (words.signed_out, words.signed_out_text.to_owned()),
        403 => (words.forbidden, problem.detail.clone()),
        404 => (words.not_found, words.not_found_text.to_owned()),
        _ => (words.title, problem.detail.clone()),
    };
    let path = use_location().pathname;
    let next = move || match problem.status {
        401 => (format!("/login{}", query_string(&[("next", Some(path.get()))])), words.sign_in),
        404 => ("/".to_owned(), words.home),
        // A plain load of the same address: it also helps when the program in the browser is stuck.
        _ => (path.get(), words.retry),
    };
    view! {
        <div class="panel empty" role="alert">
            <span class="empty-icon is-bad"><Icon glyph=Glyph::Warning class="icon-lg"/></span>
            <p class="empty-title">{title}</p>
            <p class="empty-text">{text}</p>
            <p class="mt-4"><a class="btn btn-primary btn-sm" rel="external" href=move || next().0>{move || next().1}</a></p>
            {problem.request_id.clone().map(|id| view! { <p class="mt-3 font-mono text-xs text-muted">{words.request_id.of(&id)}</p> })}
        </div>
    }
    .erased()
}

/// A refusal above a form.
#[component]
pub(crate) fn Refusal(problem: Problem) -> impl IntoView {
    view! {
        <div class="notice notice-bad" role="alert">
            <Icon glyph=Glyph::Warning/>
            <p class="grow">{problem.detail}</p>
        </div>
    }
    .erased()
}
