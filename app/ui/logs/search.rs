//! Searches a log, slice by slice.

use serde::{Deserialize, Serialize};

use super::view_state::LogViewState;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::logs::LogSearchQuery;
use crate::protocol::problem::Problem;
use crate::ui::backend::SharedBackend;

/// The progress of a search. Lines are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct LogSearchState {
    /// The line of the current match, or the selected line.
    pub line: Option<u64>,
    /// The rank of the current match among all, from 1.
    pub rank: Option<u64>,
    /// Number of matching lines, as far as they are counted.
    pub count: u64,
    /// Whether all matching lines are counted.
    pub is_all: bool,
    /// The previous matching line.
    pub before: Option<u64>,
    /// The next matching line.
    pub after: Option<u64>,
    /// Why the search failed.
    pub problem: Option<String>,
}

impl LogSearchState {
    /// Moves from `current` to another match; the search may have wrapped around.
    pub fn advance(&mut self, current: u64, line: u64, backward: bool) {
        let rank = self.rank.filter(|_| self.line == Some(current));
        let has_wrapped = line != current && (line < current) != backward;
        self.rank = match (has_wrapped, backward) {
            _ if line == current => rank,
            (false, false) => rank.map(|rank| rank + 1),
            (false, true) => rank.and_then(|rank| rank.checked_sub(1)),
            (true, false) => Some(1),
            (true, true) => self.is_all.then_some(self.count),
        };
        self.line = Some(line);
    }
}

/// The log of one attempt.
#[derive(Clone)]
pub(crate) struct AttemptLog {
    pub backend: SharedBackend,
    pub job: JobId,
    pub attempt: AttemptNumber,
}

/// The maximum number of slices that a server-rendered page searches.
const MAX_SLICES: u32 = 16;

impl AttemptLog {
    /// The first matching line from the start of the query, in its direction; before each further slice, `should_continue`
    /// decides whether to continue.
    pub async fn find_first(
        &self,
        mut query: LogSearchQuery,
        mut should_continue: impl FnMut() -> bool,
    ) -> Result<Option<u64>, Problem> {
        query.limit = Some(1);
        loop {
            let response = self.backend.job_log_search(self.job.clone(), query.clone()).await?;
            match (response.matches.first(), response.next) {
                (Some(found), _) => return Ok(Some(found.line)),
                (None, Some(next)) if should_continue() => query.from = Some(next),
                (None, _) => return Ok(None),
            }
        }
    }

    /// Counts the matching lines. After each slice, `on_count` receives the count so far and whether it is complete, and
    /// decides whether to continue.
    pub async fn count_matches(
        &self,
        mut query: LogSearchQuery,
        mut on_count: impl FnMut(u64, bool) -> bool,
    ) -> Result<(), Problem> {
        query.limit = Some(0);
        let mut count = 0;
        loop {
            let response = self.backend.job_log_search(self.job.clone(), query.clone()).await?;
            count += response.count;
            let should_continue = on_count(count, response.next.is_none());
            match response.next.filter(|_| should_continue) {
                Some(next) => query.from = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Everything that a server-rendered page shows about the search.
    pub async fn search_all(&self, view_state: &LogViewState) -> Result<LogSearchState, Problem> {
        let query = view_state.search_query(self.attempt);
        let mut slices_left = MAX_SLICES;
        let mut should_continue = move || {
            slices_left = slices_left.saturating_sub(1);
            slices_left > 0
        };
        let selected_line = view_state.selected_lines.map(|(first, _)| first);
        let line = match selected_line {
            Some(line) => Some(line),
            None => {
                self.find_first(LogSearchQuery { from: view_state.first_line, ..query.clone() }, &mut should_continue)
                    .await?
            }
        };
        let mut found = LogSearchState { line, ..LogSearchState::default() };
        if let Some(line) = line {
            found.after =
                self.find_first(LogSearchQuery { from: Some(line + 1), ..query.clone() }, &mut should_continue).await?;
            if let Some(before) = line.checked_sub(1).filter(|before| *before > 0) {
                let backward_query = LogSearchQuery { from: Some(before), backward: true, ..query.clone() };
                found.before = self.find_first(backward_query, &mut should_continue).await?;
            }
            let until = LogSearchQuery { until: Some(line), ..query.clone() };
            self.count_matches(until, |count, is_all| {
                found.rank = is_all.then_some(count + 1);
                should_continue()
            })
            .await?;
        }
        self.count_matches(query, |count, is_all| {
            (found.count, found.is_all) = (count, is_all);
            should_continue()
        })
        .await?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_step_updates_the_rank() {
        let started =
            LogSearchState { line: Some(50), rank: Some(2), count: 3, is_all: true, ..LogSearchState::default() };
        for (line, backward, rank) in
            [(70, false, Some(3)), (10, true, Some(1)), (10, false, Some(1)), (70, true, Some(3)), (50, false, Some(2))]
        {
            let mut found = started.clone();
            found.advance(50, line, backward);
            assert_eq!((found.line, found.rank), (Some(line), rank), "{line} {backward}");
        }
        let mut other_selection = started;
        other_selection.advance(60, 70, false);
        assert_eq!(other_selection.rank, None, "the user has selected another line since");
    }
}
