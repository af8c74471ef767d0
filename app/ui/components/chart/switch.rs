//! A choice that is stored in the URL: links that preserve the other query parameters.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::ui::erase::Erase;

/// A choice: its value in the URL, none for the default, and its label.
pub(crate) type SwitchOption = (Option<&'static str>, &'static str);

/// Links that set one query parameter; `panel` is the id of the element that they affect and scroll to.
#[component]
pub(crate) fn Switch(
    label: &'static str,
    key: &'static str,
    panel: &'static str,
    choices: Vec<SwitchOption>,
    /// Whether the label is visible, for choices that are not clear without it.
    #[prop(optional)]
    has_label: bool,
    /// Parameters that only make sense with the current choice.
    #[prop(optional)]
    clears: &'static [&'static str],
) -> impl IntoView {
    let query = use_query_map();
    let links = choices.clone().into_iter().map(|(value, text)| {
        let others: Vec<_> = choices.iter().filter_map(|(value, _)| *value).collect();
        let current = move || query.with(|query| query.get(key)).filter(|current| others.contains(&current.as_str()));
        let href = move || {
            let mut query = query.get();
            for key in clears.iter().chain([&key]) {
                query.remove(key);
            }
            if let Some(value) = value {
                query.insert(key, value.to_owned());
            }
            let query = query.to_query_string();
            format!("{}#{panel}", if query.is_empty() { "?" } else { query.as_str() })
        };
        view! {
            <a class="switch-link" href=href data-noscroll="" aria-current=move || (current().as_deref() == value).then_some("true")>{text}</a>
        }
    });
    let visible_label = has_label.then(|| view! { <span class="switch-label">{label}</span> });
    view! { <nav class="switch" aria-label=label>{visible_label}{links.collect_view()}</nav> }.into_erased()
}
