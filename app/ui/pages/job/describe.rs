//! The form that changes the name, the tags and the notes of a job.

use std::collections::BTreeMap;

use leptos::prelude::*;

use super::header::job_problem_page;
use crate::domain::ids::JobId;
use crate::protocol::jobs::{JobView, SubmitJob};
use crate::ui::backend::use_backend;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::components::submit_control::submit_control;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::i18n::t;
use crate::ui::pages::server_rendered_page::server_rendered_page;
use crate::ui::submit_form::{Section, address_fields, fields_of};

#[component]
pub(crate) fn JobDescribePage() -> impl IntoView {
    let backend = use_backend();
    server_rendered_page(
        move |id: JobId| backend.job(id),
        |job| view! { <DescribeForm job=job/> }.into_erased(),
        job_problem_page,
    )
}

/// It has the fields of a submit, with the values of the job.
#[component]
fn DescribeForm(job: JobView) -> impl IntoView {
    let (title, job_url) = (job.title(), format!("/jobs/{}", job.job_id));
    let (problem, typed) = form_problem(FormName::Job);
    let filled: BTreeMap<String, String> = if problem.is_some() {
        typed
    } else {
        let described = SubmitJob { notes: job.notes.clone(), ..SubmitJob::from_job(&job) };
        address_fields(&described).map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let fields: Vec<FieldAliases<'_>> =
        fields_of(Section::Description).map(|field| (field.name, field.api_names)).collect();
    let errors = FormErrors::from_problem(problem, &fields);
    let controls = fields_of(Section::Description)
        .map(|field| submit_control(field, filled.get(field.name).cloned().unwrap_or_default(), errors));
    let action = format!("/ui{job_url}/describe");
    view! {
        <PageHeader title=t().server_pages().job.describe_title.of(&title) above=(job_url.clone(), title.clone())/>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action=action class="panel form">
            {controls.collect_view()}
            <div class="form-actions">
                <button class="btn btn-primary">{t().server_pages().users.save}</button>
                <a class="btn btn-ghost" href=job_url>{t().common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}
