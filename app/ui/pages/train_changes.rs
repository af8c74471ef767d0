//! What to check before a submit: changes by others, a newer revision, and overrides.

use leptos::prelude::*;

use super::config::RevisionDiff;
use super::train_form_fields::TrainFormFields;
use crate::protocol::configs::ConfigDetail;
use crate::ui::backend::UnseenChange;
use crate::ui::components::icon::Icon;
use crate::ui::components::labels::LabelInputs;
use crate::ui::erase::Erase;
use crate::ui::form_errors::FormErrors;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// The changes by others since the user's last run, to be reviewed before the submit.
#[component]
pub(super) fn UnseenChanges(
    fields: TrainFormFields,
    shown: ConfigDetail,
    earlier: ConfigDetail,
    unseen: UnseenChange,
) -> impl IntoView {
    let words = &t().server_pages().train;
    let (newest, changed_by) = (shown.config.revision, unseen.changed_by.unwrap_or_else(|| "?".to_owned()));
    let reviewed = format!("{}@{newest}", shown.config.name);
    let checked = fields.text("reviewed") == reviewed;
    view! {
        <section class="space-y-4" aria-labelledby="changed">
            <div class="panel form">
                <h2 id="changed" class="panel-title"><Icon glyph=Glyph::Warning/>{words.changed_title}</h2>
                <p>{words.changed_text.with(&[&unseen.last_run, &changed_by, &newest])}</p>
            </div>
            <RevisionDiff earlier=earlier shown=shown split=false/>
            <div class="panel form">
                <span class="tick">
                    <input type="checkbox" class="checkbox checkbox-sm checkbox-primary" id="reviewed" name="reviewed" value=reviewed checked=checked required=true/>
                    <label for="reviewed">{words.changed_tick.of(newest)}</label>
                </span>
            </div>
        </section>
    }
    .into_erased()
}

/// The choice between the revision that the retried job ran and the newest, with their differences.
#[component]
pub(super) fn RevisionChoice(pinned: u32, retried: ConfigDetail, newest: ConfigDetail) -> impl IntoView {
    let words = &t().server_pages().train;
    let name = retried.config.name.clone();
    let choice = |revision: u32, label: String| {
        let (id, value) = (format!("revision-{revision}"), format!("{name}@{revision}"));
        view! {
            <span class="tick">
                <input type="radio" class="radio radio-sm radio-primary" id=id.clone() name="revision" value=value checked={revision == pinned}/>
                <label for=id>{label}</label>
            </span>
        }
    };
    let (old, new) = (retried.config.revision, newest.config.revision);
    let choices = (choice(old, words.newer_keep.of(old)), choice(new, words.newer_take.of(new)));
    let retried_revision = format!("{name}@{old}");
    view! {
        <section class="space-y-4" aria-labelledby="newer">
            <div class="panel form">
                <h2 id="newer" class="panel-title"><Icon glyph=Glyph::Warning/>{words.newer_title}</h2>
                <p>{words.newer_text.with(&[&old, &new])}</p>
                <input type="hidden" name="ran" value=retried_revision/>
                <div class="ticks" role="radiogroup" aria-labelledby="newer">{choices.0}{choices.1}</div>
            </div>
            <RevisionDiff earlier=retried shown=newest split=false/>
        </section>
    }
    .into_erased()
}

/// The values that this job overrides.
#[component]
pub(super) fn OverrideFields(fields: TrainFormFields, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().train;
    let typed = fields.text("overrides");
    let open = !typed.is_empty() || errors.has_any(&["overrides"]);
    view! {
        <details class="fold" open=open>
            <summary>{words.settings}</summary>
            <div class="fold-body">
                <p class="field-hint" id="settings-hint">{words.settings_hint}</p>
                <LabelInputs name="overrides" typed=typed label=words.setting_row hint="settings-hint" list=None errors=errors/>
            </div>
        </details>
    }
    .into_erased()
}
