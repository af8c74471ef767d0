//! A log as lines. They are those of the log as it is downloaded: holes are left out, and a gap is the line of its mark.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use app::domain::log_text::last_write;

use super::gaps::{self, Gap};
use super::log_index::{BLOCK, Index};

/// Of a line so much is kept, in bytes.
pub const LINE: usize = 8 << 10;

/// A log as it stands at one moment.
#[derive(Debug)]
pub struct Lines {
    /// None as long as nothing was written.
    file: Option<File>,
    gaps: Vec<Gap>,
    index: Index,
    /// The log's length in bytes.
    pub size: u64,
    /// How many lines there are, with the one that has not ended.
    pub count: u64,
    /// Whether the last one has not ended.
    pub open: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 0.
    pub number: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The beginning of what was written last in it, at most [`LINE`] bytes.
    pub bytes: Vec<u8>,
    /// How many more bytes that has.
    pub omitted: u64,
    /// If it is a gap's mark: how many bytes are missing.
    pub gap: Option<u64>,
}

impl Lines {
    /// Opens a log, and counts what has come since its index was used last, until `stop` is set. What was counted is
    /// kept.
    pub fn open(path: &Path, index: &Mutex<Index>, stop: &AtomicBool) -> io::Result<Self> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::none()),
            Err(error) => return Err(error),
        };
        let (gaps, size) = gaps::of(path, file.metadata()?.len())?;
        let mut buffer = vec![0; usize::try_from(BLOCK).unwrap_or_default()];
        let index = {
            let mut index = index.lock().expect("no panic while it is held");
            index.extend(size, |from, to| {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::new(ErrorKind::Interrupted, "nobody waits for the answer"));
                }
                count_ends(&file, &gaps, (from, to), &mut buffer)
            })?;
            index.clone()
        };
        let last = parts(&gaps, size, 0).last();
        let open = last.map(|(_, end)| read_all(&file, end - 1, &mut [0]).map(|last| last[0] != b'\n'));
        let open = open.transpose()?.unwrap_or_default();
        Ok(Self { file: Some(file), gaps, size, count: index.ends() + u64::from(open), open, index })
    }

    fn none() -> Self {
        Self { file: None, gaps: Vec::new(), index: Index::default(), size: 0, count: 0, open: false }
    }

    /// Reads lines from this one on, until there are none, `visit` has enough, or so many bytes were read. Returns the
    /// number of the line that comes next.
    pub fn visit(&self, first: u64, budget: u64, mut visit: impl FnMut(Line) -> ControlFlow<()>) -> io::Result<u64> {
        let Some(file) = self.file.as_ref().filter(|_| first < self.count) else { return Ok(first.min(self.count)) };
        let place = self.index.place(first);
        let (mut ends_to_skip, mut number, mut left) = (place.ends, first, budget.max(1));
        let mut buffer = vec![0; usize::try_from(BLOCK).unwrap_or_default()];
        let mut current = Written::default();
        for (mut from, to) in parts(&self.gaps, self.size, place.offset) {
            while from < to {
                if left == 0 {
                    break;
                }
                let length = usize::try_from((to - from).min(BLOCK).min(left)).unwrap_or_default();
                let bytes = read_all(file, from, &mut buffer[..length])?;
                let mut at = 0;
                while ends_to_skip > 0 && at < bytes.len() {
                    let Some(end) = end_of_line(&bytes[at..]) else { break };
                    at += end + 1;
                    ends_to_skip -= 1;
                }
                if ends_to_skip > 0 {
                    at = bytes.len();
                }
                // It is for lines that are read, not for those before them.
                left -= (bytes.len() - at) as u64;
                while at < bytes.len() {
                    let end = end_of_line(&bytes[at..]);
                    let piece = &bytes[at..end.map_or(bytes.len(), |end| at + end)];
                    current.push(from + at as u64, piece);
                    at += piece.len();
                    if end.is_some() {
                        at += 1;
                        let line = std::mem::take(&mut current).line(number, &self.gaps);
                        number += 1;
                        if visit(line).is_break() {
                            return Ok(number);
                        }
                    }
                }
                from += bytes.len() as u64;
            }
        }
        // The one that has not ended, or that is longer than may be read.
        if current.offset.is_some() {
            number += 1;
            let _over = visit(current.line(number - 1, &self.gaps));
        }
        Ok(number)
    }

    /// The first of the lines that are best read together with this one.
    pub fn first_beside(&self, line: u64) -> u64 {
        self.index.first_beside(line)
    }
}

/// What is known of a line that is being read: of what was written in it last, the beginning.
#[derive(Debug, Default)]
struct Written {
    offset: Option<u64>,
    kept: Vec<u8>,
    omitted: u64,
    /// Whether a carriage return came last: what follows takes the place of what is there.
    returned: bool,
}

impl Written {
    /// Takes more of the line.
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        self.offset.get_or_insert(offset);
        let write = last_write(bytes);
        if write.is_empty() {
            self.returned |= !bytes.is_empty();
            return;
        }
        if self.returned || write.start > 0 {
            self.kept.clear();
            self.omitted = 0;
        }
        self.returned = write.end < bytes.len();
        let (kept, omitted) = bytes[write.clone()].split_at(write.len().min(LINE - self.kept.len()));
        self.kept.extend_from_slice(kept);
        self.omitted += omitted.len() as u64;
    }

    fn line(self, number: u64, gaps: &[Gap]) -> Line {
        let offset = self.offset.unwrap_or_default();
        // The mark is a line of its own, and so begins with the end of the one before.
        let gap = gaps.iter().find(|gap| gap.from + 1 == offset).map(|gap| gap.to - gap.from);
        Line { number, offset, bytes: self.kept, omitted: self.omitted, gap }
    }
}

