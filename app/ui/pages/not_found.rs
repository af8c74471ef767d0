//! The page for an unknown address during navigation in the browser; the server responds with its own page
//! (`app/ui/error_page.rs`).

use leptos::prelude::*;
use leptos_meta::Title;

use crate::protocol::problem::Problem;
use crate::ui::components::layout::Brand;
use crate::ui::erase::Erase;
use crate::ui::http_status::set_status;
use crate::ui::i18n::t;

#[component]
pub(crate) fn NotFoundPage() -> impl IntoView {
    let words = &t().problem;
    set_status(404);
    view! {
        <Title text=t().common.title.of(words.not_found_page)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <p class="mt-8 font-mono text-muted">"404"</p>
                <h1>{words.not_found_page}</h1>
                <p class="mt-1 mb-6 text-muted">{words.not_found_page_text}</p>
                <a class="btn btn-primary" href="/">{words.home}</a>
            </div>
        </main>
    }
    .into_erased()
}

/// The problem for an id with invalid syntax.
pub(super) fn not_found_problem() -> Problem {
    Problem::new(404, "Not Found", "not_found", "")
}
