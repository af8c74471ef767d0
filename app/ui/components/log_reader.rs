//! The state that the parts of a log page share: the view state in the URL, the fetched lines, the search and the
//! scroll position.

use std::sync::Arc;

use leptos::html::Div;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::protocol::logs::{LogLine, LogSearchQuery};
use crate::protocol::problem::Problem;
use crate::protocol::topic::Topic;
use crate::ui::live::{LiveUpdates, retry_delay, use_live};
use crate::ui::logs::line_cache::{CachedLine, LineCache, PAGE_LINES};
use crate::ui::logs::search::{AttemptLog, LogSearchState};
use crate::ui::logs::view_state::{LogSearchTerms, LogViewState};
use crate::ui::logs::viewport::{LogViewport, VisibleLines, floor_to_u64};
use crate::ui::schedule::after;

/// A handle to the shared state of a log page.
#[derive(Clone, Copy)]
pub(crate) struct LogReader {
    /// The attempt whose log is shown, and the backend that provides it.
    pub log: StoredValue<AttemptLog>,
    /// The view state in the URL.
    pub view_state: Memo<LogViewState>,
    /// The fetched lines.
    pub cache: RwSignal<LineCache>,
    /// The line with the error, if the job's diagnosis found it.
    pub error_line: Memo<Option<u64>>,
    /// The state of the search; none if there is nothing to search for.
    pub search: RwSignal<Option<LogSearchState>>,
    /// The size of the view; none until it is measured, while the page shows the lines that it came with.
    pub viewport: RwSignal<Option<LogViewport>>,
    /// The scroll position of `scroll_area`, in pixels.
    pub scroll_top: RwSignal<f64>,
    /// Whether the end of the log stays visible as the log grows.
    pub is_following: RwSignal<bool>,
    /// The element that scrolls.
    pub scroll_area: NodeRef<Div>,
    /// The error of the last request for lines, if it failed.
    pub problem: RwSignal<Option<Problem>>,
    /// The range of lines that came with the page, counted from 0; the end is exclusive.
    initial_lines: (u64, u64),
    /// The search terms that are marked in fetched lines.
    highlighted: StoredValue<LogSearchTerms>,
    fetch_state: StoredValue<LineFetchState>,
    /// The number of the newest search; results of older ones are discarded.
    search_generation: StoredValue<u64>,
    live: StoredValue<LiveUpdates>,
    navigate: StoredValue<Navigate>,
}

/// The state of fetching lines.
#[derive(Debug, Clone, Copy, Default)]
struct LineFetchState {
    /// Whether a request is in progress, or a failed one will be retried after a delay.
    in_flight: bool,
    /// Whether the end of the log has to be fetched, because the log has grown or a request has failed.
    is_behind: bool,
    /// The number of consecutive failed requests.
    failures: u32,
    /// The total number of requests.
    requests: u64,
}

type Navigate = Arc<dyn Fn(&str, NavigateOptions) + Send + Sync>;

/// A line in the document.
#[derive(Debug, Clone)]
pub(crate) struct RenderedLine {
    /// The line number, from 1.
    pub number: u64,
    /// The content; none until it is fetched.
    pub cached: Option<CachedLine>,
}

impl RenderedLine {
    /// Returns a key that is unique among lines and changes with the content.
    pub fn key(&self) -> (u64, u64) {
        (self.number, self.cached.as_ref().map_or(0, |cached| cached.revision))
    }

    /// Returns the content, if it is fetched.
    pub fn line(&self) -> Option<Arc<LogLine>> {
        self.cached.as_ref().map(|cached| cached.line.clone())
    }
}

impl PartialEq for RenderedLine {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl LogReader {
    pub fn new(
        log: AttemptLog,
        view_state: Memo<LogViewState>,
        cache: LineCache,
        initial_lines: (u64, u64),
        search: Option<LogSearchState>,
        error_line: Memo<Option<u64>>,
    ) -> Self {
        let initial = view_state.get_untracked();
        let reader = Self {
            log: StoredValue::new(log),
            view_state,
            cache: RwSignal::new(cache),
            is_following: RwSignal::new(
                initial.selected_lines.is_none() && initial.first_line.is_none() && search.is_none(),
            ),
            highlighted: StoredValue::new(initial.search),
            search: RwSignal::new(search),
            error_line,
            viewport: RwSignal::new(None),
            scroll_top: RwSignal::new(0.0),
            scroll_area: NodeRef::new(),
            problem: RwSignal::new(None),
            initial_lines,
            fetch_state: StoredValue::default(),
            search_generation: StoredValue::new(0),
            live: StoredValue::new(use_live()),
            navigate: StoredValue::new(Arc::new(use_navigate())),
        };
        reader.start_fetching();
        reader
    }

