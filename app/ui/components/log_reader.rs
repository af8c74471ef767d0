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
use crate::ui::live::{Live, pause, use_live};
use crate::ui::logs::frame::{Frame, View, whole};
use crate::ui::logs::search::{Found, Search};
use crate::ui::logs::store::{Held, PAGE, Store};
use crate::ui::logs::wish::{Find, Wish};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    /// Where it is looked.
    pub log: StoredValue<Search>,
    /// What the address asks for.
    pub wish: Memo<Wish>,
    /// The lines that are here.
    pub store: RwSignal<Store>,
    /// What is known of what is looked for.
    pub found: RwSignal<Option<Found>>,
    /// The view; none as long as nobody has measured it, and the page is as it was sent.
    pub frame: RwSignal<Option<Frame>>,
    /// How far the sheet is scrolled.
    pub scrolled: RwSignal<f64>,
    /// Whether the end stays in view.
    pub follows: RwSignal<bool>,
    /// What is scrolled.
    pub sheet: NodeRef<Div>,
    /// Why lines that are wanted are not told.
    pub trouble: RwSignal<Option<Problem>>,
    /// The first line that came with the page, from 0, and the first that did not.
    sent: (u64, u64),
    /// What is marked in the lines that are asked for.
    marked: StoredValue<Find>,
    asking: StoredValue<Asking>,
    /// Counts searches: what an older one finds does not matter any more.
    searches: StoredValue<u64>,
    live: StoredValue<Live>,
    navigate: StoredValue<Navigate>,
}

/// How the asking for lines stands.
#[derive(Debug, Clone, Copy, Default)]
struct Asking {
    /// An answer is on its way, or it is waited after there was none.
    busy: bool,
    /// The log has grown since its end was asked for.
    is_behind: bool,
    /// How often in a row there was no answer.
    failed: u32,
    /// How often lines were asked for.
    tries: u64,
}

type Navigate = Arc<dyn Fn(&str, NavigateOptions) + Send + Sync>;

/// One line as it is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Its number, from 1.
    pub number: u64,
    /// What it says; none before it was told.
    pub held: Option<Held>,
}

impl Row {
    /// What tells it from others, and from what it was.
    pub fn key(&self) -> (u64, u64) {
        (self.number, self.held.as_ref().map_or(0, |held| held.revision))
    }

