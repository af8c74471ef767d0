//! A log as lines, as in its download: holes are left out, and a gap is the line of its marker.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use app::domain::log_text::arrivals::Arrival;
use app::domain::log_text::visible_range;

use super::log_gaps::{self, Gap};
use super::log_index::{BLOCK_BYTES, LogIndex};
use super::log_times;

/// The maximum number of stored bytes per line.
pub const MAX_LINE_BYTES: usize = 8 << 10;

/// A log at one point in time.
#[derive(Debug)]
pub struct LogFileLines {
    /// `None` if nothing was written yet.
    file: Option<File>,
    path: PathBuf,
    gaps: Vec<Gap>,
    index: LogIndex,
    /// The log's length in bytes.
    pub size: u64,
    /// The number of lines, including an incomplete one.
    pub count: u64,
    /// Whether the last line is incomplete.
    pub has_partial_line: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFileLine {
    /// Its number, from 0.
    pub number: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The beginning of the last text in the line, at most [`MAX_LINE_BYTES`].
    pub bytes: Vec<u8>,
    /// How many more bytes that text has.
    pub omitted: u64,
    /// The number of missing bytes, if this is a gap's marker.
    pub gap: Option<u64>,
}

impl LogFileLines {
    /// Opens a log, and extends its index, until `stop` is set. The index keeps what was counted.
    pub fn open(path: &Path, index: &Mutex<LogIndex>, stop: &AtomicBool) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(error),
        };
        let (gaps, size) = log_gaps::load(path, file.metadata()?.len())?;
        let mut buffer = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or_default()];
        let index = {
            let mut index = index.lock().expect("no panic while it is held");
            index.extend(size, |from, to| {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::new(ErrorKind::Interrupted, "the client has disconnected"));
                }
                count_line_ends(&file, &gaps, (from, to), &mut buffer)
            })?;
            index.clone()
        };
        let last_range = data_ranges(&gaps, size, 0).last();
        let has_partial_line =
            last_range.map(|(_, end)| read_at(&file, end - 1, &mut [0]).map(|last| last[0] != b'\n'));
        let has_partial_line = has_partial_line.transpose()?.unwrap_or_default();
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
            gaps,
            size,
            count: index.ends() + u64::from(has_partial_line),
            has_partial_line,
            index,
        })
    }

    /// Opens a log to read it from its start: its lines are not counted.
    pub fn open_unindexed(path: &Path) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(error),
        };
        let (gaps, size) = log_gaps::load(path, file.metadata()?.len())?;
        Ok(Self { file: Some(file), path: path.to_owned(), gaps, size, count: u64::MAX, ..Self::empty() })
    }

    fn empty() -> Self {
        Self {
            file: None,
            path: PathBuf::new(),
            gaps: Vec::new(),
            index: LogIndex::default(),
            size: 0,
            count: 0,
            has_partial_line: false,
        }
    }

    /// Reads lines from this one on, until the end, until `visit` stops, or up to a number of bytes. Returns the number
    /// of the next line.
    pub fn visit(
        &self,
        first: u64,
        budget: u64,
        mut visit: impl FnMut(LogFileLine) -> ControlFlow<()>,
    ) -> io::Result<u64> {
        let Some(file) = self.file.as_ref().filter(|_| first < self.count) else { return Ok(first.min(self.count)) };
        let position = self.index.locate(first);
        let (mut ends_to_skip, mut number, mut remaining) = (position.line_ends, first, budget.max(1));
        let mut buffer = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or_default()];
        let mut current = LineBuffer::default();
        for (mut from, to) in data_ranges(&self.gaps, self.size, position.offset) {
            while from < to {
                if remaining == 0 {
                    break;
                }
                let length = usize::try_from((to - from).min(BLOCK_BYTES).min(remaining)).unwrap_or_default();
                let bytes = read_at(file, from, &mut buffer[..length])?;
                let mut index = 0;
                while ends_to_skip > 0 && index < bytes.len() {
                    let Some(end) = find_line_end(&bytes[index..]) else { break };
                    index += end + 1;
                    ends_to_skip -= 1;
                }
                if ends_to_skip > 0 {
                    index = bytes.len();
                }
                // The limit is for the lines that are visited, not for those before them.
                remaining -= (bytes.len() - index) as u64;
                while index < bytes.len() {
                    let end = find_line_end(&bytes[index..]);
                    let text = &bytes[index..end.map_or(bytes.len(), |end| index + end)];
                    current.push(from + index as u64, text);
                    index += text.len();
                    if end.is_some() {
                        index += 1;
                        let line = std::mem::take(&mut current).finish(number, &self.gaps);
                        number += 1;
                        if visit(line).is_break() {
                            return Ok(number);
                        }
                    }
                }
                from += bytes.len() as u64;
            }
        }
        // An incomplete line, or one that is longer than the limit.
        if current.offset.is_some() {
            number += 1;
            let _stopped = visit(current.finish(number - 1, &self.gaps));
        }
        Ok(number)
    }

    /// When its parts arrived; empty if that was not recorded.
    pub fn arrivals(&self) -> io::Result<Vec<Arrival>> {
        if self.file.is_some() { log_times::load(&self.path, self.size) } else { Ok(Vec::new()) }
    }

    /// The first of the lines that are best read together with this one.
    pub fn first_in_block(&self, line: u64) -> u64 {
        self.index.first_in_block(line)
    }
}

