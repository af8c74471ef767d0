//! The jobs that a job comes from, and those that come from it, as a tree.

use leptos::prelude::*;

use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::family::{FamilyMember, JobFamily};
use crate::ui::components::job_request::start_text;
use crate::ui::components::status::JobBadge;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;

/// The maximum number of jobs that are shown.
const MAX_SHOWN: usize = 12;
/// Deeper jobs are not indented further.
const MAX_INDENT: u32 = 5;

#[component]
pub(super) fn JobFamilyPanel(id: JobId, job: Memo<JobView>) -> impl IntoView {
    let family = Memo::new(move |_| job.with(|job| job.family.clone()));
    let rows = move || {
        let family = family.get()?;
        let (shown, is_complete) = shown_members(&family, &id);
        let rows = shown.iter().map(|member| member_row(member, &id)).collect_view();
        let more = (!is_complete).then(|| view! { <p class="panel-foot panel-note">{t().work.family_more}</p> });
        Some(view! { <ul class="rows is-compact">{rows}</ul> {more} })
    };
    view! {
        <section class="panel" aria-labelledby="family">
            <h2 id="family" class="panel-head">{t().work.family}</h2>
            {rows}
        </section>
    }
    .into_erased()
}

/// Returns the jobs around this one, and whether they are all.
fn shown_members<'f>(family: &'f JobFamily, id: &JobId) -> (&'f [FamilyMember], bool) {
    let jobs = &family.jobs;
    let current = jobs.iter().position(|member| member.job_id == *id).unwrap_or_default();
    let start = current.saturating_sub(MAX_SHOWN / 2).min(jobs.len().saturating_sub(MAX_SHOWN));
    let shown = &jobs[start..(start + MAX_SHOWN).min(jobs.len())];
    (shown, shown.len() == jobs.len() && !family.is_truncated)
}

fn member_row(member: &FamilyMember, id: &JobId) -> AnyView {
    let indents =
        (0..member.depth.min(MAX_INDENT)).map(|_| view! { <span class="family-indent"></span> }).collect_view();
    let config = (member.config != member.title).then(|| member.config.clone());
    let about = config.into_iter().chain(member.resume_from.as_deref().map(start_text)).collect::<Vec<_>>().join(" · ");
    let is_current = member.job_id == *id;
    let title = if is_current {
        view! { <strong class="truncate" title=member.title.clone()>{member.title.clone()}</strong> }.into_erased()
    } else {
        let href = format!("/jobs/{}", member.job_id);
        view! { <a class="quiet-link truncate" href=href title=member.title.clone()>{member.title.clone()}</a> }
            .into_erased()
    };
    view! {
        <li class="family-member" aria-current=is_current.then_some("true")>
            {indents}
            <span class="min-w-0 grow">
                <span class="block truncate">{title}</span>
                {(!about.is_empty()).then(|| view! { <span class="row-sub truncate" title=about.clone()>{about.clone()}</span> })}
            </span>
            <JobBadge status=member.status/>
        </li>
    }
    .into_erased()
}

/// Where a job comes from, for its header.
pub(super) fn origin_text(job: &JobView, origin: &JobId) -> String {
    let words = &t().work;
    let of_family = job.family.as_ref().and_then(|family| family.jobs.iter().find(|member| member.job_id == *origin));
    let title = of_family.map_or_else(|| short_id(origin.as_str()), |member| member.title.clone());
    match job.resume_from.as_deref() {
        None | Some("newest") => words.again_of.of(title),
        Some("scratch") => words.restarted_from.of(title),
        Some(name) => words.forked_from.with(&[&name, &title]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_around_the_current_one_are_shown() {
        let member = JobFamily::example().jobs[0].clone();
        let jobs: Vec<FamilyMember> = (0..40)
            .map(|number| FamilyMember {
                job_id: JobId::parse(&format!("j_{number}")).expect("an id"),
                ..member.clone()
            })
            .collect();
        for (is_truncated, count, current, expected, is_all) in [
            (false, 40, 0, 0..12, false),
            (false, 40, 20, 14..26, false),
            (false, 40, 39, 28..40, false),
            (false, 3, 1, 0..3, true),
            (true, 3, 1, 0..3, false),
        ] {
            let family = JobFamily { jobs: jobs[..count].to_vec(), is_truncated };
            let (shown, all) = shown_members(&family, &jobs[current].job_id);
            assert_eq!((shown, all), (&jobs[expected], is_all), "{current} of {count}");
        }
    }
}
