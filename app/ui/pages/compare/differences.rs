//! What differs between the configurations of jobs.

use leptos::prelude::*;
use serde_json::Value;

use super::{Compared, job_headings, shown_text, value_text};
use crate::protocol::jobs::compare::ComparedConfigKey;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn Differences(compared: Compared) -> impl IntoView {
    let words = &t().compare;
    let config = Memo::new(move |_| compared.comparison.with(|comparison| comparison.config.clone()));
    let content = move || match config.get() {
        None => view! { <p class="panel-empty">{words.config_hidden}</p> }.into_erased(),
        Some(keys) => {
            let (differing, same): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| key.differs);
            let differences = if differing.is_empty() {
                view! { <p class="panel-empty">{words.none_differ}</p> }.into_erased()
            } else {
                difference_table(differing, compared)
            };
            view! { {differences} {same_values(same)} }.into_erased()
        }
    };
    view! {
        <section class="panel" aria-labelledby="differences">
            <h2 id="differences" class="panel-head">{words.differences}</h2>
            {content}
        </section>
    }
    .into_erased()
}

fn difference_table(keys: Vec<ComparedConfigKey>, compared: Compared) -> AnyView {
    let words = &t().compare;
    let row = |ComparedConfigKey { key, values, .. }: ComparedConfigKey| {
        let cells = values.into_iter().map(|value| view! { <td>{value_view(value.as_ref())}</td> }).collect_view();
        view! { <tr><th scope="row"><bdi class="wrap-anywhere">{shown_text(&key)}</bdi></th>{cells}</tr> }
    };
    view! {
        <div class="compare-scroll" tabindex="0" role="group" aria-label=words.differences>
            <table class="data compare-table">
                <caption class="sr-only">{words.differences}</caption>
                <thead><tr><th scope="col">{words.key}</th>{job_headings(compared)}</tr></thead>
                <tbody>{keys.into_iter().map(row).collect_view()}</tbody>
            </table>
        </div>
    }
    .into_erased()
}

fn same_values(keys: Vec<ComparedConfigKey>) -> AnyView {
    let words = &t().compare;
    if keys.is_empty() {
        return ().into_erased();
    }
    let count = keys.len() as u64;
    let row = |ComparedConfigKey { key, values, .. }: ComparedConfigKey| {
        let value = value_view(values.first().and_then(Option::as_ref));
        view! { <tr><th scope="row"><bdi class="wrap-anywhere">{shown_text(&key)}</bdi></th><td>{value}</td></tr> }
    };
    view! {
        <details class="fold compare-same">
            <summary>{words.same.of(count)}</summary>
            <table class="data">
                <caption class="sr-only">{words.same.of(count)}</caption>
                <thead class="sr-only"><tr><th scope="col">{words.key}</th><th scope="col">{words.value}</th></tr></thead>
                <tbody>{keys.into_iter().map(row).collect_view()}</tbody>
            </table>
        </details>
    }
    .into_erased()
}

fn value_view(value: Option<&Value>) -> AnyView {
    match value {
        None => view! { <span class="text-muted">{t().compare.not_set}</span> }.into_erased(),
        Some(value) => view! { <bdi class="wrap-anywhere">{shown_text(&value_text(value))}</bdi> }.into_erased(),
    }
}