    /// Returns the number of lines in the log.
    pub fn total(self) -> u64 {
        self.cache.with(|cache| cache.total)
    }

    /// Returns the first and last selected line: those in the URL, or else the current match.
    pub fn selected_lines(self) -> Option<(u64, u64)> {
        let current_match =
            move || self.search.with(|search| search.as_ref().and_then(|search| search.line)).map(|line| (line, line));
        self.view_state.with(|view_state| view_state.selected_lines).or_else(current_match)
    }

    /// Returns the line to scroll to at first; none for the end of the log. Not reactive, because only the first value
    /// matters.
    pub fn requested_line(self) -> Option<u64> {
        let selected = untrack(move || self.selected_lines());
        selected.map(|(line, _)| line).or_else(|| self.view_state.with_untracked(|view_state| view_state.first_line))
    }

    /// Returns the lines to render, by number, and their position in the view.
    pub fn visible_lines(self) -> VisibleLines {
        let (first, end) = self.initial_lines;
        let initial = VisibleLines { first, end, anchor: first, anchor_fraction: 0.0, anchor_offset: 0.0 };
        self.viewport.get().map_or(initial, |viewport| viewport.visible_lines(self.total(), self.scroll_top.get()))
    }

    /// Returns the lines to render.
    pub fn rendered_lines(self) -> Vec<RenderedLine> {
        let VisibleLines { first, end, .. } = self.visible_lines();
        let row = |cache: &LineCache, at| RenderedLine { number: at + 1, cached: cache.get(at).cloned() };
        self.cache.with(|cache| (first..end).map(|at| row(cache, at)).collect())
    }

    /// Fetches missing lines whenever the view changes, and the end whenever the log has grown.
    fn start_fetching(self) {
        let version = self.live.get_value().subscribe(&Topic::Log(self.log.with_value(|log| log.job.clone())));
        Effect::new(move |last: Option<u64>| {
            let version = version.get();
            if last.is_some_and(|last| last != version) {
                self.fetch_state.update_value(|fetch_state| fetch_state.is_behind = true);
                self.fetch_missing();
            }
            version
        });
        let times = Memo::new(move |_| self.view_state.with(|view_state| view_state.times));
        Effect::new(move |last: Option<bool>| {
            let times = times.get();
            if last.is_some_and(|last| last != times) {
                self.cache.update(LineCache::invalidate);
            }
            times
        });
        let span = Memo::new(move |_| {
            let VisibleLines { first, end, .. } = self.visible_lines();
            (first, end)
        });
        Effect::new(move |_| {
            // `get` instead of `track`: a memo that is only tracked is never computed, so it never reports a change.
            let _span = span.get();
            self.cache.track();
            self.fetch_missing();
        });
    }

    fn fetch_missing(self) {
        let LineFetchState { in_flight: busy, is_behind, .. } = self.fetch_state.get_value();
        if busy {
            return;
        }
        let VisibleLines { first, end, .. } = untrack(move || self.visible_lines());
        let missing = self.cache.with_untracked(|cache| cache.missing_range(first, end));
        // Starts with the last known line, which may have grown.
        let newest_page =
            is_behind.then(|| (self.cache.with_untracked(|cache| cache.total.saturating_sub(1)), PAGE_LINES));
        let Some((from, limit)) = missing.or(newest_page) else { return };
        self.fetch_state.update_value(|fetch_state| {
            fetch_state.in_flight = true;
            fetch_state.is_behind &= missing.is_some();
            fetch_state.requests += 1;
        });
        let log = self.log.get_value();
        let terms = self.highlighted.get_value();
        let times = self.view_state.with_untracked(|view_state| view_state.times);
        let view_state = LogViewState { search: terms.clone(), times, ..LogViewState::default() };
        spawn_local(async move {
            let query = view_state.lines_query(log.attempt, Some(from + 1), u32::try_from(limit).unwrap_or(u32::MAX));
            let result = log.backend.job_log_lines(log.job.clone(), query).await;
            // If the search or the switch has changed since the request, these lines are outdated: fetch them again.
            let Some(is_current) = self.highlighted.try_with_value(|now| *now == terms) else { return };
            let is_current = is_current && self.view_state.with_untracked(|view_state| view_state.times) == times;
            match result {
                Ok(lines) => {
                    self.fetch_state
                        .update_value(|fetch_state| (fetch_state.in_flight, fetch_state.failures) = (false, 0));
                    if self.problem.with_untracked(Option::is_some) {
                        self.problem.set(None);
                    }
                    if is_current {
                        self.cache.update(|cache| cache.insert(lines));
                    } else {
                        self.fetch_missing();
                    }
                }
                Err(problem) => self.handle_fetch_error(problem),
            }
        });
    }

