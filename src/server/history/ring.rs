//! Cells of equal time, the newest so many of them.

use app::domain::time::Timestamp;

use super::Grain;
use super::cell::{Cell, Sample, Sums};

/// See the module. It takes the same memory from the first moment on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    grain: Grain,
    /// Each at its number modulo their number.
    cells: Box<[Cell]>,
    /// The newest that something was said of.
    newest: i64,
    /// What was said of that one.
    open: Sums,
}

impl Ring {
    /// One that knows nothing.
    pub fn new(grain: Grain) -> Self {
        let cells = vec![Cell::EMPTY; grain.cells].into_boxed_slice();
        Self { grain, cells, newest: i64::MIN / 2, open: Sums::default() }
    }

    /// One with the cells that end with this one.
    pub fn ending(grain: Grain, newest: i64, cells: impl Iterator<Item = Cell>) -> Self {
        let mut ring = Self { newest, ..Self::new(grain) };
        for (number, cell) in (ring.oldest()..=newest).zip(cells) {
            let slot = ring.slot(number);
            ring.cells[slot] = cell;
        }
        ring
    }

    /// The number of the newest cell that something was said of.
    pub const fn newest(&self) -> i64 {
        self.newest
    }

    /// The number of the oldest that is kept.
    pub fn oldest(&self) -> i64 {
        self.newest - i64::try_from(self.cells.len()).unwrap_or(i64::MAX) + 1
    }

    /// A cell, by its number.
    pub fn cell(&self, number: i64) -> Cell {
        if (self.oldest()..=self.newest).contains(&number) { self.cells[self.slot(number)] } else { Cell::EMPTY }
    }

    /// A moment. One of a time that is over fills what is missing there; one that is too old means nothing.
    pub fn note(&mut self, at: Timestamp, sample: &Sample) {
        let number = self.grain.cell_of(at);
        if number >= self.newest {
            self.advance(number);
            self.open.add(sample);
            let slot = self.slot(number);
            self.cells[slot] = self.open.cell().or(self.cells[slot]);
        } else if number >= self.oldest() {
            let mut late = Sums::default();
            late.add(sample);
            let slot = self.slot(number);
            self.cells[slot] = self.cells[slot].or(late.cell());
        }
    }

    /// Forgets what is later than now.
    pub fn rewind(&mut self, now: Timestamp) {
        let now = self.grain.cell_of(now);
        if now < self.newest {
            let oldest = self.oldest();
            for number in (now + 1).max(oldest)..=self.newest {
                let slot = self.slot(number);
                self.cells[slot] = Cell::EMPTY;
            }
            (self.newest, self.open) = (now, Sums::default());
        }
    }

    /// Takes over what another one knows and this one does not.
    pub fn merge(&mut self, other: &Self) {
        if other.newest > self.newest {
            self.advance(other.newest);
        }
        for number in self.oldest().max(other.oldest())..=other.newest {
            let slot = self.slot(number);
            self.cells[slot] = self.cells[slot].or(other.cell(number));
        }
    }

    /// Makes this cell the newest; those between are of a time of which nothing was said.
    fn advance(&mut self, number: i64) {
        if number == self.newest {
            return;
        }
        let kept = i64::try_from(self.cells.len()).unwrap_or(i64::MAX);
        for passed in (self.newest + 1).max(number - kept + 1)..=number {
            let slot = self.slot(passed);
            self.cells[slot] = Cell::EMPTY;
        }
        (self.newest, self.open) = (number, Sums::default());
    }

    fn slot(&self, number: i64) -> usize {
        usize::try_from(number.rem_euclid(i64::try_from(self.cells.len()).unwrap_or(i64::MAX))).unwrap_or_default()
    }
}
