//! Labels as chips.

use leptos::prelude::*;

use crate::domain::labels::Labels;
use crate::ui::erase::Erase;
use crate::ui::format::query_string;

/// The labels as [`chips`], or a word where there are none.
#[component]
pub(crate) fn LabelChips(labels: Labels, list: &'static str, none: &'static str) -> impl IntoView {
    if labels.0.is_empty() { view! { <span class="text-muted">{none}</span> }.erased() } else { chips(labels, list) }
}

/// Labels, each of which leads to what has it in a list.
pub(crate) fn chips(labels: Labels, list: &'static str) -> AnyView {
    let chips = labels.0.into_iter().map(|(key, value)| {
        let href = format!("{list}{}", query_string(&[("label", Some(format!("{key}={value}")))]));
        view! { <li><a class="chip chip-link" href=href><span class="text-muted">{key}"="</span>{value}</a></li> }
    });
    view! { <ul class="flex flex-wrap gap-1">{chips.collect_view()}</ul> }.erased()
}

/// So many fields for labels stand there at least, and so many empty ones below those that are filled.
#[cfg(feature = "ssr")]
const ROWS: (usize, usize) = (3, 1);

/// The list of what [`LabelRows`] suggest.
#[cfg(feature = "ssr")]
const SUGGESTED: &str = "known-labels";

/// A field for each label, as `key=value`, one a line.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn LabelRows(
    name: &'static str,
    typed: String,
    label: crate::ui::locales::sentence::Phrase,
    /// What describes the fields.
    #[prop(default = "labels-hint")]
    hint: &'static str,
    /// What they suggest.
    #[prop(default = Some(SUGGESTED))]
    list: Option<&'static str>,
) -> impl IntoView {
    let mut rows: Vec<String> = typed.lines().map(str::trim).filter(|row| !row.is_empty()).map(str::to_owned).collect();
    rows.resize((rows.len() + ROWS.1).max(ROWS.0), String::new());
    let rows = rows.into_iter().enumerate().map(|(at, row)| {
        view! {
            <input class="input w-full font-mono" name=name list=list autocomplete="off" spellcheck="false"
                aria-label=label.of(at + 1) aria-describedby=hint placeholder="key=value" value=row/>
        }
    });
    view! { <div class="label-rows">{rows.collect_view()}</div> }.erased()
}

/// The labels that workers have, for fields to suggest.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn LabelSuggestions(labels: crate::protocol::workers::FleetLabels) -> impl IntoView {
    let pairs = labels
        .labels
        .into_iter()
        .flat_map(|(key, values)| values.into_iter().map(move |value| format!("{key}={value}")));
    let options = pairs.map(|pair| view! { <option value=pair></option> }).collect_view();
    view! { <datalist id=SUGGESTED>{options}</datalist> }.erased()
}
