//! Searches the logs of many jobs, the newest jobs first, within the budget of one request.

use std::io;
use std::ops::ControlFlow;

use app::domain::allowed_values::AllowedValues;
use app::domain::ids::{AttemptNumber, JobId};
use app::domain::log_text::has_uppercase;
use app::protocol::jobs::log_search::{JobLogMatches, JobLogsPage, JobLogsQuery};
use app::protocol::jobs::{JobView, JobsQuery};
use app::protocol::logs::LogMatch;

use crate::files::log_lines::LogFileLines;
use crate::service::access::Principal;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::logs::LogService;
use crate::service::logs::lines::{LogSearch, MAX_SCAN_BYTES, compile_pattern, cpu_timer};
use crate::service::logs::pattern::{CpuBudget, Pattern};
use crate::service::logs::searches::StopOnDrop;

/// The maximum number of jobs whose logs one request reads.
const MAX_JOBS: u32 = 50;
/// The number of matching lines that are returned of each job.
const MATCHES_PER_JOB: usize = 3;

/// Where a search continues: in the page of jobs after a cursor of their list, after this many of its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct JobLogsCursor {
    skip: usize,
    after: Option<String>,
}

impl JobLogsCursor {
    fn parse(text: &str) -> Option<Self> {
        let (skip, after) = text.split_once('.')?;
        let skip = skip.parse().ok().filter(|skip| *skip <= MAX_JOBS as usize)?;
        Some(Self { skip, after: Some(after.to_owned()).filter(|after| !after.is_empty()) })
    }

    fn to_text(&self) -> String {
        format!("{}.{}", self.skip, self.after.as_deref().unwrap_or_default())
    }
}

/// What was found in the log of a job.
#[derive(Debug, PartialEq, Eq)]
struct SearchedLog {
    matches: Vec<LogMatch>,
    /// Whether a part of it was not read, because it is longer than one request may read.
    incomplete: bool,
}

impl LogService {
    /// Searches the newest attempts of the jobs that match a search and that the user may see.
    pub async fn search_job_logs(
        &self,
        principal: &Principal,
        query: &JobLogsQuery,
    ) -> Result<JobLogsPage, ServiceError> {
        let invalid_cursor = InvalidInput::OutOfRange { field: "cursor", allowed: AllowedValues::Cursor };
        let cursor = match query.cursor.as_deref() {
            Some(text) => JobLogsCursor::parse(text).ok_or(invalid_cursor)?,
            None => JobLogsCursor::default(),
        };
        let pattern = compile_pattern(&query.q, query.regex, has_uppercase(&query.q))?;
        let jobs_query = JobsQuery {
            q: query.jobs.clone(),
            config: query.config.clone(),
            zone: query.zone.clone(),
            cursor: cursor.after.clone(),
            limit: Some(MAX_JOBS),
            ..JobsQuery::default()
        };
        let page = self.jobs.jobs_page(principal, &jobs_query).await?;
        let jobs: Vec<JobView> = page.jobs.into_iter().skip(cursor.skip).collect();
        let logs = jobs.iter().map(|job| (job.job_id.clone(), job.attempt)).collect();
        let found = self.search_logs(principal, logs, pattern).await?;
        let searched = found.len();
        let next = if searched < jobs.len() {
            Some(JobLogsCursor { skip: cursor.skip + searched, after: cursor.after })
        } else {
            page.next_cursor.map(|after| JobLogsCursor { skip: 0, after: Some(after) })
        };
        let matches = jobs.into_iter().zip(found).filter(|(_, log)| log.incomplete || !log.matches.is_empty());
        let view = |(job, SearchedLog { matches, incomplete })| JobLogMatches { job, matches, incomplete };
        Ok(JobLogsPage {
            jobs: matches.map(view).collect(),
            searched: u32::try_from(searched).unwrap_or(u32::MAX),
            next_cursor: next.map(|next| next.to_text()),
        })
    }

    /// Searches logs, in this order, as many as the budget allows. The work stops when the client disconnects.
    async fn search_logs(
        &self,
        principal: &Principal,
        logs: Vec<(JobId, AttemptNumber)>,
        pattern: Pattern,
    ) -> Result<Vec<SearchedLog>, ServiceError> {
        let permit = self.searches.acquire_search(&principal.name).await;
        let (stop_on_drop, time) = (StopOnDrop::default(), self.context.policy.usage_limits.log_search_time);
        let stop = stop_on_drop.stop_flag();
        let search = move |open: &dyn Fn(&JobId, AttemptNumber) -> io::Result<LogFileLines>| {
            let _permit = permit;
            let cpu_time = cpu_timer();
            let mut budget = CpuBudget::new(&cpu_time, time, &stop);
            search_in_order(&logs, pattern, &mut budget, MAX_SCAN_BYTES, open)
        };
        Ok(self.files.read_from_start(search).await??)
    }
}