    /// What it says.
    pub fn line(&self) -> Option<Arc<LogLine>> {
        self.held.as_ref().map(|held| held.line.clone())
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Reader {
    pub fn new(log: Search, wish: Memo<Wish>, store: Store, sent: (u64, u64), found: Option<Found>) -> Self {
        let asked = wish.get_untracked();
        let reader = Self {
            log: StoredValue::new(log),
            wish,
            store: RwSignal::new(store),
            follows: RwSignal::new(asked.lines.is_none() && asked.from.is_none() && found.is_none()),
            marked: StoredValue::new(asked.find),
            found: RwSignal::new(found),
            frame: RwSignal::new(None),
            scrolled: RwSignal::new(0.0),
            sheet: NodeRef::new(),
            trouble: RwSignal::new(None),
            sent,
            asking: StoredValue::default(),
            searches: StoredValue::new(0),
            live: StoredValue::new(use_live()),
            navigate: StoredValue::new(Arc::new(use_navigate())),
        };
        reader.keep_up();
        reader
    }

    /// How many lines there are.
    pub fn total(self) -> u64 {
        self.store.with(|store| store.total)
    }

    /// The chosen lines: those of the address, or what was found.
    pub fn chosen(self) -> Option<(u64, u64)> {
        let found =
            move || self.found.with(|found| found.as_ref().and_then(|found| found.line)).map(|line| (line, line));
        self.wish.with(|wish| wish.lines).or_else(found)
    }

    /// The line that the reader wants to see first; the end if there is none. It is asked once.
    pub fn asked_for(self) -> Option<u64> {
        let chosen = untrack(move || self.chosen());
        chosen.map(|(line, _)| line).or_else(|| self.wish.with_untracked(|wish| wish.from))
    }

    /// What is drawn.
    pub fn view(self) -> View {
        let (first, end) = self.sent;
        let sent = View { first, end, anchor: first, share: 0.0, at: 0.0 };
        self.frame.get().map_or(sent, |frame| frame.view(self.total(), self.scrolled.get()))
    }

    /// The lines that are drawn.
    pub fn rows(self) -> Vec<Row> {
        let View { first, end, .. } = self.view();
        let row = |store: &Store, at| Row { number: at + 1, held: store.line(at).cloned() };
        self.store.with(|store| (first..end).map(|at| row(store, at)).collect())
    }

    /// Asks for what is in view and not here, and for the end when the log has grown.
    fn keep_up(self) {
        let version = self.live.get_value().follow(&Topic::Log(self.log.with_value(|log| log.job.clone())));
        Effect::new(move |last: Option<u64>| {
            let version = version.get();
            if last.is_some_and(|last| last != version) {
                self.asking.update_value(|asking| asking.is_behind = true);
                self.ask();
            }
            version
        });
        let span = Memo::new(move |_| {
            let View { first, end, .. } = self.view();
            (first, end)
        });
        Effect::new(move |_| {
            // Read, not only tracked: a memo that nobody reads never learns of changes.
            let _span = span.get();
            self.store.track();
            self.ask();
        });
    }

    fn ask(self) {
        let Asking { busy, is_behind, .. } = self.asking.get_value();
        if busy {
            return;
        }
        let View { first, end, .. } = untrack(move || self.view());
        let missing = self.store.with_untracked(|store| store.missing(first, end));
        // The last line may have grown too.
        let news = is_behind.then(|| (self.store.with_untracked(|store| store.total.saturating_sub(1)), PAGE));
        let Some((from, limit)) = missing.or(news) else { return };
        self.asking.update_value(|asking| {
            asking.busy = true;
            asking.is_behind &= missing.is_some();
            asking.tries += 1;
        });
        let log = self.log.get_value();
        let marked = self.marked.get_value();
        let wish = Wish { find: marked.clone(), ..Wish::default() };
        spawn_local(async move {
            let asked = wish.some(log.attempt, Some(from + 1), u32::try_from(limit).unwrap_or(u32::MAX));
            let told = log.port.job_log_lines(log.job.clone(), asked).await;
            // What was told for another search is asked for again.
            let Some(is_wanted) = self.marked.try_with_value(|now| *now == marked) else { return };
            match told {
                Ok(told) => {
                    self.asking.update_value(|asking| (asking.busy, asking.failed) = (false, 0));
                    if self.trouble.with_untracked(Option::is_some) {
                        self.trouble.set(None);
                    }
                    if is_wanted { self.store.update(|store| store.put(told)) } else { self.ask() }
                }
                Err(problem) => self.missed(problem),
            }
        });
    }

    /// Lines were not told: the reader is told why, and after a pause they are asked for again.
    fn missed(self, problem: Problem) {
        self.live.get_value().heard(&problem);
        self.trouble.set(Some(problem));
        self.asking.update_value(|asking| (asking.is_behind, asking.failed) = (true, asking.failed.saturating_add(1)));
        let Asking { failed, tries, .. } = self.asking.get_value();
        let again = move || {
            // Unless somebody did not wait for it.
            if self.asking.try_get_value().is_some_and(|asking| asking.tries == tries) {
                self.ask_again();
            }
        };
        set_timeout(again, pause(failed));
    }

    /// Asks for the lines that were not told, without waiting any longer.
    pub fn ask_again(self) {
        self.asking.update_value(|asking| asking.busy = false);
        self.ask();
    }

    /// Scrolls to a line, which is counted from 1, if it is not in view.
    pub fn show(self, line: u64) {
        let (Some(frame), Some(sheet)) = (self.frame.get_untracked(), self.sheet.get_untracked()) else { return };
        let (total, line) = (self.store.with_untracked(|store| store.total), line.saturating_sub(1));
        if !frame.shows(total, self.scrolled.get_untracked(), line) {
            self.follows.set(false);
            sheet.set_scroll_top(pixels(frame.scrolled_to(total, line)));
        }
    }

    /// Scrolls to the end, and stays there.
    pub fn show_end(self) {
        self.follows.set(true);
        if let (Some(frame), Some(sheet)) = (self.frame.get_untracked(), self.sheet.get_untracked()) {
            sheet.set_scroll_top(pixels(frame.reach(self.store.with_untracked(|store| store.total)).ceil()));
        }
    }

    /// Looks for something else, from what is in view on, and counts it.
    pub fn begin_search(self) {
        let number = self.next_search();
        let wish = self.wish.get_untracked();
        if wish.find.q.is_empty() {
            self.found.set(None);
            self.mark(wish.find);
            return;
        }
        self.found.set(Some(Found::default()));
        let from = wish.lines.map_or_else(|| untrack(move || self.first_in_view()), |(first, _)| first);
        let log = self.log.get_value();
        let is_newest = move || self.searches.try_get_value() == Some(number);
        spawn_local(async move {
            let query = wish.search(log.attempt);
            let line = match self.around(&log, &query, from, false, is_newest).await {
                Ok(line) => line,
                Err(problem) if is_newest() => {
                    self.found.set(Some(Found { problem: Some(problem.detail), is_all: true, ..Found::default() }));
                    return;
                }
                Err(_) => return,
            };
            if !is_newest() {
                return;
            }
            self.mark(wish.find.clone());
            self.found.update(|found| {
                found.get_or_insert_default().line = line;
            });
            if let Some(line) = line {
                self.arrive(line);
                let until = LogSearchQuery { until: Some(line), ..query.clone() };
                let rank = |count, is_all: bool| {
                    let told = move |found: &mut Found| found.rank = is_all.then_some(count + 1);
                    is_newest() && self.tell(told)
                };
                drop(log.count(until, rank).await);
            }
            let all = |count, is_all| {
                let told = move |found: &mut Found| (found.count, found.is_all) = (count, is_all);
                is_newest() && self.tell(told)
            };
            drop(log.count(query, all).await);
        });
    }

    /// Goes to the next line that has what is looked for, or to the one before; from the end on at the beginning.
    pub fn go_on(self, backward: bool) {
        let wish = self.wish.get_untracked();
        if wish.find.q.is_empty() {
            return;
        }
        let log = self.log.get_value();
        let here = untrack(move || self.chosen().map_or_else(|| self.first_in_view(), |(first, _)| first));
        let from = if backward { here.saturating_sub(1) } else { here + 1 };
        let number = self.searches.get_value();
        let is_newest = move || self.searches.try_get_value() == Some(number);
        spawn_local(async move {
            let Ok(Some(line)) = self.around(&log, &wish.search(log.attempt), from, backward, is_newest).await else {
                return;
            };
            if is_newest() {
                self.tell(move |found| found.step(here, line, backward));
                self.arrive(line);
            }
        });
    }

    /// Chooses a line that was found, without a step in the history.
    fn arrive(self, line: u64) {
        self.go(&self.wish.get_untracked().at(line), true);
        self.show(line);
    }

    /// The line that has it, from one on to the log's end, and then from its beginning.
    async fn around(
        self,
        log: &Search,
        query: &LogSearchQuery,
        from: u64,
        backward: bool,
        goes_on: impl Fn() -> bool + Copy,
    ) -> Result<Option<u64>, Problem> {
        let first = LogSearchQuery { from: Some(from), backward, ..query.clone() };
        // Before the first line there is none.
        let found = if backward && from == 0 { None } else { log.seek(first, goes_on).await? };
        match found {
            Some(line) => Ok(Some(line)),
            None => log.seek(LogSearchQuery { backward, ..query.clone() }, goes_on).await,
        }
    }

    /// The first line that can be seen, from 1.
    fn first_in_view(self) -> u64 {
        let View { anchor, share, at, .. } = self.view();
        let row = self.frame.get().map_or(1.0, |frame| frame.row);
        let above = whole((at / row - share).max(0.0));
        anchor.saturating_sub(above) + 1
    }

    fn next_search(self) -> u64 {
        self.searches.update_value(|number| *number += 1);
        self.searches.get_value()
    }

    fn tell(self, what: impl FnOnce(&mut Found)) -> bool {
        self.found.try_update(|found| found.as_mut().map(what)).is_some()
    }

    /// From now on this is marked in the lines.
    fn mark(self, find: Find) {
        if self.marked.with_value(|marked| *marked != find) {
            self.marked.set_value(find);
            self.store.update(Store::renew);
        }
    }

    /// Goes to another address of the same log.
    pub fn go(self, wish: &Wish, replace: bool) {
        let href = self.log.with_value(|log| wish.href(&log.job));
        let navigate = self.navigate.get_value();
        navigate(&href, NavigateOptions { replace, scroll: false, ..NavigateOptions::default() });
    }
}

#[expect(clippy::cast_possible_truncation, reason = "no sheet is so high")]
pub(crate) fn pixels(number: f64) -> i32 {
    number.round() as i32
}