    /// Shows the error of a request for lines, and retries after a delay.
    fn handle_fetch_error(self, problem: Problem) {
        self.live.get_value().handle_problem(&problem);
        self.problem.set(Some(problem));
        self.fetch_state.update_value(|fetch_state| {
            (fetch_state.is_behind, fetch_state.failures) = (true, fetch_state.failures.saturating_add(1));
        });
        let LineFetchState { failures, requests: request_number, .. } = self.fetch_state.get_value();
        after(retry_delay(failures), self.fetch_state, move || {
            // Unless the user has retried since.
            if self.fetch_state.with_value(|fetch_state| fetch_state.requests == request_number) {
                self.retry();
            }
        });
    }

    /// Fetches missing lines immediately, without waiting for the delay after an error.
    pub fn retry(self) {
        self.fetch_state.update_value(|fetch_state| fetch_state.in_flight = false);
        self.fetch_missing();
    }

    /// Scrolls to a line, counted from 1, unless it is visible.
    pub fn scroll_to_line(self, line: u64) {
        let (Some(viewport), Some(element)) = (self.viewport.get_untracked(), self.scroll_area.get_untracked()) else {
            return;
        };
        let (total, line) = (self.cache.with_untracked(|cache| cache.total), line.saturating_sub(1));
        if !viewport.is_line_visible(total, self.scroll_top.get_untracked(), line) {
            self.is_following.set(false);
            element.set_scroll_top(pixels(viewport.scroll_for_line(total, line)));
        }
    }

    /// Scrolls to the end, and follows the log as it grows.
    pub fn scroll_to_end(self) {
        self.is_following.set(true);
        if let (Some(viewport), Some(element)) = (self.viewport.get_untracked(), self.scroll_area.get_untracked()) {
            element.set_scroll_top(pixels(viewport.max_scroll(self.cache.with_untracked(|cache| cache.total)).ceil()));
        }
    }

    /// Searches for the terms in the URL, from the first selected or visible line on, and counts the matches.
    pub fn start_search(self) {
        let number = self.next_generation();
        let view_state = self.view_state.get_untracked();
        if view_state.search.q.is_empty() {
            self.search.set(None);
            self.set_highlight(view_state.search);
            return;
        }
        self.search.set(Some(LogSearchState::default()));
        let from =
            view_state.selected_lines.map_or_else(|| untrack(move || self.first_visible_line()), |(first, _)| first);
        let log = self.log.get_value();
        let is_newest = move || self.search_generation.try_get_value() == Some(number);
        spawn_local(async move {
            let query = view_state.search_query(log.attempt);
            let line = match self.find_wrapping(&log, &query, from, false, is_newest).await {
                Ok(line) => line,
                Err(problem) if is_newest() => {
                    self.search.set(Some(LogSearchState {
                        problem: Some(problem.detail),
                        is_all: true,
                        ..LogSearchState::default()
                    }));
                    return;
                }
                Err(_) => return,
            };
            if !is_newest() {
                return;
            }
            self.set_highlight(view_state.search.clone());
            self.search.update(|search| {
                search.get_or_insert_default().line = line;
            });
            if let Some(line) = line {
                self.select_match(line);
                let until = LogSearchQuery { until: Some(line), ..query.clone() };
                let rank = |count, is_all: bool| {
                    let set_rank = move |search: &mut LogSearchState| search.rank = is_all.then_some(count + 1);
                    is_newest() && self.update_search(set_rank)
                };
                drop(log.count_matches(until, rank).await);
            }
            let update_count = |count, is_all| {
                let set_count = move |search: &mut LogSearchState| (search.count, search.is_all) = (count, is_all);
                is_newest() && self.update_search(set_count)
            };
            drop(log.count_matches(query, update_count).await);
        });
    }

