//! The state of the log page, as stored in its address.

use leptos_router::params::ParamsMap;

use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::logs::{LogLinesQuery, LogSearchQuery};
use crate::ui::page_query::query_string;

/// Number of lines that the page is rendered with.
pub(crate) const INITIAL_LINES: u32 = 200;

/// The state. Lines are numbered from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogViewState {
    /// The number of the attempt; none for the newest one.
    pub attempt: Option<u32>,
    /// The first and last selected line.
    pub selected_lines: Option<(u64, u64)>,
    /// The first line to show if no line is selected.
    pub first_line: Option<u64>,
    pub search: LogSearchTerms,
    /// Whether long lines are wrapped.
    pub wrap: bool,
    /// Whether the arrival of each line is shown.
    pub times: bool,
    /// Only lines of this rank are shown.
    pub rank: Option<u32>,
    /// With a rank: the lines before this one are shown.
    pub before: Option<u64>,
}

/// What to search for in a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogSearchTerms {
    /// The text to search for; empty for no search.
    pub q: String,
    /// Whether the text is a regular expression.
    pub regex: bool,
    /// Whether the search is case-sensitive.
    pub case: bool,
}

impl LogSearchTerms {
    /// Matches lines that probably report an error.
    pub fn errors() -> Self {
        Self {
            q: r"\b(\w*error|\w*exception|traceback|fatal|critical|out of memory)\b".to_owned(),
            regex: true,
            case: false,
        }
    }
}

impl LogViewState {
    pub fn from_params(params: &ParamsMap) -> Self {
        let is = |name: &str| params.get(name).is_some_and(|value| value == "true");
        let number =
            |name: &str| params.get(name).and_then(|text| text.parse::<u64>().ok()).filter(|number| *number > 0);
        Self {
            attempt: number("attempt").and_then(|attempt| attempt.try_into().ok()),
            selected_lines: params.get("line").and_then(|text| parse_line_range(&text)),
            first_line: number("from"),
            search: LogSearchTerms { q: params.get("q").unwrap_or_default(), regex: is("regex"), case: is("case") },
            wrap: is("wrap"),
            times: is("times"),
            rank: params.get("rank").and_then(|text| text.parse().ok()),
            before: number("before"),
        }
    }

    /// The address of the log page in this state.
    pub fn href(&self, job: &JobId) -> String {
        let flag = |is: bool| is.then(|| "true".to_owned());
        let lines = self
            .selected_lines
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
        let query = query_string(&[
            ("attempt", self.attempt.map(|attempt| attempt.to_string())),
            ("line", lines),
            ("from", self.first_line.map(|from| from.to_string())),
            ("q", Some(self.search.q.clone()).filter(|q| !q.is_empty())),
            ("regex", flag(self.search.regex)),
            ("case", flag(self.search.case)),
            ("wrap", flag(self.wrap)),
            ("times", flag(self.times)),
            ("rank", self.rank.map(|rank| rank.to_string())),
            ("before", self.before.map(|before| before.to_string())),
        ]);
        format!("/jobs/{job}/log{query}")
    }

    /// The same state with one line selected.
    pub fn with_line(&self, line: u64) -> Self {
        Self { selected_lines: Some((line, line)), first_line: None, ..self.clone() }
    }

    /// The same state, with the selection extended to this line.
    pub fn with_lines_up_to(&self, line: u64) -> Self {
        let (first, _) = self.selected_lines.unwrap_or((line, line));
        Self { selected_lines: Some((first.min(line), first.max(line))), first_line: None, ..self.clone() }
    }

    /// Requests the lines around the selection, else those from `first_line` on, else the last ones.
    pub fn window_query(&self, attempt: AttemptNumber) -> LogLinesQuery {
        let window_start =
            self.selected_lines.map(|(first, _)| first.saturating_sub(u64::from(INITIAL_LINES) / 2).max(1));
        self.lines_query(attempt, window_start.or(self.first_line), INITIAL_LINES)
    }

    /// The same state with the lines of a rank, or of all; a position in the one view is none in the other.
    pub fn with_rank(&self, rank: Option<u32>) -> Self {
        Self { attempt: self.attempt, wrap: self.wrap, times: self.times, rank, ..Self::default() }
    }

