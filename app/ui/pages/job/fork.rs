//! The form that forks a job: a new one that starts from a checkpoint of this one, with changed values.

use std::collections::BTreeMap;

use leptos::prelude::*;

use super::header::job_problem_page;
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ResumePointView;
use crate::protocol::jobs::{JobView, SubmitJob};
use crate::ui::backend::use_backend;
use crate::ui::components::field::Field;
use crate::ui::components::labels::LabelInputs;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::components::submit_control::submit_control;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::FormErrors;
use crate::ui::i18n::t;
use crate::ui::pages::server_rendered_page::server_rendered_page;
use crate::ui::submit_form::{SUBMIT_FIELDS, address_fields};

#[component]
pub(crate) fn JobForkPage() -> impl IntoView {
    let backend = use_backend();
    server_rendered_page(
        move |id: JobId| backend.job(id),
        |job| view! { <ForkForm job=job/> }.into_erased(),
        job_problem_page,
    )
}

#[component]
fn ForkForm(job: JobView) -> impl IntoView {
    let (words, train) = (t(), &t().server_pages().train);
    let (title, job_url) = (job.title(), format!("/jobs/{}", job.job_id));
    let (problem, typed) = form_problem(FormName::Job);
    let filled: BTreeMap<String, String> = if problem.is_some() {
        typed
    } else {
        address_fields(&SubmitJob::from_job(&job)).map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let value = |name: &str| filled.get(name).cloned().unwrap_or_default();
    let errors = FormErrors::from_problem(
        problem,
        &[("name", &["name"]), ("resume_from", &["resume_from"]), ("overrides", &["overrides"])],
    );
    let options = start_options(job.resumable, &value("resume_from"), job.status.is_terminal());
    let name = SUBMIT_FIELDS
        .iter()
        .find(|field| field.name == "name")
        .map(|field| submit_control(field, value("name"), errors));
    let action = format!("/ui{job_url}/fork");
    view! {
        <PageHeader title=words.server_pages().job.fork_title.of(&title) above=(job_url.clone(), title.clone()) intro=words.server_pages().job.fork_text/>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action=action class="panel form">
            <Field id="resume_from" label=words.work.begins error=errors.message("resume_from")>
                <select class="select w-full" id="resume_from" name="resume_from" aria-describedby=errors.aria_describedby("resume_from", None)>{options}</select>
            </Field>
            {name}
            <fieldset class="space-y-2">
                <legend class="font-semibold">{train.settings}</legend>
                <p class="field-hint" id="settings-hint">{train.settings_hint}</p>
                <LabelInputs name="overrides" typed=value("overrides") label=train.setting_row hint="settings-hint" list=None errors=errors/>
            </fieldset>
            <div class="form-actions">
                <button class="btn btn-primary">{train.submit}</button>
                <a class="btn btn-ghost" href=job_url>{words.common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}

/// The checkpoints; a job that has ended can also be run again from scratch.
fn start_options(points: Vec<ResumePointView>, chosen: &str, has_ended: bool) -> AnyView {
    let words = &t().work;
    let option = |value: String, label: String| {
        let selected = value == chosen;
        view! { <option value=value selected=selected>{label}</option> }
    };
    let checkpoints = points.into_iter().map(|point| option(point.name.clone(), words.resume_from.of(&point.name)));
    let scratch = has_ended.then(|| option("scratch".to_owned(), words.from_scratch.to_owned()));
    view! { {checkpoints.collect_view()} {scratch} }.into_erased()
}
