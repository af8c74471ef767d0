//! The page that is shown instead of the requested one: the error, and where to continue. Signed-in
//! users see it within the layout.

use leptos::prelude::*;
use leptos_meta::{Title, provide_meta_context};
use leptos_router::components::{ParentRoute, Route, Router, Routes};
use leptos_router::path;

use super::clock::PageClock;
use super::components::icon::Icon;
use super::components::layout::{Brand, Layout};
use super::components::time::RelativeTime;
use super::erase::Erase;
use super::flash::{CurrentFlash, Flash};
use super::i18n::t;
use super::page_problem::word_for_page;
use super::prefs::Prefs;
use crate::domain::time::Timestamp;
use crate::protocol::problem::Problem;
use crate::ui::glyph::Glyph;

/// The content of the page.
#[derive(Debug, Clone)]
pub struct PageError {
    /// The reason.
    pub problem: Problem,
    /// Since when the database is unavailable, if that is the reason.
    pub database_down_since: Option<Timestamp>,
    /// The requested address.
    pub path: String,
}

/// The root component of error pages.
#[component]
pub(super) fn ErrorPageApp() -> impl IntoView {
    provide_meta_context();
    let prefs: Prefs = use_context().unwrap_or_default();
    let is_signed_in = prefs.session.is_some();
    provide_context(PageClock::new(&prefs));
    provide_context(CurrentFlash(RwSignal::new(None::<Flash>)));
    provide_context(prefs);
    if is_signed_in {
        view! {
            <Router>
                <Routes fallback=BareErrorPage>
                    <ParentRoute path=path!("") view=Layout>
                        <Route path=path!("/*any") view=ErrorDetails/>
                    </ParentRoute>
                </Routes>
            </Router>
        }
        .into_erased()
    } else {
        view! { <Router><BareErrorPage/></Router> }.into_erased()
    }
}

#[component]
fn BareErrorPage() -> impl IntoView {
    view! {
        <main class="login" id="content">
            <div class="login-card"><Brand/><div class="mt-6"><ErrorDetails/></div></div>
        </main>
    }
    .into_erased()
}

#[component]
fn ErrorDetails() -> impl IntoView {
    let language = t();
    let (words, errors) = (&language.problem, &language.server_pages().errors);
    let Some(PageError { problem, database_down_since, path }) = use_context::<PageError>() else {
        return ().into_erased();
    };
    let problem = word_for_page(problem, language.locale);
    let title = match problem.status {
        401 => words.signed_out,
        403 => words.forbidden,
        404 => words.not_found_page,
        405 => errors.title_method,
        429 => errors.title_rate_limited,
        500 => errors.title_failed,
        503 if problem.code == "database_unavailable" => errors.title_no_database,
        _ => words.title,
    };
    let text = if problem.status == 404 { words.not_found_page_text.to_owned() } else { problem.detail };
    // Only errors that may be temporary offer a retry, not missing pages or permissions.
    let can_retry = problem.status >= 429;
    let since = database_down_since
        .map(|at| view! { <p class="mt-2 text-sm text-muted">{errors.away_since}" "<RelativeTime at=at/></p> });
    view! {
        <Title text=language.common.title.of(title)/>
        <div class="panel empty">
            <span class="empty-icon is-bad"><Icon glyph=Glyph::Warning class="icon-lg"/></span>
            <p class="font-mono text-muted">{problem.status}</p>
            <h1 class="empty-title">{title}</h1>
            <p class="empty-text">{text}</p>
            {since}
            <p class="mt-4 flex flex-wrap justify-center gap-2">
                {can_retry.then(|| view! { <a class="btn btn-sm btn-primary" href=path>{words.retry}</a> })}
                <a class=if can_retry { "btn btn-sm" } else { "btn btn-sm btn-primary" } href="/">{words.home}</a>
            </p>
            {problem.request_id.map(|id| view! { <p class="mt-3 font-mono text-xs text-muted">{words.request_id.of(&id)}</p> })}
        </div>
    }
    .into_erased()
}
