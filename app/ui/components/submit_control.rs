//! The controls of the submit form.

use leptos::prelude::*;

use super::field::Field;
use crate::ui::erase::Erase;
use crate::ui::form_errors::FormErrors;
use crate::ui::format::escape_html;
use crate::ui::i18n::t;
use crate::ui::submit_form::{Control, Label, SubmitField};

/// Draws the control of a field with its label, hint and error. Fields with a control of their own have none here.
pub(crate) fn submit_control(field: &'static SubmitField, value: String, errors: FormErrors) -> AnyView {
    let (id, label) = (field.name, (field.server.label)(t()));
    let hint = field.server.hint.map(|hint| hint(t()));
    let describedby = errors.aria_describedby(id, hint.map(|_| format!("{id}-hint")).as_deref());
    let (invalid, is_first) = (errors.aria_invalid(id), errors.is_first(id));
    let control = match field.server.control {
        Control::Custom | Control::CustomWithError => return ().into_erased(),
        Control::Checkbox => {
            return view! { <Checkbox name=id checked={value == "true"} label=label text=hint.unwrap_or_default()/> }
                .into_erased();
        }
        Control::Number(allowed) => {
            let (min, max, step, inputmode) = match allowed.limits() {
                Some((min, max)) => (min.to_string(), Some(max.to_string()), None, "numeric"),
                None => ("0.1".to_owned(), None, Some("any"), "decimal"),
            };
            view! {
                <input class="input w-full" id=id name=id type="number" min=min max=max step=step inputmode=inputmode
                    aria-describedby=describedby aria-invalid=invalid autofocus=is_first value=value/>
            }
            .into_erased()
        }
        Control::Text => view! {
            <input class="input w-full" id=id name=id autocomplete="off" spellcheck="false"
                aria-describedby=describedby aria-invalid=invalid autofocus=is_first value=value/>
        }
        .into_erased(),
        Control::Lines => view! {
            <textarea class="textarea w-full" id=id name=id rows="3" spellcheck="false"
                aria-describedby=describedby aria-invalid=invalid autofocus=is_first>{escape_html(&value)}</textarea>
        }
        .into_erased(),
        Control::Select(options) => {
            let option = |(option_value, label): &(&'static str, Label)| {
                view! { <option value={*option_value} selected={value == *option_value}>{label(t())}</option> }
            };
            let options = options.iter().map(option).collect_view();
            view! {
                <select class="select w-full" id=id name=id aria-describedby=describedby aria-invalid=invalid autofocus=is_first>{options}</select>
            }
            .into_erased()
        }
    };
    view! { <Field id=id label=label hint=hint error=errors.message(id)>{control}</Field> }.into_erased()
}

#[component]
fn Checkbox(name: &'static str, checked: bool, label: &'static str, text: &'static str) -> impl IntoView {
    view! {
        <div class="choice">
            <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id=name name=name value="true" checked=checked/>
            <label for=name><span class="font-medium">{label}</span><span class="choice-text">{text}</span></label>
        </div>
    }
    .into_erased()
}