/// What is no hole, from an offset on: from where to where.
pub fn parts(gaps: &[Gap], size: u64, offset: u64) -> impl Iterator<Item = (u64, u64)> {
    let starts = [0].into_iter().chain(gaps.iter().map(|gap| gap.to));
    let ends = gaps.iter().map(|gap| gap.hole()).chain([size]);
    starts.zip(ends).map(move |(from, to)| (from.max(offset), to)).filter(|(from, to)| from < to)
}

fn count_ends(file: &File, gaps: &[Gap], (from, to): (u64, u64), buffer: &mut [u8]) -> io::Result<u64> {
    let mut ends = 0;
    for (from, to) in parts(gaps, to, from).map(|(start, end)| (start, end.min(to))).filter(|(start, end)| start < end)
    {
        let length = usize::try_from(to - from).unwrap_or_default();
        let read = read_all(file, from, &mut buffer[..length])?;
        ends += read.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
    }
    Ok(ends)
}

fn read_all<'a>(file: &File, offset: u64, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    file.read_exact_at(buffer, offset)?;
    Ok(buffer)
}

fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A log on disk as it came: pieces of text, and gaps of so many bytes.
    fn written(directory: &Path, pieces: &[(String, Option<u64>)]) -> std::path::PathBuf {
        let path = directory.join("1.log");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).expect("disk");
        for (text, gap) in pieces {
            std::io::Write::write_all(&mut file, text.as_bytes()).expect("disk");
            let from = file.metadata().expect("disk").len();
            if let Some(bytes) = gap {
                gaps::add(&path, &mut file, Gap { from, to: from + bytes }).expect("disk");
            }
        }
        path
    }

    /// The log as it is downloaded, by lines: what each says, and what is missing there.
    fn oracle(pieces: &[(String, Option<u64>)]) -> Vec<(String, Option<u64>)> {
        let mark = |bytes: u64| Gap { from: 0, to: bytes }.mark();
        let whole: String =
            pieces.iter().flat_map(|(text, gap)| [text.clone(), gap.map(mark).unwrap_or_default()]).collect();
        let mut missing = pieces.iter().filter_map(|(_, gap)| *gap);
        let mut lines: Vec<_> = whole.split('\n').collect();
        lines.pop_if(|last| last.is_empty());
        let says = |line: &str| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().to_owned();
        lines
            .into_iter()
            .map(|line| (says(line), line.contains("of this log are missing").then(|| missing.next().expect("a gap"))))
            .collect()
    }

    fn all(lines: &Lines, first: u64, budget: u64) -> Vec<Line> {
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
        fn lines_are_those_of_the_download(
            pieces in prop::collection::vec(("[ab\\r\\n]{0,30}", prop::option::of(4_096..9_000_u64)), 0..5),
        ) {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let path = written(directory.path(), &pieces);
            let lines = Lines::open(&path, &Mutex::default(), &AtomicBool::new(false)).expect("disk");
            let expected = oracle(&pieces);
            prop_assert_eq!(lines.count, expected.len() as u64);
            for first in 0..lines.count {
                let found = all(&lines, first, u64::MAX);
                let said: Vec<_> = found.iter().map(|line| (String::from_utf8_lossy(&line.bytes).into_owned(), line.gap)).collect();
                let rest = expected.iter().skip(usize::try_from(first).expect("few"));
                prop_assert_eq!(&said, &rest.cloned().collect::<Vec<_>>());
                prop_assert!(found.iter().zip(first..).all(|(line, number)| line.number == number && line.omitted == 0));
            }
        }
    }

    #[test]
    fn a_line_of_any_length_is_bounded_and_its_last_write_wins() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let bar = "progress ".repeat(40_000) + "\r";
        let long = "x".repeat(3 * LINE);
        let text = format!("{}{}\n{long}\r\nend\n", bar.repeat(3), &long[..LINE + 5]);
        let path = written(directory.path(), &[(text, None)]);
        let lines = Lines::open(&path, &Mutex::default(), &AtomicBool::new(false)).expect("disk");
        let found = all(&lines, 0, u64::MAX);
        let told: Vec<_> = found.iter().map(|line| (line.bytes.len(), line.omitted)).collect();
        assert_eq!(told, [(LINE, 5), (LINE, 2 * LINE as u64), (3, 0)]);
        assert!(found[0].bytes.iter().all(|byte| *byte == b'x'), "nothing of the bar is left");
        let hasty = all(&lines, 0, 1_000);
        let told: Vec<_> = hasty.iter().map(|line| (line.number, line.bytes.len())).collect();
        assert_eq!(told, [(0, 1_000), (1, 1_000), (2, 3)], "who may not read on goes to the next line");
    }

    #[test]
    fn an_index_follows_its_log() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let index = Mutex::default();
        let none = Lines::open(&directory.path().join("1.log"), &index, &AtomicBool::new(false)).expect("disk");
        assert_eq!((none.count, none.open, all(&none, 0, 9).len()), (0, false, 0));
        for (text, count, open) in [("one\ntw", 2, true), ("o\n", 2, false), ("three", 3, true)] {
            let path = written(directory.path(), &[(text.to_owned(), None)]);
            let lines = Lines::open(&path, &index, &AtomicBool::new(false)).expect("disk");
            assert_eq!((lines.count, lines.open), (count, open));
        }
    }
}
