//! The log lines that the page has loaded most recently, and the number of all lines.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::protocol::logs::{LogLine, LogLines};

/// Lines are requested and evicted in pages of this size.
pub(crate) const PAGE_LINES: u64 = 128;
/// The maximum number of cached pages: 40 MB if all lines have the maximum length.
const MAX_PAGES: usize = 40;

#[derive(Debug, Clone)]
pub(crate) struct CachedLine {
    /// Grows with each change of the line.
    pub revision: u64,
    pub line: Arc<LogLine>,
}

/// The cache. Lines are numbered from 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineCache {
    pages: BTreeMap<u64, CachePage>,
    /// Number of lines in the log.
    pub total: u64,
    /// Number of insertions so far.
    insertions: u64,
    /// Number of invalidations so far.
    generation: u64,
}

#[derive(Debug, Clone, Default)]
struct CachePage {
    lines: Vec<Option<CachedLine>>,
    last_insertion: u64,
    generation: u64,
}

impl LineCache {
    /// Inserts a response.
    pub fn insert(&mut self, lines: LogLines) {
        self.insertions += 1;
        self.total = lines.total;
        for (number, line) in (lines.from.saturating_sub(1)..).zip(lines.lines) {
            let page = self.pages.entry(number / PAGE_LINES).or_default();
            page.last_insertion = self.insertions;
            if page.generation != self.generation {
                *page = CachePage { last_insertion: self.insertions, generation: self.generation, lines: Vec::new() };
            }
            let index = usize::try_from(number % PAGE_LINES).unwrap_or_default();
            if page.lines.len() <= index {
                page.lines.resize(index + 1, None);
            }
            let cached = &mut page.lines[index];
            if cached.as_ref().is_none_or(|cached| *cached.line != line) {
                *cached = Some(CachedLine { revision: self.insertions, line: Arc::new(line) });
            }
        }
        self.pages.retain(|number, _| number * PAGE_LINES < lines.total);
        while self.pages.len() > MAX_PAGES {
            let oldest = self.pages.iter().min_by_key(|(_, page)| page.last_insertion).map(|(number, _)| *number);
            oldest.and_then(|number| self.pages.remove(&number));
        }
    }

    /// Marks all lines as outdated; they remain shown until they are loaded again.
    pub fn invalidate(&mut self) {
        self.generation += 1;
    }

    /// The cached line with this number.
    pub fn get(&self, number: u64) -> Option<&CachedLine> {
        self.pages.get(&(number / PAGE_LINES))?.lines.get(usize::try_from(number % PAGE_LINES).ok()?)?.as_ref()
    }

    /// The lines to request so that `first..end` is complete: the first one, and how many; none if nothing is missing.
    /// The range begins with the first missing line and ends with the page of the last one.
    pub fn missing_range(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let end = end.min(self.total);
        let page =
            |number: u64| self.pages.get(&(number / PAGE_LINES)).filter(|page| page.generation == self.generation);
        let is_missing = |number: &u64| page(*number).is_none() || self.get(*number).is_none();
        let from = (first..end).find(is_missing)?;
        let from = if page(from).is_some() { from } else { from / PAGE_LINES * PAGE_LINES };
        let last = (from..end).rev().find(is_missing).unwrap_or(from);
        Some((from, (last / PAGE_LINES + 1) * PAGE_LINES - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::AttemptNumber;

    fn log_lines(from: u64, texts: impl IntoIterator<Item = String>, total: u64) -> LogLines {
        let lines = texts.into_iter().map(|text| LogLine { text, ..LogLine::default() }).collect();
        LogLines {
            attempt: AttemptNumber(1),
            from: from + 1,
            offset: None,
            lines,
            unmarked_from: None,
            earlier: None,
            later: None,
            total,
            open: false,
            size: 0,
        }
    }

    fn numbered(from: u64, end: u64, total: u64) -> LogLines {
        log_lines(from, (from..end).map(|number| number.to_string()), total)
    }

    fn text(cache: &LineCache, number: u64) -> Option<&str> {
        cache.get(number).map(|cached| cached.line.text.as_str())
    }

    #[test]
    fn missing_lines_are_requested_in_pages() {
        let mut cache = LineCache { total: 1_000_000, ..LineCache::default() };
        assert_eq!(cache.missing_range(500_000, 500_040), Some((499_968, 2 * PAGE_LINES - 128)));
        cache.insert(numbered(499_968, 500_096, 1_000_000));
        assert_eq!(cache.missing_range(500_000, 500_040), None);
        assert_eq!(text(&cache, 500_017), Some("500017"));
        assert_eq!(cache.missing_range(500_090, 500_130), Some((500_096, PAGE_LINES)));
        assert_eq!(cache.missing_range(499_900, 500_130), Some((499_840, 500_224 - 499_840)));
        assert_eq!(
            cache.missing_range(999_990, 1_000_050),
            Some((999_936, PAGE_LINES)),
            "no line follows the last one"
        );
        // After a response that is shorter than requested, the rest is requested next.
        cache.insert(numbered(0, 3, 1_000_000));
        assert_eq!(cache.missing_range(0, 40), Some((3, PAGE_LINES - 3)));
        // After a response that starts within a page, the lines before it are still missing.
        cache.insert(numbered(10, 12, 1_000_000));
        assert_eq!((text(&cache, 2), text(&cache, 5), text(&cache, 10)), (Some("2"), None, Some("10")));
        assert_eq!(cache.missing_range(0, 12), Some((3, PAGE_LINES - 3)));
    }

    #[test]
    fn growing_last_line_changes_only_itself() {
        let mut cache = LineCache::default();
        cache.insert(log_lines(0, ["one".into(), "tw".into()], 2));
        let revisions = |cache: &LineCache| [0, 1].map(|number| cache.get(number).expect("it is cached").revision);
        let before = revisions(&cache);
        cache.insert(log_lines(0, ["one".into(), "two".into(), "three".into()], 3));
        assert_eq!((text(&cache, 1), text(&cache, 2), cache.total), (Some("two"), Some("three"), 3));
        let after = revisions(&cache);
        assert!(after[0] == before[0] && after[1] > before[1]);
    }

    #[test]
    fn line_cache_keeps_the_newest_pages_only() {
        let mut cache = LineCache::default();
        for page in 0..MAX_PAGES as u64 + 5 {
            cache.insert(numbered(page * PAGE_LINES, (page + 1) * PAGE_LINES, 1_000_000));
        }
        assert_eq!(cache.pages.len(), MAX_PAGES);
        assert_eq!((text(&cache, 0), text(&cache, 5 * PAGE_LINES)), (None, Some("640")));
        cache.insert(log_lines(0, [], 10));
        assert!(cache.pages.is_empty(), "it is a different log");
        cache.insert(numbered(0, 10, 10));
        cache.invalidate();
        assert_eq!(
            (text(&cache, 0), cache.missing_range(0, 10)),
            (Some("0"), Some((0, PAGE_LINES))),
            "it is shown and requested again"
        );
        cache.insert(numbered(0, 10, 10));
        assert_eq!(cache.missing_range(0, 10), None);
    }
}
