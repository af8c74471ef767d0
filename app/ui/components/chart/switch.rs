//! A choice that stands in the address: links, each with all else that the address says.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::ui::erase::Erase;

/// What can be chosen: the value in the address, none for what is meant without, and its word.
pub(crate) type SwitchOption = (Option<&'static str>, &'static str);

/// Links that set one key of the address; `panel` is the id of what they are about.
#[component]
pub(crate) fn Switch(
    label: &'static str,
    key: &'static str,
    panel: &'static str,
    choices: Vec<SwitchOption>,
    /// Whether the label is seen: where the choices do not say what they are of.
    #[prop(optional)]
    labelled: bool,
) -> impl IntoView {
    let query = use_query_map();
    let links = choices.clone().into_iter().map(|(value, word)| {
        let others: Vec<_> = choices.iter().filter_map(|(value, _)| *value).collect();
        let chosen = move || query.with(|query| query.get(key)).filter(|chosen| others.contains(&chosen.as_str()));
        let href = move || {
            let mut query = query.get();
            query.remove(key);
            if let Some(value) = value {
                query.insert(key, value.to_owned());
            }
            let query = query.to_query_string();
            format!("{}#{panel}", if query.is_empty() { "?" } else { query.as_str() })
        };
        view! {
            <a class="switch-link" href=href data-noscroll="" aria-current=move || (chosen().as_deref() == value).then_some("true")>{word}</a>
        }
    });
    let seen = labelled.then(|| view! { <span class="switch-label">{label}</span> });
    view! { <nav class="switch" aria-label=label>{seen}{links.collect_view()}</nav> }.into_erased()
}
