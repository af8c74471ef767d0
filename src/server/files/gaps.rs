//! Gaps in a log: bytes that a worker had to drop, because its spool was full. Offsets stay the trainer's own, so the file
//! has a hole there, after a mark that says so in words. Where the holes are is kept beside the file, a line of JSON for
//! each, and is on disk before there is one: no reader ever takes a hole for zeros that a trainer wrote.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::whole;

/// A gap is at least so long, so that its mark has room.
pub const LEAST: u64 = 4_096;
/// The most of one log. A worker leaves one for each time that it was cut off for longer than its spool reaches.
pub const MOST: usize = 1_000;

/// One gap: from its first byte to the first one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

/// What is known of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It is there.
    There,
    /// It is not, and may be added.
    New,
    /// There are as many as a log may have.
    TooMany,
}

impl Gap {
    /// What stands where it begins.
    pub fn mark(self) -> String {
        let dropped = self.to - self.from;
        format!(
            "\n[{dropped} bytes of this log are missing: the worker could not send them, and had no room to keep them]\n"
        )
    }

    /// Where the hole begins, after the mark.
    pub fn hole(self) -> u64 {
        self.from + self.mark().len() as u64
    }
}

/// The gaps of a log that is so long, in order, and how much of it there is to read. The last may not be made yet.
pub fn of(log: &Path, length: u64) -> io::Result<(Vec<Gap>, u64)> {
    let mut gaps = noted(log)?;
    gaps.retain(|gap| gap.from <= length);
    let unmade = gaps.pop_if(|gap| gap.to > length);
    Ok((gaps, unmade.map_or(length, |gap| gap.from)))
}

/// Makes what was noted and not made: the server ended in between. Returns the log's length.
pub fn settle(log: &Path, file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut gaps = noted(log)?;
    let number = gaps.len();
    gaps.retain(|gap| gap.from <= length);
    if gaps.len() < number {
        // The log is of a backup that is older than they are: others take their place.
        let lines: String = gaps.iter().map(line).collect();
        whole::replace(&path(log), 0o600, lines.as_bytes())?;
    }
    match gaps.last() {
        Some(gap) if gap.to > length => make(file, *gap),
        _ => Ok(length),
    }
}

/// Notes a gap, and makes it in the log that ends where it begins. Returns the log's length.
pub fn add(log: &Path, file: &mut File, gap: Gap) -> io::Result<u64> {
    let mut notes = OpenOptions::new().create(true).append(true).open(path(log))?;
    // What a power cut has left of another line is none.
    let ends = fs::read(path(log))?.last().is_none_or(|byte| *byte == b'\n');
    notes.write_all(format!("{}{}", if ends { "" } else { "\n" }, line(&gap)).as_bytes())?;
    notes.sync_all()?;
    if let Some(directory) = log.parent() {
        File::open(directory)?.sync_all()?;
    }
    make(file, gap)
}

/// Whether exactly this gap is there, and if not whether there is room for another.
pub fn look(log: &Path, gap: Gap) -> io::Result<Look> {
    let noted = noted(log)?;
    Ok(match noted.contains(&gap) {
        true => Look::There,
        false if noted.len() < MOST => Look::New,
        false => Look::TooMany,
    })
}

fn make(file: &mut File, gap: Gap) -> io::Result<u64> {
    // Half a mark may be there.
    file.set_len(gap.from)?;
    file.write_all(gap.mark().as_bytes())?;
    file.set_len(gap.to)?;
    file.sync_all()?;
    Ok(gap.to)
}

fn line(gap: &Gap) -> String {
    format!("{}\n", serde_json::to_string(gap).expect("two numbers"))
}

fn noted(log: &Path) -> io::Result<Vec<Gap>> {
    let mut text = Vec::new();
    match File::open(path(log)) {
        Ok(mut file) => file.read_to_end(&mut text)?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let gaps = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Gap>(line).ok());
    Ok(gaps.filter(|gap| gap.to >= gap.from + LEAST).collect())
}

/// After the log by name: a backup copies the log first, and then no gap is without its note.
fn path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".gaps");
    path.into()
}