/// A line that is being read: the beginning of its last text.
#[derive(Debug, Default)]
struct LineBuffer {
    offset: Option<u64>,
    bytes: Vec<u8>,
    omitted: u64,
    /// Whether a carriage return came last: what follows replaces the text.
    after_carriage_return: bool,
}

impl LineBuffer {
    /// Adds bytes to the line.
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        self.offset.get_or_insert(offset);
        let range = visible_range(bytes);
        if range.is_empty() {
            self.after_carriage_return |= !bytes.is_empty();
            return;
        }
        if self.after_carriage_return || range.start > 0 {
            self.bytes.clear();
            self.omitted = 0;
        }
        self.after_carriage_return = range.end < bytes.len();
        let (stored, omitted) = bytes[range.clone()].split_at(range.len().min(MAX_LINE_BYTES - self.bytes.len()));
        self.bytes.extend_from_slice(stored);
        self.omitted += omitted.len() as u64;
    }

    fn finish(self, number: u64, gaps: &[Gap]) -> LogFileLine {
        let offset = self.offset.unwrap_or_default();
        // The marker is a line of its own, and so begins with the end of the one before.
        let gap = gaps.iter().find(|gap| gap.from + 1 == offset).map(|gap| gap.to - gap.from);
        LogFileLine { number, offset, bytes: self.bytes, omitted: self.omitted, gap }
    }
}

/// The ranges without holes, from an offset on.
pub fn data_ranges(gaps: &[Gap], size: u64, offset: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = [0].into_iter().chain(gaps.iter().map(|gap| gap.to));
    let ends = gaps.iter().map(|gap| gap.hole_start()).chain([size]);
    starts.zip(ends).map(move |(from, to)| (from.max(offset), to)).filter(|(from, to)| from < to)
}

fn count_line_ends(file: &File, gaps: &[Gap], (from, to): (u64, u64), buffer: &mut [u8]) -> io::Result<u64> {
    let mut ends = 0;
    for (from, to) in
        data_ranges(gaps, to, from).map(|(start, end)| (start, end.min(to))).filter(|(start, end)| start < end)
    {
        let length = usize::try_from(to - from).unwrap_or_default();
        let read = read_at(file, from, &mut buffer[..length])?;
        ends += read.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
    }
    Ok(ends)
}

fn read_at<'a>(file: &File, offset: u64, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    file.read_exact_at(buffer, offset)?;
    Ok(buffer)
}

