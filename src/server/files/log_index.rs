//! An index of a log's lines: the number of line ends before each block of the file. A log only grows, so counts stay
//! valid and counting continues where it stopped. The index is in memory: a restarted server, or another one with the
//! same data, counts again.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A line is found by reading one block. A log of 10 GB takes 320 kB of index.
pub const BLOCK_BYTES: u64 = 256 << 10;
/// The maximum number of cached logs: those that were used last.
const MAX_CACHED_LOGS: usize = 64;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogIndex {
    /// The number of line ends before each block.
    ends_before: Vec<u64>,
    /// The number of line ends in all bytes that were read.
    ends: u64,
    /// How far the log was read.
    bytes_read: u64,
}

/// Where to search for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePosition {
    /// The offset to read from.
    pub offset: u64,
    /// The number of line ends before it.
    pub line_ends: u64,
}

impl LogIndex {
    /// Extends the index to `size`, with a function that counts the line ends in a range of the file.
    pub fn extend(&mut self, size: u64, mut count: impl FnMut(u64, u64) -> io::Result<u64>) -> io::Result<()> {
        if size < self.bytes_read {
            // The file was replaced by an older one.
            *self = Self::default();
        }
        while self.bytes_read < size {
            if self.bytes_read.is_multiple_of(BLOCK_BYTES) {
                // A count that failed half-way starts its block again.
                self.ends_before.truncate(usize::try_from(self.bytes_read / BLOCK_BYTES).unwrap_or(usize::MAX));
                self.ends_before.push(self.ends);
            }
            let to = ((self.bytes_read / BLOCK_BYTES + 1) * BLOCK_BYTES).min(size);
            self.ends += count(self.bytes_read, to)?;
            self.bytes_read = to;
        }
        Ok(())
    }

    pub fn ends(&self) -> u64 {
        self.ends
    }

    /// Where an existing line begins; lines are counted from 0.
    pub fn locate(&self, line: u64) -> LinePosition {
        let block = self.block(line);
        let offset = u64::try_from(block).unwrap_or_default() * BLOCK_BYTES;
        LinePosition { offset, line_ends: line - self.ends_before.get(block).copied().unwrap_or_default() }
    }

    /// The first of the lines that begin in the same block as this one.
    pub fn first_in_block(&self, line: u64) -> u64 {
        if line == 0 { 0 } else { self.ends_before.get(self.block(line)).copied().unwrap_or_default() + 1 }
    }

    /// The block with the line end before a line.
    fn block(&self, line: u64) -> usize {
        self.ends_before.partition_point(|before| *before < line).saturating_sub(1)
    }
}

/// What is known of each of the logs that were used last, such as their index.
#[derive(Debug, Default)]
pub struct RecentLogs<T> {
    /// The most recent last.
    recent: Mutex<Vec<(PathBuf, Arc<Mutex<T>>)>>,
}

impl<T: Default> RecentLogs<T> {
    /// Returns what is known of a log; the default if it is not cached.
    pub fn get(&self, path: &Path) -> Arc<Mutex<T>> {
        let mut recent = self.recent.lock().expect("no panic while it is held");
        let cached = recent.iter().position(|(cached_path, _)| cached_path == path).map(|at| recent.remove(at));
        let (path, known) = cached.unwrap_or_else(|| (path.to_owned(), Arc::default()));
        if recent.len() >= MAX_CACHED_LOGS {
            recent.remove(0);
        }
        recent.push((path, known.clone()));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts in a text in memory, of which only every `BLOCK_BYTES / 8`th byte is stored.
    fn ends(text: &[u8], (from, to): (u64, u64)) -> u64 {
        let within = |at: &usize| (from..to).contains(&(u64::try_from(*at).expect("small") * (BLOCK_BYTES / 8)));
        text.iter().enumerate().filter(|(at, byte)| **byte == b'\n' && within(at)).count() as u64
    }

    proptest! {
        #[test]
        fn each_line_is_found_in_one_block(
            text in prop::collection::vec(prop::sample::select(vec![b'a', b'\n']), 0..60),
            steps in prop::collection::vec(0..60_u64, 0..6),
        ) {
            let size = text.len() as u64 * (BLOCK_BYTES / 8);
            let mut index = LogIndex::default();
            let mut steps: Vec<_> = steps.into_iter().map(|step| step * (BLOCK_BYTES / 8) + step % 3).collect();
            steps.sort_unstable();
            for step in steps.into_iter().filter(|step| *step < size).chain([size]) {
                index.extend(step, |from, to| Ok(ends(&text, (from, to)))).expect("memory");
            }
            prop_assert_eq!(index.ends(), ends(&text, (0, size)));
            for line in 0..=index.ends() {
                let LinePosition { offset, line_ends } = index.locate(line);
                prop_assert_eq!(ends(&text, (0, offset)) + line_ends, line, "the number of line ends before it");
                let ends_in_block = ends(&text, (offset, offset + BLOCK_BYTES));
                prop_assert!(line_ends <= ends_in_block, "the remaining line ends are in the block");
                let first = index.first_in_block(line);
                prop_assert!(first <= line && (first == 0 || index.locate(first).offset == offset));
                prop_assert!(line == 0 || first < 2 || index.locate(first - 1).offset < offset);
            }
        }
    }

    #[test]
    fn failed_count_is_repeated() {
        let mut index = LogIndex::default();
        assert!(index.extend(10, |_, _| Err(io::Error::other("the disk"))).is_err());
        index.extend(10, |_, _| Ok(3)).expect("memory");
        index.extend(10, |_, _| unreachable!("all lines are counted")).expect("memory");
        assert_eq!((index.ends(), index.ends_before.as_slice()), (3, [0].as_slice()));
        index.extend(4, |_, _| Ok(1)).expect("memory");
        assert_eq!(index.ends(), 1, "a shorter log is another one");
    }

    #[test]
    fn number_of_cached_indexes_is_limited() {
        let indexes = RecentLogs::<LogIndex>::default();
        let index = |number: usize| indexes.get(Path::new(&number.to_string()));
        let first = index(0);
        for number in 1..MAX_CACHED_LOGS {
            index(number);
        }
        assert!(Arc::ptr_eq(&first, &index(0)), "it was used last");
        index(MAX_CACHED_LOGS);
        assert!(Arc::ptr_eq(&first, &index(0)));
        assert_eq!(indexes.recent.lock().expect("not locked").len(), MAX_CACHED_LOGS);
    }
}
