//! The configuration that a job was submitted with. It never changes, so the page is rendered on the server only.

use leptos::prelude::*;

use super::header::{JobHeader, job_problem_page};
use super::tabs::JobTab;
use super::{JobSnapshot, fetch_snapshot};
use crate::domain::ids::JobId;
use crate::protocol::configs::ConfigDetail;
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::components::code::FileText;
use crate::ui::components::copy::IdText;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::format::config_url;
use crate::ui::i18n::t;
use crate::ui::pages::server_rendered_page::server_rendered_page;

#[component]
pub(crate) fn JobConfigurationPage() -> impl IntoView {
    let (backend, page_backend) = (use_backend(), use_page_backend());
    server_rendered_page(
        move |id: JobId| {
            let (backend, page_backend) = (backend.clone(), page_backend.clone());
            async move {
                let snapshot = fetch_snapshot(&backend, &id).await?;
                Ok((snapshot, page_backend.job_config(id).await?))
            }
        },
        |(snapshot, config)| view! { <JobConfiguration snapshot=snapshot config=config/> }.into_erased(),
        job_problem_page,
    )
}

#[component]
fn JobConfiguration(snapshot: JobSnapshot, config: ConfigDetail) -> impl IntoView {
    let words = t();
    let (job, artifacts) = snapshot;
    let ConfigDetail { config, bundle } = config;
    let config_page_url = config_url(&config.name);
    let summary = config.summary.into_iter().map(|(key, value)| {
        view! { <li class="chip"><span class="text-muted">{key}"="</span>{value}</li> }
    });
    let summary = summary.collect_view();
    let has_several_files = bundle.files.len() > 1;
    let ids = bundle.files.keys().enumerate().map(|(number, path)| (format!("file-{number}"), path.clone()));
    let links = ids
        .map(|(id, path)| view! { <li><a class="quiet-link inline-block py-1 font-mono text-xs" href=format!("#{id}")>{path}</a></li> });
    let links = links.collect_view();
    let files = bundle.files.into_iter().enumerate().map(|(number, (path, text))| {
        let id = format!("file-{number}");
        let heading_id = id.clone();
        view! {
            <section class="panel" aria-labelledby=heading_id>
                <h2 id=id class="panel-head font-mono wrap-anywhere">{path.clone()}</h2>
                <FileText name=path text=text/>
            </section>
        }
    });
    let files = files.collect_view();
    view! {
        <JobHeader job=Signal::stored(job) files=Signal::stored(artifacts) tab=Signal::stored(JobTab::Configuration)/>
        <div class="space-y-6">
            <section class="panel" aria-labelledby="revision">
                <h2 id="revision" class="panel-head">
                    {words.job.revision.of(config.revision)}
                    <a class="more-link" rel="external" href=format!("{config_page_url}?revision={}", config.revision)>{words.server_pages().job.all_revisions}</a>
                </h2>
                <dl class="facts">
                    <div><dt>{words.server_pages().job.stored}</dt><dd><RelativeTime at=config.updated_at/></dd></div>
                    <div><dt>{words.job.sha256}</dt><dd><IdText id=config.sha256/></dd></div>
                    <div><dt>{words.server_pages().job.in_short}</dt><dd><ul class="flex flex-wrap gap-1">{summary}</ul></dd></div>
                    {has_several_files.then(|| view! { <div><dt>{t().server_pages().job.files}</dt><dd><ul class="flex flex-wrap gap-x-4">{links}</ul></dd></div> })}
                </dl>
            </section>
            {files}
        </div>
    }
    .into_erased()
}