    /// Selects the next or the previous match; wraps around at either end of the log.
    pub fn go_to_match(self, backward: bool) {
        let view_state = self.view_state.get_untracked();
        if view_state.search.q.is_empty() {
            return;
        }
        let log = self.log.get_value();
        let current_line =
            untrack(move || self.selected_lines().map_or_else(|| self.first_visible_line(), |(first, _)| first));
        let from = if backward { current_line.saturating_sub(1) } else { current_line + 1 };
        let number = self.search_generation.get_value();
        let is_newest = move || self.search_generation.try_get_value() == Some(number);
        spawn_local(async move {
            let Ok(Some(line)) =
                self.find_wrapping(&log, &view_state.search_query(log.attempt), from, backward, is_newest).await
            else {
                return;
            };
            if is_newest() {
                self.update_search(move |search| search.advance(current_line, line, backward));
                self.select_match(line);
            }
        });
    }

    /// Selects the next or the previous error, by the search for errors.
    pub fn go_to_error(self, backward: bool) {
        let search = LogSearchTerms::errors();
        let view_state = self.view_state.get_untracked();
        if view_state.search == search {
            return self.go_to_match(backward);
        }
        let view_state = LogViewState { search, ..view_state };
        let current_line =
            untrack(move || self.selected_lines().map_or_else(|| self.first_visible_line(), |(first, _)| first));
        let from = if backward { current_line.saturating_sub(1) } else { current_line + 1 };
        let log = self.log.get_value();
        let number = self.next_generation();
        let is_newest = move || self.search_generation.try_get_value() == Some(number);
        spawn_local(async move {
            let query = view_state.search_query(log.attempt);
            let found = self.find_wrapping(&log, &query, from, backward, is_newest).await;
            if let (Ok(Some(line)), true) = (found, is_newest()) {
                self.navigate_to(&view_state.with_line(line), false);
            }
        });
    }

    /// Selects a match and scrolls to it, without a new entry in the browser's history.
    fn select_match(self, line: u64) {
        self.navigate_to(&self.view_state.get_untracked().with_line(line), true);
        self.scroll_to_line(line);
    }

    /// Returns the first match in the direction of the search, from the line `from` on; if there is none, from the
    /// opposite end of the log on.
    async fn find_wrapping(
        self,
        log: &AttemptLog,
        query: &LogSearchQuery,
        from: u64,
        backward: bool,
        should_continue: impl Fn() -> bool + Copy,
    ) -> Result<Option<u64>, Problem> {
        let first = LogSearchQuery { from: Some(from), backward, ..query.clone() };
        // `from` is 0 if a backward search starts at the first line.
        let found = if backward && from == 0 { None } else { log.find_first(first, should_continue).await? };
        match found {
            Some(line) => Ok(Some(line)),
            None => log.find_first(LogSearchQuery { backward, ..query.clone() }, should_continue).await,
        }
    }

    /// Returns the number of the first visible line, from 1.
    fn first_visible_line(self) -> u64 {
        let VisibleLines { anchor, anchor_fraction: fraction, anchor_offset: offset, .. } = self.visible_lines();
        let row = self.viewport.get().map_or(1.0, |viewport| viewport.row_height);
        let above = floor_to_u64((offset / row - fraction).max(0.0));
        anchor.saturating_sub(above) + 1
    }

    fn next_generation(self) -> u64 {
        self.search_generation.update_value(|number| *number += 1);
        self.search_generation.get_value()
    }

    fn update_search(self, update: impl FnOnce(&mut LogSearchState)) -> bool {
        self.search.try_update(|search| search.as_mut().map(update)).is_some()
    }

    /// Sets the search terms to mark, and invalidates the lines if they have other marks.
    fn set_highlight(self, terms: LogSearchTerms) {
        if self.highlighted.with_value(|highlighted| *highlighted != terms) {
            self.highlighted.set_value(terms);
            self.cache.update(LineCache::invalidate);
        }
    }

    /// Navigates to another view of the same log.
    pub fn navigate_to(self, view_state: &LogViewState, replace: bool) {
        let href = self.log.with_value(|log| view_state.href(&log.job));
        let navigate = self.navigate.get_value();
        navigate(&href, NavigateOptions { replace, scroll: false, ..NavigateOptions::default() });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "no element is so high")]
pub(crate) fn pixels(number: f64) -> i32 {
    number.round() as i32
}