    /// Requests the lines of a rank: those from `first_line` on, else those before `before`, else the last ones.
    pub fn rank_query(&self, attempt: AttemptNumber) -> LogLinesQuery {
        LogLinesQuery {
            attempt: Some(attempt.0),
            from: self.first_line,
            limit: Some(INITIAL_LINES),
            rank: self.rank,
            before: self.before,
            times: self.times,
            ..LogLinesQuery::default()
        }
    }

    /// Requests lines, with the search matches in them.
    pub fn lines_query(&self, attempt: AttemptNumber, from: Option<u64>, limit: u32) -> LogLinesQuery {
        let LogSearchTerms { q, regex, case } = self.search.clone();
        LogLinesQuery {
            attempt: Some(attempt.0),
            from,
            limit: Some(limit),
            q: Some(q).filter(|q| !q.is_empty()),
            regex,
            case,
            times: self.times,
            ..LogLinesQuery::default()
        }
    }

    /// Searches the entire log.
    pub fn search_query(&self, attempt: AttemptNumber) -> LogSearchQuery {
        let LogSearchTerms { q, regex, case } = self.search.clone();
        LogSearchQuery { attempt: Some(attempt.0), q, regex, case, ..LogSearchQuery::default() }
    }
}

/// Parses `12` or `12-40`.
fn parse_line_range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first > 0 && last > 0).then(|| (std::cmp::min(first, last), std::cmp::max(first, last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_query(query: &[(&'static str, &str)]) -> LogViewState {
        let mut params = ParamsMap::new();
        for (key, value) in query {
            params.insert(*key, (*value).to_owned());
        }
        LogViewState::from_params(&params)
    }

    #[test]
    fn addresses_and_view_states_are_inverse() {
        let job = JobId::parse("j_01k9zv3m8e6q2c4r7t5w0x1y2z").expect("an id");
        let view_state =
            parse_query(&[("attempt", "2"), ("line", "12-40"), ("q", "a&b"), ("regex", "true"), ("wrap", "true")]);
        assert_eq!(view_state.selected_lines, Some((12, 40)));
        assert_eq!(view_state.href(&job), format!("/jobs/{job}/log?attempt=2&line=12-40&q=a%26b&regex=true&wrap=true"));
        assert_eq!(
            view_state.with_line(7).href(&job),
            format!("/jobs/{job}/log?attempt=2&line=7&q=a%26b&regex=true&wrap=true")
        );
        assert_eq!(view_state.with_lines_up_to(7).selected_lines, Some((7, 12)));
        assert_eq!(parse_query(&[]).href(&job), format!("/jobs/{job}/log"));
        assert_eq!(parse_query(&[("times", "true")]).href(&job), format!("/jobs/{job}/log?times=true"));
        let of_rank = parse_query(&[("attempt", "2"), ("rank", "0"), ("before", "900"), ("wrap", "true")]);
        assert_eq!((of_rank.rank, of_rank.before), (Some(0), Some(900)));
        assert_eq!(of_rank.href(&job), format!("/jobs/{job}/log?attempt=2&wrap=true&rank=0&before=900"));
        assert_eq!(of_rank.with_rank(Some(3)).href(&job), format!("/jobs/{job}/log?attempt=2&wrap=true&rank=3"));
        assert_eq!(of_rank.rank_query(AttemptNumber(2)).before, Some(900));
    }

    #[test]
    fn invalid_queries_are_ignored() {
        for line in ["", "x", "0", "-3", "4-", "9-0", "99999999999999999999"] {
            assert_eq!(
                parse_query(&[("line", line), ("attempt", line), ("from", line)]),
                LogViewState::default(),
                "{line}"
            );
        }
        assert_eq!(parse_query(&[("line", "9-4")]).selected_lines, Some((4, 9)));
    }

    #[test]
    fn window_is_around_the_requested_line() {
        let from = |view_state: LogViewState| view_state.window_query(AttemptNumber(1)).from;
        assert_eq!(from(LogViewState::default()), None);
        assert_eq!(from(LogViewState::default().with_line(1_000)), Some(900));
        assert_eq!(from(LogViewState::default().with_line(5)), Some(1));
        assert_eq!(from(LogViewState { first_line: Some(7), ..LogViewState::default() }), Some(7));
    }
}
