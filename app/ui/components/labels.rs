//! Labels as chips, and form fields for them.

use leptos::prelude::*;

#[cfg(feature = "ssr")]
use super::field::FieldError;
use crate::domain::labels::Labels;
use crate::ui::erase::Erase;
#[cfg(feature = "ssr")]
use crate::ui::form_errors::FormErrors;
use crate::ui::page_query::query_string;

/// The maximum number of labels in a table row.
pub(crate) const MAX_IN_ROW: usize = 2;

/// The labels as chips, or the text `none` if there are no labels.
#[component]
pub(crate) fn LabelChips(
    labels: Labels,
    list: &'static str,
    none: &'static str,
    #[prop(default = usize::MAX)] max: usize,
) -> impl IntoView {
    if labels.0.is_empty() {
        view! { <span class="text-muted">{none}</span> }.into_erased()
    } else {
        label_chips(labels, list, max)
    }
}

/// Renders each label as a link to the entries of `list` that have it. Labels beyond `max` are only counted; the title
/// of the count lists them.
pub(crate) fn label_chips(labels: Labels, list: &'static str, max: usize) -> AnyView {
    let texts: Vec<_> = labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let overflow = texts.get(max..).filter(|overflow| !overflow.is_empty()).map(|overflow| {
        view! { <li class="text-muted" title=overflow.join("\n")>{format!("+{}", overflow.len())}</li> }
    });
    let chips = labels.0.into_iter().zip(texts).take(max).map(|((key, value), text)| {
        let href = format!("{list}{}", query_string(&[("label", Some(text.clone()))]));
        view! { <li><a class="chip chip-link" href=href title=text><span class="text-muted">{key}"="</span>{value}</a></li> }
    });
    view! { <ul class="labels">{chips.collect_view()}{overflow}</ul> }.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn invalid_label_rows_are_marked() {
        let rows = ["team=nlp", "nonsense", "", "zone"].map(str::to_owned);
        assert_eq!(invalid_rows(&rows), [1, 3]);
        assert_eq!(invalid_rows(&rows[..1]), [0], "the first is marked where no row is invalid by itself");
    }

    #[test]
    fn row_shows_two_labels_and_counts_the_others() {
        let labels = |count: u32| Labels((1..=count).map(|at| (format!("k{at}"), format!("v{at}"))).collect());
        let chips_html =
            |count| Owner::new().with(|| label_chips(labels(count), "/jobs", MAX_IN_ROW).to_html().replace("<!>", ""));
        assert_eq!(chips_html(2).matches("<a ").count(), 2);
        assert!(!chips_html(2).contains('+'), "{}", chips_html(2));
        assert_eq!(chips_html(4).matches("<a ").count(), 2);
        assert!(chips_html(4).contains("title=\"k3=v3\nk4=v4\""), "{}", chips_html(4));
        assert!(chips_html(4).contains(">+2</li>"), "{}", chips_html(4));
    }
}

/// The minimum number of fields, and of empty ones among them.
#[cfg(feature = "ssr")]
const ROW_COUNTS: (usize, usize) = (3, 1);

/// The id of the `<datalist>` of [`LabelSuggestions`].
#[cfg(feature = "ssr")]
const SUGGESTIONS_ID: &str = "known-labels";

/// A field for each line of `typed`, such as `key=value`, followed by empty fields.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn LabelInputs(
    name: &'static str,
    typed: String,
    label: crate::ui::locales::sentence::Phrase,
    /// The id of the element that describes the fields.
    #[prop(default = "labels-hint")]
    hint: &'static str,
    /// The id of the `<datalist>` with suggestions.
    #[prop(default = Some(SUGGESTIONS_ID))]
    list: Option<&'static str>,
    #[prop(optional)] errors: FormErrors,
) -> impl IntoView {
    let mut rows: Vec<String> = typed.lines().map(str::trim).filter(|row| !row.is_empty()).map(str::to_owned).collect();
    rows.resize((rows.len() + ROW_COUNTS.1).max(ROW_COUNTS.0), String::new());
    let invalid = if errors.has_any(&[name]) { invalid_rows(&rows) } else { Vec::new() };
    let focused = invalid.first().filter(|_| errors.is_first(name)).copied();
    let rows = rows.into_iter().enumerate().map(|(index, row)| {
        let is_invalid = invalid.contains(&index);
        let described_by = if is_invalid { errors.aria_describedby(name, Some(hint)) } else { Some(hint.to_owned()) };
        view! {
            <input class="input w-full font-mono" name=name list=list autocomplete="off" spellcheck="false"
                aria-label=label.of(index + 1) aria-describedby=described_by aria-invalid=is_invalid.then_some("true")
                autofocus={focused == Some(index)} placeholder="key=value" value=row/>
        }
    });
    view! {
        <div class="label-rows">{rows.collect_view()}</div>
        {errors.message(name).map(|error| view! { <FieldError id=name error=error/> })}
    }
    .into_erased()
}

/// Returns the indexes of the rows that do not parse; the first row if each row by itself does.
#[cfg(feature = "ssr")]
fn invalid_rows(rows: &[String]) -> Vec<usize> {
    let is_invalid = |row: &String| Labels::parse_entries(std::iter::once(row.as_str())).1.is_err();
    let invalid: Vec<usize> =
        rows.iter().enumerate().filter(|(_, row)| is_invalid(row)).map(|(index, _)| index).collect();
    if invalid.is_empty() { vec![0] } else { invalid }
}

/// A `<datalist>` of the labels that workers have.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn LabelSuggestions(labels: crate::protocol::workers::FleetLabels) -> impl IntoView {
    let pairs = labels
        .labels
        .into_iter()
        .flat_map(|(key, values)| values.into_iter().map(move |value| format!("{key}={value}")));
    let options = pairs.map(|pair| view! { <option value=pair></option> }).collect_view();
    view! { <datalist id=SUGGESTIONS_ID>{options}</datalist> }.into_erased()
}
