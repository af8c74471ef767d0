//! Form fields with labels and hints that are bound to their controls.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// A label, its control, a hint and an error. The control must have the id `id`, and an `aria-describedby` with
/// `<id>-hint` and `<id>-error`.
#[component]
pub(crate) fn Field(
    id: &'static str,
    label: &'static str,
    #[prop(default = None, into)] hint: Option<&'static str>,
    #[prop(optional)] optional: bool,
    #[prop(default = None)] error: Option<String>,
    children: Children,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for=id>
                {label}
                {optional.then(|| view! { <span class="field-optional">{t().common.optional}</span> })}
            </label>
            {hint.map(|hint| view! { <p class="field-hint" id=format!("{id}-hint")>{hint}</p> })}
            {children()}
            {error.map(|error| view! { <FieldError id=id error=error/> })}
        </div>
    }
    .into_erased()
}

/// The error of a field, with the id `<id>-error`.
#[component]
pub(crate) fn FieldError(id: &'static str, error: String) -> impl IntoView {
    view! { <p class="field-error" id=format!("{id}-error") role="alert">{error}</p> }.into_erased()
}

/// A radio button with a label and an explanation.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn Choice(
    name: &'static str,
    value: &'static str,
    checked: bool,
    label: &'static str,
    text: &'static str,
    #[prop(optional)] disabled: bool,
) -> impl IntoView {
    let id = format!("{name}-{value}");
    view! {
        <div class="choice">
            <input type="radio" class="radio radio-sm radio-primary" id=id.clone() name=name value=value checked=checked disabled=disabled/>
            <label for=id><span class="font-medium">{label}</span><span class="choice-text">{text}</span></label>
        </div>
    }
    .into_erased()
}