/// Searches the beginnings of logs. The first one is searched as far as the budget allows; one that is not complete
/// within what the others have left is the first of the next request.
fn search_in_order(
    logs: &[(JobId, AttemptNumber)],
    pattern: Pattern,
    budget: &mut CpuBudget<'_>,
    max_bytes: u64,
    open: impl Fn(&JobId, AttemptNumber) -> io::Result<LogFileLines>,
) -> io::Result<Result<Vec<SearchedLog>, InvalidInput>> {
    let mut searcher = LogSearch::new(pattern, MATCHES_PER_JOB);
    let (mut found, mut bytes_left): (Vec<SearchedLog>, u64) = (Vec::new(), max_bytes);
    for (job, attempt) in logs {
        let log = open(job, *attempt)?;
        let mut read = 0;
        log.visit(0, bytes_left, |line| {
            read = line.offset + line.bytes.len() as u64 + line.omitted;
            if searcher.visit(&line, budget) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(error) = searcher.error.take() {
            return Ok(Err(error));
        }
        let matches = searcher.take_matches();
        let is_complete = matches.len() == MATCHES_PER_JOB || (log.size <= bytes_left && !budget.is_exhausted());
        if !is_complete && !found.is_empty() {
            break;
        }
        found.push(SearchedLog { matches, incomplete: !is_complete });
        bytes_left = bytes_left.saturating_sub(read);
        if bytes_left == 0 || budget.is_exhausted() {
            break;
        }
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use app::domain::time::Timestamp;

    use super::*;

    #[test]
    fn cursors_and_their_texts_are_inverse() {
        for cursor in [
            JobLogsCursor::default(),
            JobLogsCursor { skip: 7, after: None },
            JobLogsCursor { skip: 0, after: Some("a.b".to_owned()) },
        ] {
            assert_eq!(JobLogsCursor::parse(&cursor.to_text()), Some(cursor));
        }
        for text in ["", "7", "x.a", "-1.a", "51.a", "99999999999999999999.a"] {
            assert_eq!(JobLogsCursor::parse(text), None, "{text}");
        }
    }

    /// Searches logs for "needle" with a number of bytes, and of reads of the clock; returns the numbers of the matching
    /// lines, and whether the log is incomplete.
    fn search(logs: &[&str], max_bytes: u64, clock_reads: u64) -> Vec<(Vec<u64>, bool)> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |attempt: AttemptNumber| directory.path().join(format!("{attempt}.log"));
        let job = JobId::new(Timestamp(0), [0; 10]);
        let attempts: Vec<_> = (1..).map(AttemptNumber).take(logs.len()).collect();
        for (attempt, text) in attempts.iter().zip(logs) {
            std::fs::write(path(*attempt), text).expect("disk");
        }
        let (reads, stop) = (Cell::new(0), AtomicBool::new(false));
        let clock = || {
            reads.set(reads.get() + 1);
            Duration::from_secs(reads.get())
        };
        let mut budget = CpuBudget::new(&clock, Duration::from_secs(clock_reads), &stop);
        let attempts: Vec<_> = attempts.into_iter().map(|attempt| (job.clone(), attempt)).collect();
        let pattern = compile_pattern("needle", false, false).expect("a pattern");
        let open = |_: &JobId, attempt: AttemptNumber| LogFileLines::open_unindexed(&path(attempt));
        let found = search_in_order(&attempts, pattern, &mut budget, max_bytes, open).expect("disk").expect("cheap");
        let lines = |log: SearchedLog| (log.matches.iter().map(|found| found.line).collect(), log.incomplete);
        found.into_iter().map(lines).collect()
    }

    #[test]
    fn logs_are_searched_in_order_within_the_bytes() {
        let filler = "hay\n".repeat(1_000);
        let late = format!("{filler}NEEDLE\n");
        assert_eq!(
            search(&["needle\nhay\nneedle\nneedle\nneedle\n", "", "a\u{ff}\n", &late], u64::MAX >> 1, 99),
            [(vec![1, 3, 4], false), (vec![], false), (vec![], false), (vec![1_001], false)]
        );
        assert_eq!(search(&["needle\n", &late, &late], 4_500, 99), [(vec![1], false), (vec![1_001], false)]);
        assert_eq!(search(&[&late, &late], 2_000, 99), [(vec![], true)], "longer than a request may read");
        assert_eq!(search(&[&filler, "needle\n"], 99_999, 1), [(vec![], true)], "the time is used up");
        assert_eq!(search(&["needle\n", &filler.repeat(9)], 99_999, 1), [(vec![1], false)]);
        let wide = format!("{}needle\n", "x".repeat(10 << 20));
        assert_eq!(search(&[&wide], 64 << 20, 99), [(vec![], false)], "only the beginning of a line is searched");
    }
}
