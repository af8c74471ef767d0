//! What the parts of a log's page share: what is asked for, what is held, and what can be seen.

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

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct LogReader {
    /// Where it is looked.
    pub log: StoredValue<AttemptLog>,
    /// What the address asks for.
    pub view_state: Memo<LogViewState>,
    /// The lines that are here.
    pub cache: RwSignal<LineCache>,
    /// What is known of what is looked for.
    pub search: RwSignal<Option<LogSearchState>>,
    /// The view; none as long as nobody has measured it, and the page is as it was sent.
    pub viewport: RwSignal<Option<LogViewport>>,
    /// How far the sheet is scrolled.
    pub scroll_top: RwSignal<f64>,
    /// Whether the end stays in view.
    pub is_following: RwSignal<bool>,
    /// What is scrolled.
    pub scroll_area: NodeRef<Div>,
    /// Why lines that are wanted are not told.
    pub problem: RwSignal<Option<Problem>>,
    /// The first line that came with the page, from 0, and the first that did not.
    initial_lines: (u64, u64),
    /// What is marked in the lines that are asked for.
    highlighted: StoredValue<LogSearchTerms>,
    fetch_state: StoredValue<LineFetchState>,
    /// Counts searches: what an older one finds does not matter any more.
    search_generation: StoredValue<u64>,
    live: StoredValue<LiveUpdates>,
    navigate: StoredValue<Navigate>,
}

/// How the asking for lines stands.
#[derive(Debug, Clone, Copy, Default)]
struct LineFetchState {
    /// An answer is on its way, or it is waited after there was none.
    in_flight: bool,
    /// The log has grown since its end was asked for.
    is_behind: bool,
    /// How often in a row there was no answer.
    failures: u32,
    /// How often lines were asked for.
    requests: u64,
}

type Navigate = Arc<dyn Fn(&str, NavigateOptions) + Send + Sync>;

/// One line as it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct RenderedLine {
    /// Its number, from 1.
    pub number: u64,
    /// What it says; none before it was told.
    pub cached: Option<CachedLine>,
}

impl RenderedLine {
    /// What tells it from others, and from what it was.
    pub fn key(&self) -> (u64, u64) {
        (self.number, self.cached.as_ref().map_or(0, |held| held.revision))
    }

    /// What it says.
    pub fn line(&self) -> Option<Arc<LogLine>> {
        self.cached.as_ref().map(|held| held.line.clone())
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
        wish: Memo<LogViewState>,
        store: LineCache,
        sent: (u64, u64),
        found: Option<LogSearchState>,
    ) -> Self {
        let asked = wish.get_untracked();
        let reader = Self {
            log: StoredValue::new(log),
            view_state: wish,
            cache: RwSignal::new(store),
            is_following: RwSignal::new(
                asked.selected_lines.is_none() && asked.first_line.is_none() && found.is_none(),
            ),
            highlighted: StoredValue::new(asked.search),
            search: RwSignal::new(found),
            viewport: RwSignal::new(None),
            scroll_top: RwSignal::new(0.0),
            scroll_area: NodeRef::new(),
            problem: RwSignal::new(None),
            initial_lines: sent,
            fetch_state: StoredValue::default(),
            search_generation: StoredValue::new(0),
            live: StoredValue::new(use_live()),
            navigate: StoredValue::new(Arc::new(use_navigate())),
        };
        reader.start_fetching();
        reader
    }

    /// How many lines there are.
    pub fn total(self) -> u64 {
        self.cache.with(|store| store.total)
    }

    /// The chosen lines: those of the address, or what was found.
    pub fn selected_lines(self) -> Option<(u64, u64)> {
        let found =
            move || self.search.with(|found| found.as_ref().and_then(|found| found.line)).map(|line| (line, line));
        self.view_state.with(|wish| wish.selected_lines).or_else(found)
    }

    /// The line that the reader wants to see first; the end if there is none. It is asked once.
    pub fn requested_line(self) -> Option<u64> {
        let chosen = untrack(move || self.selected_lines());
        chosen.map(|(line, _)| line).or_else(|| self.view_state.with_untracked(|wish| wish.first_line))
    }

    /// What is drawn.
    pub fn visible_lines(self) -> VisibleLines {
        let (first, end) = self.initial_lines;
        let sent = VisibleLines { first, end, anchor: first, anchor_fraction: 0.0, anchor_offset: 0.0 };
        self.viewport.get().map_or(sent, |frame| frame.visible_lines(self.total(), self.scroll_top.get()))
    }

