//! A ring of cells of equal length, up to the newest.

use app::domain::time::Timestamp;

use super::Resolution;
use super::cell::{CellAccumulator, GpuSample, HistoryCell};

/// Cells in constant memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    resolution: Resolution,
    /// Each at its index modulo the length.
    cells: Box<[HistoryCell]>,
    /// The newest cell with a sample.
    newest_index: i64,
    /// The samples of that cell.
    accumulator: CellAccumulator,
}

impl Ring {
    pub fn new(resolution: Resolution) -> Self {
        let cells = vec![HistoryCell::EMPTY; resolution.cells].into_boxed_slice();
        Self { resolution, cells, newest_index: i64::MIN / 2, accumulator: CellAccumulator::default() }
    }

    /// Creates one from the cells that end with `newest`.
    pub fn from_cells(resolution: Resolution, newest: i64, cells: impl Iterator<Item = HistoryCell>) -> Self {
        let mut ring = Self { newest_index: newest, ..Self::new(resolution) };
        for (index, cell) in (ring.oldest_index()..=newest).zip(cells) {
            let slot = ring.slot(index);
            ring.cells[slot] = cell;
        }
        ring
    }

    /// The index of the newest cell with a sample.
    pub const fn newest_index(&self) -> i64 {
        self.newest_index
    }

    /// The index of the oldest cell in the ring.
    pub fn oldest_index(&self) -> i64 {
        self.newest_index - i64::try_from(self.cells.len()).unwrap_or(i64::MAX) + 1
    }

    pub fn cell(&self, index: i64) -> HistoryCell {
        if (self.oldest_index()..=self.newest_index).contains(&index) {
            self.cells[self.slot(index)]
        } else {
            HistoryCell::EMPTY
        }
    }

    /// Records a sample. One of an earlier cell fills in missing values; one that is too old is ignored.
    pub fn record(&mut self, at: Timestamp, sample: &GpuSample) {
        let index = self.resolution.cell_index(at);
        if index >= self.newest_index {
            self.advance(index);
            self.accumulator.add(sample);
            let slot = self.slot(index);
            self.cells[slot] = self.accumulator.finish().merge(self.cells[slot]);
        } else if index >= self.oldest_index() {
            let mut accumulator = CellAccumulator::default();
            accumulator.add(sample);
            let slot = self.slot(index);
            self.cells[slot] = self.cells[slot].merge(accumulator.finish());
        }
    }

    /// Discards cells that are later than now.
    pub fn discard_after(&mut self, now: Timestamp) {
        let now = self.resolution.cell_index(now);
        if now < self.newest_index {
            let oldest = self.oldest_index();
            for index in (now + 1).max(oldest)..=self.newest_index {
                let slot = self.slot(index);
                self.cells[slot] = HistoryCell::EMPTY;
            }
            (self.newest_index, self.accumulator) = (now, CellAccumulator::default());
        }
    }

    /// Merges another ring.
    pub fn merge(&mut self, other: &Self) {
        if other.newest_index > self.newest_index {
            self.advance(other.newest_index);
        }
        for index in self.oldest_index().max(other.oldest_index())..=other.newest_index {
            let slot = self.slot(index);
            self.cells[slot] = self.cells[slot].merge(other.cell(index));
        }
    }

    /// Makes this cell the newest; those between have no data.
    fn advance(&mut self, index: i64) {
        if index == self.newest_index {
            return;
        }
        let len = i64::try_from(self.cells.len()).unwrap_or(i64::MAX);
        for skipped in (self.newest_index + 1).max(index - len + 1)..=index {
            let slot = self.slot(skipped);
            self.cells[slot] = HistoryCell::EMPTY;
        }
        (self.newest_index, self.accumulator) = (index, CellAccumulator::default());
    }

    fn slot(&self, index: i64) -> usize {
        usize::try_from(index.rem_euclid(i64::try_from(self.cells.len()).unwrap_or(i64::MAX))).unwrap_or_default()
    }
}