fn find_line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a log to disk: parts of text, and gaps of this length.
    fn write_log(directory: &Path, parts: &[(String, Option<u64>)]) -> std::path::PathBuf {
        let path = directory.join("1.log");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).expect("disk");
        for (text, gap) in parts {
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("disk");
            let from = file.metadata().expect("disk").len();
            if let Some(bytes) = gap {
                log_gaps::add(&path, &mut file, Gap { from, to: from + bytes }).expect("disk");
            }
        }
        path
    }

    /// The expected lines of the download: text, and missing bytes.
    fn expected_lines(parts: &[(String, Option<u64>)]) -> Vec<(String, Option<u64>)> {
        let marker = |bytes: u64| Gap { from: 0, to: bytes }.marker_text();
        let full_text: String =
            parts.iter().flat_map(|(text, gap)| [text.clone(), gap.map(marker).unwrap_or_default()]).collect();
        let mut missing = parts.iter().filter_map(|(_, gap)| *gap);
        let mut lines: Vec<_> = full_text.split('\n').collect();
        lines.pop_if(|last| last.is_empty());
        let visible_text = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
        lines
            .into_iter()
            .map(|line| {
                (visible_text(line), line.contains("of this log are missing").then(|| missing.next().expect("a gap")))
            })
            .collect()
    }

    fn read_all(lines: &LogFileLines, first: u64, budget: u64) -> Vec<LogFileLine> {
        let mut found = Vec::new();
        let mut next = first;
        while next < lines.count {
            next = lines
                .visit(next, budget, |line| {
                    found.push(line);
                    ControlFlow::Continue(())
                })
                .expect("disk");
        }
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn lines_match_the_download(
            parts in prop::collection::vec(("[ab\\r\\n]{0,30}", prop::option::of(4_096..9_000_u64)), 0..5),
        ) {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = write_log(directory.path(), &parts);
            let lines = LogFileLines::open(&path, &Mutex::default(), &AtomicBool::new(false)).expect("disk");
            let expected = expected_lines(&parts);
            prop_assert_eq!(lines.count, expected.len() as u64);
            for first in 0..lines.count {
                let found = read_all(&lines, first, u64::MAX);
                let actual: Vec<_> = found.iter().map(|line| (String::from_utf8_lossy(&line.bytes).into_owned(), line.gap)).collect();
                let rest = expected.iter().skip(usize::try_from(first).expect("few"));
                prop_assert_eq!(&actual, &rest.cloned().collect::<Vec<_>>());
                prop_assert!(found.iter().zip(first..).all(|(line, number)| line.number == number && line.omitted == 0));
            }
        }
    }

    #[test]
    fn long_line_is_cut_and_its_last_text_wins() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bar = "progress ".repeat(40_000) + "\r";
        let long = "x".repeat(3 * MAX_LINE_BYTES);
        let text = format!("{}{}\n{long}\r\nend\n", bar.repeat(3), &long[..MAX_LINE_BYTES + 5]);
        let path = write_log(directory.path(), &[(text, None)]);
        let lines = LogFileLines::open(&path, &Mutex::default(), &AtomicBool::new(false)).expect("disk");
        let found = read_all(&lines, 0, u64::MAX);
        let actual: Vec<_> = found.iter().map(|line| (line.bytes.len(), line.omitted)).collect();
        assert_eq!(actual, [(MAX_LINE_BYTES, 5), (MAX_LINE_BYTES, 2 * MAX_LINE_BYTES as u64), (3, 0)]);
        assert!(found[0].bytes.iter().all(|byte| *byte == b'x'), "the progress bar is overwritten");
        let limited = read_all(&lines, 0, 1_000);
        let actual: Vec<_> = limited.iter().map(|line| (line.number, line.bytes.len())).collect();
        assert_eq!(actual, [(0, 1_000), (1, 1_000), (2, 3)], "a line over the limit is skipped");
    }

    #[test]
    fn index_follows_its_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let index = Mutex::default();
        let none = LogFileLines::open(&directory.path().join("1.log"), &index, &AtomicBool::new(false)).expect("disk");
        assert_eq!((none.count, none.has_partial_line, read_all(&none, 0, 9).len()), (0, false, 0));
        for (text, count, is_partial) in [("one\ntw", 2, true), ("o\n", 2, false), ("three", 3, true)] {
            let path = write_log(directory.path(), &[(text.to_owned(), None)]);
            let lines = LogFileLines::open(&path, &index, &AtomicBool::new(false)).expect("disk");
            assert_eq!((lines.count, lines.has_partial_line), (count, is_partial));
        }
    }
}
