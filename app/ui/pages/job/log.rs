//! The log on the overview of a job: its end while the job runs, and the lines around the error after it has failed.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::log_text::styled_spans;
use crate::protocol::jobs::JobView;
use crate::protocol::logs::{LogLine, LogLines, LogLinesQuery};
use crate::ui::backend::SharedBackend;
use crate::ui::components::action::MoreLink;
use crate::ui::components::failure_reason::log_line_url;
use crate::ui::components::log_line::StyledText;
use crate::ui::components::log_tail::{LogTailPanel, TAIL_BYTES};
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::logs::view_state::LogViewState;
use crate::ui::view_scope::ViewScope;

/// The number of lines in an excerpt.
const EXCERPT_LINES: u32 = 12;
/// The number of lines before the error in an excerpt.
const LINES_BEFORE: u64 = 7;

/// The end of the log of the attempt in the URL (`?attempt=`), or of the newest one.
#[component]
pub(super) fn JobLogTail(id: JobId, backend: SharedBackend, newest: Memo<AttemptNumber>) -> impl IntoView {
    let params = use_query_map();
    let attempt = Memo::new(move |_| {
        let selected =
            params.with(|query| query.get("attempt")).and_then(|number| number.parse().ok()).map(AttemptNumber);
        selected.unwrap_or_else(|| newest.get())
    });
    let job_id = id.clone();
    let chunk = Resource::new(
        move || attempt.get(),
        move |attempt: AttemptNumber| backend.job_log(job_id.clone(), attempt, None, TAIL_BYTES),
    );
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, id) = (scope.clone(), id.clone());
        Suspend::new(async move {
            match chunk.await {
                Ok(first) => scope.render(|| view! { <LogTailPanel job=id first=first/> }.into_erased()),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

/// Requests the lines around the error of an attempt, or its last ones if the line is unknown.
fn excerpt_query(attempt: AttemptNumber, error_line: Option<u64>) -> LogLinesQuery {
    LogLinesQuery {
        attempt: Some(attempt.0),
        from: error_line.map(|line| line.saturating_sub(LINES_BEFORE).max(1)),
        limit: Some(EXCERPT_LINES),
        ..LogLinesQuery::default()
    }
}

/// The lines of the log around the error of a failed job; nothing if its log is empty.
#[component]
pub(super) fn JobLogExcerpt(backend: SharedBackend, job: Memo<JobView>) -> impl IntoView {
    let (id, attempt, error_line) = job.with_untracked(|job| (job.job_id.clone(), job.attempt, job.error_line));
    let job_id = id.clone();
    let lines =
        Resource::new(|| (), move |()| backend.job_log_lines(job_id.clone(), excerpt_query(attempt, error_line)));
    let shown = move || {
        let id = id.clone();
        Suspend::new(async move {
            match lines.await {
                Ok(lines) => excerpt_panel(&id, lines, error_line),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

fn excerpt_panel(id: &JobId, lines: LogLines, error_line: Option<u64>) -> AnyView {
    let words = t();
    let LogLines { attempt, from, lines, .. } = lines;
    if lines.is_empty() {
        return ().into_erased();
    }
    let href = error_line.map_or_else(
        || LogViewState { attempt: Some(attempt.0), ..LogViewState::default() }.href(id),
        |line| log_line_url(id, attempt, line),
    );
    let rows = (from..).zip(lines).map(|(number, line)| {
        let is_error = error_line == Some(number);
        view! {
            <div class="log-row" class:is-chosen=is_error>
                <span class="log-number">{number}</span>
                {line_text(&line)}
            </div>
        }
    });
    view! {
        <section class="panel" aria-labelledby="log">
            <h2 id="log" class="panel-head">
                {words.log.title}
                <span class="panel-note">{words.log.attempt.of(attempt.0)}</span>
                <MoreLink href=href label=words.logs.open/>
            </h2>
            <div class="log is-excerpt is-wrapped" tabindex="0" role="group" aria-label=words.log.region dir="ltr">
                {rows.collect_view()}
            </div>
        </section>
    }
    .into_erased()
}

fn line_text(line: &LogLine) -> AnyView {
    match line.gap {
        Some(bytes) => view! { <span class="log-lost">{t().logs.gap.of(t().format_bytes(bytes))}</span> }.into_erased(),
        None => view! { <span class="log-said"><StyledText spans=styled_spans(&line.text)/></span> }.into_erased(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_surrounds_the_error() {
        let from = |line| excerpt_query(AttemptNumber(2), line).from;
        assert_eq!(
            [from(None), from(Some(1)), from(Some(8)), from(Some(70_123))],
            [None, Some(1), Some(1), Some(70_116)]
        );
        assert_eq!(excerpt_query(AttemptNumber(2), None).attempt, Some(2));
    }
}
