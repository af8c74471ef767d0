//! The fields of what a team or a member may use, for all forms of it.

use std::collections::BTreeMap;

use leptos::prelude::*;

use crate::domain::shares::ShareSettings;
use crate::ui::components::field::Field;
use crate::ui::erase::Erase;
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// The names of the fields.
const SHARE_FIELDS: [&str; 6] =
    ["weight", "guaranteed_gpus", "max_gpus", "max_gpu_hours", "max_running_jobs", "max_waiting_jobs"];

/// The fields of a form of a team, as names in problems.
pub(super) const TEAM_FIELDS: &[FieldAliases<'static>] = &[
    ("name", &["name", "name_taken"]),
    ("description", &["description"]),
    ("weight", &["weight"]),
    ("guaranteed_gpus", &["guaranteed_gpus"]),
    ("max_gpus", &["max_gpus"]),
    ("max_gpu_hours", &["max_gpu_hours"]),
    ("max_running_jobs", &["max_running_jobs"]),
    ("max_waiting_jobs", &["max_waiting_jobs"]),
    ("user", &["user_not_found"]),
];

fn stored_values(settings: ShareSettings) -> [Option<u32>; 6] {
    let ShareSettings { weight, guaranteed_gpus, max_gpus, max_gpu_hours, max_running_jobs, max_waiting_jobs } =
        settings;
    [Some(weight), Some(guaranteed_gpus), max_gpus, max_gpu_hours, max_running_jobs, max_waiting_jobs]
}

/// The fields, with what the user has typed in a rejected form.
#[component]
pub(super) fn ShareFields(
    settings: ShareSettings,
    typed: BTreeMap<String, String>,
    errors: FormErrors,
) -> impl IntoView {
    let words = &t().server_pages().shares;
    let labels: [(Text, Option<Text>); 6] = [
        (words.weight, Some(words.weight_hint)),
        (words.guaranteed_gpus, Some(words.guaranteed_hint)),
        (words.max_gpus, Some(words.no_limit)),
        (words.max_gpu_hours, Some(words.no_limit)),
        (words.max_running_jobs, Some(words.no_limit)),
        (words.max_waiting_jobs, Some(words.no_limit)),
    ];
    let fields = SHARE_FIELDS.into_iter().zip(labels).zip(stored_values(settings));
    let fields = fields.map(|((name, (label, hint)), stored)| {
        let stored = stored.map(|number| number.to_string()).unwrap_or_default();
        let value = typed.get(name).cloned().unwrap_or(stored);
        let (min, required) = if name == "weight" { ("1", true) } else { ("0", false) };
        view! {
            <Field id=name label=label hint=hint error=errors.message(name)>
                <input class="input w-full" id=name name=name type="number" min=min required=required
                    aria-describedby=errors.aria_describedby(name, Some(&format!("{name}-hint")))
                    aria-invalid=errors.aria_invalid(name) autofocus=errors.is_first(name) value=value/>
            </Field>
        }
    });
    view! { <div class="grid gap-4 md:grid-cols-2">{fields.collect_view()}</div> }.into_erased()
}
