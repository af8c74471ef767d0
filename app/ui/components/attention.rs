//! What somebody should look at, with the way to where it is mended.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use super::summary::summary_words;
use super::time::Moment;
use crate::protocol::explain::AskCode;
use crate::protocol::overview::{AttentionKind, AttentionView, OverviewView, Severity};
use crate::protocol::queue::JobsQuery;
use crate::protocol::status::Phase;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::pages::jobs::jobs_address;

/// The list; where nothing is to be done it says so.
#[component]
pub(crate) fn Attention(now: Memo<Option<OverviewView>>) -> impl IntoView {
    let words = &t().overview;
    let list = Memo::new(move |_| {
        now.with(|now| now.as_ref().map(|now| (now.attention.clone(), now.more_attention)).unwrap_or_default())
    });
    let shown = move || {
        let (entries, more) = list.get();
        if entries.is_empty() {
            return view! {
                <p class="panel-empty"><span class="status status-good"><Icon glyph=Glyph::CheckCircle/></span>{words.all_well}</p>
            }
            .erased();
        }
        let entries = entries.into_iter().map(|entry| view! { <Concern entry=entry/> }).collect_view();
        let more = (more > 0).then(|| view! { <li class="text-muted">{words.more_attention.of(more)}</li> });
        view! { <ul class="rows">{entries}{more}</ul> }.erased()
    };
    view! {
        <section class="panel mb-6" aria-labelledby="attention">
            <h2 id="attention" class="panel-head">{words.attention}</h2>
            {shown}
        </section>
    }
    .erased()
}

#[component]
fn Concern(entry: AttentionView) -> impl IntoView {
    let words = &t().overview;
    let (class, glyph) = match entry.severity {
        Severity::Alarm => ("status status-bad", Glyph::CrossCircle),
        Severity::Warning => ("status status-warn", Glyph::Warning),
        Severity::Note => ("status status-off", Glyph::Ring),
    };
    let (href, plain) = place(&entry);
    let said = words.concerns[entry.kind as usize];
    view! {
        <li class="concern">
            <span class=class><Icon glyph=glyph/><span class="sr-only">{words.severities[entry.severity as usize]}</span></span>
            <span class="min-w-0">
                <a class="row-link" href=href rel=plain.then_some("external")>{whose(&entry)}</a>
                <span class="row-sub whitespace-normal">{said}{particulars(&entry)}</span>
            </span>
            {entry.since.map(|since| view! { <span class="text-muted"><Moment at=since/></span> })}
        </li>
    }
    .erased()
}

fn whose(entry: &AttentionView) -> String {
    let words = &t().overview;
    let count = entry.count.unwrap_or_default();
    match entry.kind {
        AttentionKind::Stuck if count > 1 => return words.jobs_wait.of(count),
        AttentionKind::MoreStuck => return words.more_jobs_wait.of(count),
        _ => {}
    }
    let several = || entry.count.map(|count| words.several_workers.of(count));
    entry.name.clone().or_else(several).unwrap_or_else(|| words.this_server.to_owned())
}

/// Numbers and words of machines, behind the sentence.
fn particulars(entry: &AttentionView) -> String {
    let counts = entry.name.is_some() && entry.kind != AttentionKind::Stuck;
    let count = entry.count.filter(|_| counts).map(|count| format!("{count}×"));
    let parts = [
        count,
        entry.summary.as_ref().map(|summary| summary_words(t(), summary)),
        entry.at.map(|at| t().moment(at)),
        entry.detail.clone(),
    ];
    parts.into_iter().flatten().fold(String::new(), |text, part| text + " · " + &part)
}

/// Where it is mended, and whether that is a plain page.
fn place(entry: &AttentionView) -> (String, bool) {
    match (&entry.worker_id, &entry.job_id, entry.kind) {
        // Where it is rotated.
        (Some(id), _, AttentionKind::TokenEnded | AttentionKind::TokenEnds | AttentionKind::TokenOld) => {
            (format!("/admin/workers/{id}#access"), false)
        }
        (Some(id), _, AttentionKind::FastFailures) => (format!("/admin/workers/{id}/jobs"), true),
        (Some(id), _, AttentionKind::GpusWithheld) => (format!("/admin/workers/{id}?show=gpus"), false),
        (Some(id), _, _) => (format!("/admin/workers/{id}"), false),
        (None, Some(_), AttentionKind::Stuck) if entry.count > Some(1) => (jobs_address(&waiting(entry)), false),
        (None, None, AttentionKind::MoreStuck) => (jobs_address(&waiting(entry)), false),
        (None, Some(id), _) => (format!("/jobs/{id}#why"), false),
        (None, None, AttentionKind::DiskFull | AttentionKind::AuditNotShipped) => ("/admin/system".to_owned(), true),
        (None, None, _) => ("/admin/workers".to_owned(), false),
    }
}

/// Those that wait; where a label is what no worker has, those that ask for it.
fn waiting(entry: &AttentionView) -> JobsQuery {
    let last = entry.summary.as_ref().and_then(|summary| summary.steps.last());
    let label = last.filter(|step| step.ask == AskCode::Label);
    let label = label.and_then(|step| Some(format!("{}={}", step.key.as_ref()?, step.wanted.as_ref()?)));
    JobsQuery { phase: Some(Phase::Waiting), label, ..JobsQuery::default() }
}
