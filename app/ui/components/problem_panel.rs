//! Panels and notices for errors: what is wrong, what to do, and the request ID.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::copy::CopyButton;
use super::icon::Icon;
use crate::protocol::problem::Problem;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::http_status::set_status;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;

/// A panel in place of content that could not be loaded. On the server it also sets the HTTP status of the page.
#[component]
pub(crate) fn ProblemPanel(problem: Problem) -> impl IntoView {
    let words = &t().problem;
    set_status(problem.status);
    let (title, text) = match problem.status {
        0 => (words.no_answer, words.no_answer_text.to_owned()),
        401 => (words.signed_out, words.signed_out_text.to_owned()),
        403 => (words.forbidden, problem.detail.clone()),
        404 => (words.not_found, words.not_found_text.to_owned()),
        _ => (words.title, problem.detail.clone()),
    };
    let (current_url, login) = (use_current_url(), use_login_url());
    let next = move || match problem.status {
        401 => (login.get(), words.sign_in),
        // A retry would not help, so the link leads to the overview page, which every user can see.
        403 | 404 => ("/".to_owned(), words.home),
        // The browser loads the page again, which also helps if the script in the browser is stuck.
        _ => (current_url.get(), words.retry),
    };
    view! {
        <div class="panel empty" role="alert">
            <span class="empty-icon is-bad"><Icon glyph=Glyph::Warning class="icon-lg"/></span>
            <p class="empty-title">{title}</p>
            <p class="empty-text">{text}</p>
            <p class="mt-4"><a class="btn btn-primary btn-sm" rel="external" href=move || next().0>{move || next().1}</a></p>
            {problem.request_id.map(|id| view! { <p class="mt-3 font-mono text-xs text-muted">{words.request_id.of(&id)}</p> })}
        </div>
    }
    .into_erased()
}

/// An error above a form. The request ID is shown only for errors that the user cannot correct.
#[component]
pub(crate) fn ProblemNotice(problem: Problem) -> impl IntoView {
    let id = problem.request_id.filter(|_| problem.status >= 500);
    let text = if problem.status == 0 { t().problem.no_answer_text.to_owned() } else { problem.detail };
    view! {
        <div class="notice notice-bad" role="alert">
            <Icon glyph=Glyph::Warning/>
            <div class="toast-text grow">
                <p>{text}</p>
                {id.map(|id| view! { <p class="toast-id"><RequestIdText id=id/></p> })}
            </div>
        </div>
    }
    .into_erased()
}

/// The request ID, with a button to copy it for an error report.
#[component]
pub(crate) fn RequestIdText(id: String) -> impl IntoView {
    let label = t().problem.request_id.of(&id);
    view! { <span class="request-id">{label.clone()}<CopyButton text=id label=label/></span> }.into_erased()
}

/// The path and query of a server-rendered page, which change only when the browser loads another page.
#[derive(Clone)]
pub(crate) struct CurrentUrl(pub String);

/// Returns the path and query of the page.
pub(crate) fn use_current_url() -> Signal<String> {
    if let Some(CurrentUrl(url)) = use_context() {
        return Signal::stored(url);
    }
    let location = use_location();
    Signal::derive(move || {
        let query = location.search.get();
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{}{separator}{query}", location.pathname.get())
    })
}

/// Returns the URL of the sign-in page that leads back to this page.
pub(crate) fn use_login_url() -> Signal<String> {
    let current_url = use_current_url();
    Signal::derive(move || format!("/login{}", query_string(&[("next", Some(current_url.get()))])))
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn problem_panel_links_to_an_accessible_page() {
        let table = [(401, "/login?next=%2Fgpus"), (403, "/"), (404, "/"), (500, "/gpus"), (0, "/gpus")];
        for (status, href) in table {
            let html = Owner::new().with(|| {
                provide_context(CurrentUrl("/gpus".to_owned()));
                view! { <ProblemPanel problem=Problem::new(status, "", "", "")/> }.into_erased().to_html()
            });
            assert_eq!(html.matches("<a ").count(), 1, "{html}");
            assert!(html.contains(&format!("href=\"{href}\"")), "{status}: {html}");
        }
    }
}
