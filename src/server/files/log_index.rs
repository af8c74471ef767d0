//! Where the lines of a log are: how many line ends stand before each block of the file. A log only grows, so what was
//! counted stays true, and the counting goes on where it stopped. It is kept in memory: a server that is started anew, or
//! another one of the same data, counts for itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A line is found by reading one block. A log of 10 GB takes 320 kB of index.
pub const BLOCK: u64 = 256 << 10;
/// So many logs are remembered: those that were asked for last.
const MOST: usize = 64;

/// The index of one log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// How many line ends stand before each block that was begun.
    before: Vec<u64>,
    /// How many there are in all that was read.
    ends: u64,
    /// How far it was read.
    read: u64,
}

/// Where to look for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From here on.
    pub offset: u64,
    /// Behind so many line ends.
    pub ends: u64,
}

impl Index {
    /// Reads on up to `size`, by a function that counts the line ends between two places of the file.
    pub fn extend(&mut self, size: u64, mut count: impl FnMut(u64, u64) -> io::Result<u64>) -> io::Result<()> {
        if size < self.read {
            // Somebody put an older file in its place.
            *self = Self::default();
        }
        while self.read < size {
            if self.read.is_multiple_of(BLOCK) {
                // A count that failed half-way begins its block again.
                self.before.truncate(usize::try_from(self.read / BLOCK).unwrap_or(usize::MAX));
                self.before.push(self.ends);
            }
            let to = ((self.read / BLOCK + 1) * BLOCK).min(size);
            self.ends += count(self.read, to)?;
            self.read = to;
        }
        Ok(())
    }

    /// How many line ends there are.
    pub fn ends(&self) -> u64 {
        self.ends
    }

    /// Where a line begins, which is counted from 0 and is there.
    pub fn place(&self, line: u64) -> Place {
        let block = self.block(line);
        let offset = u64::try_from(block).unwrap_or_default() * BLOCK;
        Place { offset, ends: line - self.before.get(block).copied().unwrap_or_default() }
    }

    /// The first of the lines that begin in the same block as this one.
    pub fn first_beside(&self, line: u64) -> u64 {
        if line == 0 { 0 } else { self.before.get(self.block(line)).copied().unwrap_or_default() + 1 }
    }

    /// The block with the line end that stands before a line.
    fn block(&self, line: u64) -> usize {
        self.before.partition_point(|before| *before < line).saturating_sub(1)
    }
}

/// The indexes of the logs that were asked for last.
#[derive(Debug, Default)]
pub struct Indexes {
    /// The newest question last.
    recent: Mutex<Vec<(PathBuf, Arc<Mutex<Index>>)>>,
}

impl Indexes {
    /// The index of a log; an empty one if it was not asked for, or long ago.
    pub fn of(&self, path: &Path) -> Arc<Mutex<Index>> {
        let mut recent = self.recent.lock().expect("no panic while it is held");
        let known = recent.iter().position(|(known, _)| known == path).map(|at| recent.remove(at));
        let (path, index) = known.unwrap_or_else(|| (path.to_owned(), Arc::default()));
        if recent.len() >= MOST {
            recent.remove(0);
        }
        recent.push((path, index.clone()));
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts in a file that is held in memory, of which only every `BLOCK / 8`th byte is there.
    fn ends(text: &[u8], (from, to): (u64, u64)) -> u64 {
        let within = |at: &usize| (from..to).contains(&(u64::try_from(*at).expect("small") * (BLOCK / 8)));
        text.iter().enumerate().filter(|(at, byte)| **byte == b'\n' && within(at)).count() as u64
    }

    proptest! {
        #[test]
        fn each_line_is_found_in_one_block_however_the_log_grew(
            text in prop::collection::vec(prop::sample::select(vec![b'a', b'\n']), 0..60),
            steps in prop::collection::vec(0..60_u64, 0..6),
        ) {
            let size = text.len() as u64 * (BLOCK / 8);
            let mut index = Index::default();
            let mut steps: Vec<_> = steps.into_iter().map(|step| step * (BLOCK / 8) + step % 3).collect();
            steps.sort_unstable();
            for step in steps.into_iter().filter(|step| *step < size).chain([size]) {
                index.extend(step, |from, to| Ok(ends(&text, (from, to)))).expect("memory");
            }
            prop_assert_eq!(index.ends(), ends(&text, (0, size)));
            for line in 0..=index.ends() {
                let Place { offset, ends: behind } = index.place(line);
                prop_assert_eq!(ends(&text, (0, offset)) + behind, line, "as many line ends stand before it");
                prop_assert!(behind <= ends(&text, (offset, offset + BLOCK)), "and they are in the block");
                let first = index.first_beside(line);
                prop_assert!(first <= line && (first == 0 || index.place(first).offset == offset));
                prop_assert!(line == 0 || first < 2 || index.place(first - 1).offset < offset);
            }
        }
    }

    #[test]
    fn what_could_not_be_read_is_counted_again() {
        let mut index = Index::default();
        assert!(index.extend(10, |_, _| Err(io::Error::other("the disk"))).is_err());
        index.extend(10, |_, _| Ok(3)).expect("memory");
        index.extend(10, |_, _| unreachable!("all is known")).expect("memory");
        assert_eq!((index.ends(), index.before.as_slice()), (3, [0].as_slice()));
        index.extend(4, |_, _| Ok(1)).expect("memory");
        assert_eq!(index.ends(), 1, "a shorter log is another one");
    }

    #[test]
    fn few_logs_are_remembered() {
        let indexes = Indexes::default();
        let of = |number: usize| indexes.of(Path::new(&number.to_string()));
        let first = of(0);
        for number in 1..MOST {
            of(number);
        }
        assert!(Arc::ptr_eq(&first, &of(0)), "it was used, and is the newest now");
        of(MOST);
        assert!(Arc::ptr_eq(&first, &of(0)));
        assert_eq!(indexes.recent.lock().expect("held by nobody").len(), MOST);
    }
}
