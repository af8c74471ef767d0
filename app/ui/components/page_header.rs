//! The header of a page: a link to the parent page, the heading, and actions.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::erase::Erase;
use crate::ui::format::escape_html;
use crate::ui::i18n::t;

/// Returns the title of the document. On the server it is escaped, because `leptos_meta` 0.8 writes it into the HTML
/// unescaped; in the browser it is set as text.
fn document_title(text: &str) -> String {
    if cfg!(feature = "ssr") { escape_html(text) } else { text.to_owned() }
}

/// The URL and name of the parent page.
pub(crate) struct ParentPage {
    href: String,
    name: String,
}

impl<A: Into<String>, B: Into<String>> From<(A, B)> for ParentPage {
    fn from((href, name): (A, B)) -> Self {
        Self { href: href.into(), name: name.into() }
    }
}

/// The header of a page. It also sets the title of the document.
#[component]
pub(crate) fn PageHeader(
    #[prop(into)] title: String,
    #[prop(optional, into)] above: Option<ParentPage>,
    #[prop(optional)] intro: Option<&'static str>,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <Title text=document_title(&t().common.title.of(&title))/>
        <header class="page-head">
            <div class="min-w-0 grow">
                {above.map(|ParentPage { href, name }| view! { <a class="crumb" href=href>{name}</a> })}
                <h1>{title}</h1>
                {intro.map(|intro| view! { <p class="mt-1 max-w-2xl text-muted">{intro}</p> })}
            </div>
            {children.map(|children| view! { <div class="page-actions">{children()}</div> })}
        </header>
    }
    .into_erased()
}
