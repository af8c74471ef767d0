//! The lines of a log that the page holds: those that were looked at last, and how many there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::protocol::logs::{LogLine, LogLines};

/// Lines are asked for and forgotten by so many.
pub(crate) const PAGE: u64 = 128;
/// So many pages are held: of lines as long as they may be, 40 MB.
const MOST: usize = 40;

/// A line that is held.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// Grows with each change of what it says.
    pub revision: u64,
    /// What it says.
    pub line: Arc<LogLine>,
}

/// See the module. Lines are counted from 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    pages: BTreeMap<u64, Page>,
    /// How many lines the log has.
    pub total: u64,
    /// Counts what was taken.
    taken: u64,
    /// Counts how often all was to be told anew.
    renewed: u64,
}

#[derive(Debug, Clone, Default)]
struct Page {
    lines: Vec<Option<Held>>,
    taken: u64,
    renewed: u64,
}

impl Store {
    /// Takes what the server has told.
    pub fn put(&mut self, told: LogLines) {
        self.taken += 1;
        self.total = told.total;
        for (at, line) in (told.from.saturating_sub(1)..).zip(told.lines) {
            let page = self.pages.entry(at / PAGE).or_default();
            page.taken = self.taken;
            if page.renewed != self.renewed {
                *page = Page { taken: self.taken, renewed: self.renewed, lines: Vec::new() };
            }
            let place = usize::try_from(at % PAGE).unwrap_or_default();
            if page.lines.len() <= place {
                page.lines.resize(place + 1, None);
            }
            let held = &mut page.lines[place];
            if held.as_ref().is_none_or(|held| *held.line != line) {
                *held = Some(Held { revision: self.taken, line: Arc::new(line) });
            }
        }
        self.pages.retain(|number, _| number * PAGE < told.total);
        while self.pages.len() > MOST {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.taken).map(|(number, _)| *number);
            oldest.and_then(|number| self.pages.remove(&number));
        }
    }

    /// All lines are to be told anew; until then they are shown as they are.
    pub fn renew(&mut self) {
        self.renewed += 1;
    }

    /// A line that is held.
    pub fn line(&self, at: u64) -> Option<&Held> {
        self.pages.get(&(at / PAGE))?.lines.get(usize::try_from(at % PAGE).ok()?)?.as_ref()
    }

    /// What is to be asked for to have all of these lines: from which on, and how many. Told is what begins with the
    /// first that is missing, and ends with the page of the last.
    pub fn missing(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let end = end.min(self.total);
        let page = |at: u64| self.pages.get(&(at / PAGE)).filter(|page| page.renewed == self.renewed);
        let is_missing = |at: &u64| page(*at).is_none() || self.line(*at).is_none();
        let from = (first..end).find(is_missing)?;
        let from = if page(from).is_some() { from } else { from / PAGE * PAGE };
        let last = (from..end).rev().find(is_missing).unwrap_or(from);
        Some((from, (last / PAGE + 1) * PAGE - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::Attempt;

    fn told(from: u64, texts: impl IntoIterator<Item = String>, total: u64) -> LogLines {
        let lines = texts.into_iter().map(|text| LogLine { text, ..LogLine::default() }).collect();
        LogLines {
            attempt: Attempt(1),
            from: from + 1,
            offset: None,
            lines,
            unmarked_from: None,
            total,
            open: false,
            size: 0,
        }
    }

    fn numbered(from: u64, end: u64, total: u64) -> LogLines {
        told(from, (from..end).map(|at| at.to_string()), total)
    }

    fn text(store: &Store, at: u64) -> Option<&str> {
        store.line(at).map(|held| held.line.text.as_str())
    }

    #[test]
    fn what_is_missing_is_asked_for_by_pages() {
        let mut store = Store { total: 1_000_000, ..Store::default() };
        assert_eq!(store.missing(500_000, 500_040), Some((499_968, 2 * PAGE - 128)));
        store.put(numbered(499_968, 500_096, 1_000_000));
        assert_eq!(store.missing(500_000, 500_040), None);
        assert_eq!(text(&store, 500_017), Some("500017"));
        assert_eq!(store.missing(500_090, 500_130), Some((500_096, PAGE)));
        assert_eq!(store.missing(499_900, 500_130), Some((499_840, 500_224 - 499_840)));
        assert_eq!(store.missing(999_990, 1_000_050), Some((999_936, PAGE)), "no line is behind the last");
        // An answer that is shorter than what was asked for: what follows is asked for next.
        store.put(numbered(0, 3, 1_000_000));
        assert_eq!(store.missing(0, 40), Some((3, PAGE - 3)));
        // One from within a page leaves what is before it to be asked for.
        store.put(numbered(10, 12, 1_000_000));
        assert_eq!((text(&store, 2), text(&store, 5), text(&store, 10)), (Some("2"), None, Some("10")));
        assert_eq!(store.missing(0, 12), Some((3, PAGE - 3)));
    }

    #[test]
    fn the_last_line_grows_and_only_it_is_new() {
        let mut store = Store::default();
        store.put(told(0, ["one".into(), "tw".into()], 2));
        let revisions = |store: &Store| [0, 1].map(|at| store.line(at).expect("it is held").revision);
        let before = revisions(&store);
        store.put(told(0, ["one".into(), "two".into(), "three".into()], 3));
        assert_eq!((text(&store, 1), text(&store, 2), store.total), (Some("two"), Some("three"), 3));
        let after = revisions(&store);
        assert!(after[0] == before[0] && after[1] > before[1]);
    }

    #[test]
    fn the_page_holds_what_was_told_last_and_no_more() {
        let mut store = Store::default();
        for page in 0..MOST as u64 + 5 {
            store.put(numbered(page * PAGE, (page + 1) * PAGE, 1_000_000));
        }
        assert_eq!(store.pages.len(), MOST);
        assert_eq!((text(&store, 0), text(&store, 5 * PAGE)), (None, Some("640")));
        store.put(told(0, [], 10));
        assert!(store.pages.is_empty(), "the log is another one");
        store.put(numbered(0, 10, 10));
        store.renew();
        assert_eq!((text(&store, 0), store.missing(0, 10)), (Some("0"), Some((0, PAGE))), "it is shown, and asked for");
        store.put(numbered(0, 10, 10));
        assert_eq!(store.missing(0, 10), None);
    }
}