    /// The lines that are drawn.
    pub fn rendered_lines(self) -> Vec<RenderedLine> {
        let VisibleLines { first, end, .. } = self.visible_lines();
        let row = |store: &LineCache, at| RenderedLine { number: at + 1, cached: store.get(at).cloned() };
        self.cache.with(|store| (first..end).map(|at| row(store, at)).collect())
    }

    /// Asks for what is in view and not here, and for the end when the log has grown.
    fn start_fetching(self) {
        let version = self.live.get_value().subscribe(&Topic::Log(self.log.with_value(|log| log.job.clone())));
        Effect::new(move |last: Option<u64>| {
            let version = version.get();
            if last.is_some_and(|last| last != version) {
                self.fetch_state.update_value(|asking| asking.is_behind = true);
                self.fetch_missing();
            }
            version
        });
        let span = Memo::new(move |_| {
            let VisibleLines { first, end, .. } = self.visible_lines();
            (first, end)
        });
        Effect::new(move |_| {
            // Read, not only tracked: a memo that nobody reads never learns of changes.
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
        let missing = self.cache.with_untracked(|store| store.missing_range(first, end));
        // The last line may have grown too.
        let news = is_behind.then(|| (self.cache.with_untracked(|store| store.total.saturating_sub(1)), PAGE_LINES));
        let Some((from, limit)) = missing.or(news) else { return };
        self.fetch_state.update_value(|asking| {
            asking.in_flight = true;
            asking.is_behind &= missing.is_some();
            asking.requests += 1;
        });
        let log = self.log.get_value();
        let marked = self.highlighted.get_value();
        let wish = LogViewState { search: marked.clone(), ..LogViewState::default() };
        spawn_local(async move {
            let asked = wish.lines_query(log.attempt, Some(from + 1), u32::try_from(limit).unwrap_or(u32::MAX));
            let answer = log.backend.job_log_lines(log.job.clone(), asked).await;
            // What was told for another search is asked for again.
            let Some(is_wanted) = self.highlighted.try_with_value(|now| *now == marked) else { return };
            match answer {
                Ok(told) => {
                    self.fetch_state.update_value(|asking| (asking.in_flight, asking.failures) = (false, 0));
                    if self.problem.with_untracked(Option::is_some) {
                        self.problem.set(None);
                    }
                    if is_wanted { self.cache.update(|store| store.insert(told)) } else { self.fetch_missing() }
                }
                Err(problem) => self.handle_fetch_error(problem),
            }
        });
    }

    /// Lines were not told: the reader is told why, and after a pause they are asked for again.
    fn handle_fetch_error(self, problem: Problem) {
        self.live.get_value().handle_problem(&problem);
        self.problem.set(Some(problem));
        self.fetch_state
            .update_value(|asking| (asking.is_behind, asking.failures) = (true, asking.failures.saturating_add(1)));
        let LineFetchState { failures: failed, requests: tries, .. } = self.fetch_state.get_value();
        after(retry_delay(failed), self.fetch_state, move || {
            // Unless the user asked for them before.
            if self.fetch_state.with_value(|asking| asking.requests == tries) {
                self.retry();
            }
        });
    }

    /// Asks for the lines that were not told, without waiting any longer.
    pub fn retry(self) {
        self.fetch_state.update_value(|asking| asking.in_flight = false);
        self.fetch_missing();
    }

    /// Scrolls to a line, which is counted from 1, if it is not in view.
    pub fn scroll_to_line(self, line: u64) {
        let (Some(frame), Some(sheet)) = (self.viewport.get_untracked(), self.scroll_area.get_untracked()) else {
            return;
        };
        let (total, line) = (self.cache.with_untracked(|store| store.total), line.saturating_sub(1));
        if !frame.is_line_visible(total, self.scroll_top.get_untracked(), line) {
            self.is_following.set(false);
            sheet.set_scroll_top(pixels(frame.scroll_for_line(total, line)));
        }
    }

    /// Scrolls to the end, and stays there.
    pub fn scroll_to_end(self) {
        self.is_following.set(true);
        if let (Some(frame), Some(sheet)) = (self.viewport.get_untracked(), self.scroll_area.get_untracked()) {
            sheet.set_scroll_top(pixels(frame.max_scroll(self.cache.with_untracked(|store| store.total)).ceil()));
        }
    }

    /// Looks for something else, from what is in view on, and counts it.
    pub fn start_search(self) {
        let number = self.next_generation();
        let wish = self.view_state.get_untracked();
        if wish.search.q.is_empty() {
            self.search.set(None);
            self.set_highlight(wish.search);
            return;
        }
        self.search.set(Some(LogSearchState::default()));
        let from = wish.selected_lines.map_or_else(|| untrack(move || self.first_visible_line()), |(first, _)| first);
        let log = self.log.get_value();
        let is_newest = move || self.search_generation.try_get_value() == Some(number);
        spawn_local(async move {
            let query = wish.search_query(log.attempt);
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
            self.set_highlight(wish.search.clone());
            self.search.update(|found| {
                found.get_or_insert_default().line = line;
            });
            if let Some(line) = line {
                self.select_match(line);
                let until = LogSearchQuery { until: Some(line), ..query.clone() };
                let rank = |count, is_all: bool| {
                    let set_rank = move |found: &mut LogSearchState| found.rank = is_all.then_some(count + 1);
                    is_newest() && self.update_search(set_rank)
                };
                drop(log.count_matches(until, rank).await);
            }
            let all = |count, is_all| {
                let set_count = move |found: &mut LogSearchState| (found.count, found.is_all) = (count, is_all);
                is_newest() && self.update_search(set_count)
            };
            drop(log.count_matches(query, all).await);
        });
    }

    /// Goes to the next line that has what is looked for, or to the one before; from the end on at the beginning.
    pub fn go_to_match(self, backward: bool) {
        let wish = self.view_state.get_untracked();
        if wish.search.q.is_empty() {
            return;
        }
        let log = self.log.get_value();
        let here = untrack(move || self.selected_lines().map_or_else(|| self.first_visible_line(), |(first, _)| first));
        let from = if backward { here.saturating_sub(1) } else { here + 1 };
        let number = self.search_generation.get_value();
        let is_newest = move || self.search_generation.try_get_value() == Some(number);
        spawn_local(async move {
            let Ok(Some(line)) =
                self.find_wrapping(&log, &wish.search_query(log.attempt), from, backward, is_newest).await
            else {
                return;
            };
            if is_newest() {
                self.update_search(move |found| found.advance(here, line, backward));
                self.select_match(line);
            }
        });
    }

    /// Chooses a line that was found, without a step in the history.
    fn select_match(self, line: u64) {
        self.navigate_to(&self.view_state.get_untracked().with_line(line), true);
        self.scroll_to_line(line);
    }

    /// The line that has it, from one on to the log's end, and then from its beginning.
    async fn find_wrapping(
        self,
        log: &AttemptLog,
        query: &LogSearchQuery,
        from: u64,
        backward: bool,
        goes_on: impl Fn() -> bool + Copy,
    ) -> Result<Option<u64>, Problem> {
        let first = LogSearchQuery { from: Some(from), backward, ..query.clone() };
        // Before the first line there is none.
        let found = if backward && from == 0 { None } else { log.find_first(first, goes_on).await? };
        match found {
            Some(line) => Ok(Some(line)),
            None => log.find_first(LogSearchQuery { backward, ..query.clone() }, goes_on).await,
        }
    }

    /// The first line that can be seen, from 1.
    fn first_visible_line(self) -> u64 {
        let VisibleLines { anchor, anchor_fraction: share, anchor_offset: at, .. } = self.visible_lines();
        let row = self.viewport.get().map_or(1.0, |frame| frame.row_height);
        let above = floor_to_u64((at / row - share).max(0.0));
        anchor.saturating_sub(above) + 1
    }

    fn next_generation(self) -> u64 {
        self.search_generation.update_value(|number| *number += 1);
        self.search_generation.get_value()
    }

    fn update_search(self, what: impl FnOnce(&mut LogSearchState)) -> bool {
        self.search.try_update(|found| found.as_mut().map(what)).is_some()
    }

    /// From now on this is marked in the lines.
    fn set_highlight(self, find: LogSearchTerms) {
        if self.highlighted.with_value(|marked| *marked != find) {
            self.highlighted.set_value(find);
            self.cache.update(LineCache::invalidate);
        }
    }

    /// Goes to another address of the same log.
    pub fn navigate_to(self, wish: &LogViewState, replace: bool) {
        let href = self.log.with_value(|log| wish.href(&log.job));
        let navigate = self.navigate.get_value();
        navigate(&href, NavigateOptions { replace, scroll: false, ..NavigateOptions::default() });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "no sheet is so high")]
pub(crate) fn pixels(number: f64) -> i32 {
    number.round() as i32
}
