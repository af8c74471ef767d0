//! Gaps in a log: bytes that a worker had to drop, because its spool was full. Offsets stay the trainer's own, so the
//! file has a hole there, after a marker. The positions of holes are stored beside the file, a JSON line for each, and
//! are on disk before the hole exists: no reader mistakes a hole for zeros of a trainer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic_write;

/// The minimum length of a gap, so that its marker fits.
pub const MIN_GAP_BYTES: u64 = 4_096;
/// The maximum number of gaps in a log. A worker adds one for each disconnection that is longer than its spool allows.
pub const MAX_GAPS: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub from: u64,
    pub to: u64,
}

/// The status of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapStatus {
    /// It is recorded.
    Recorded,
    /// It is not recorded, and may be added.
    New,
    /// The log has the maximum number of gaps.
    TooMany,
}

impl Gap {
    /// The text at the beginning of the gap.
    pub fn marker_text(self) -> String {
        let dropped = self.to - self.from;
        format!(
            "\n[{dropped} bytes of this log are missing: the worker could not send them, and had no room to keep them]\n"
        )
    }

    /// Where the hole begins, after the marker.
    pub fn hole_start(self) -> u64 {
        self.from + self.marker_text().len() as u64
    }
}

/// Loads the gaps of a log of this length, in order, and how much of it is readable. The last one may be incomplete.
pub fn load(log: &Path, length: u64) -> io::Result<(Vec<Gap>, u64)> {
    let mut gaps = load_recorded(log)?;
    gaps.retain(|gap| gap.from <= length);
    let incomplete = gaps.pop_if(|gap| gap.to > length);
    Ok((gaps, incomplete.map_or(length, |gap| gap.from)))
}

/// Completes a gap that was recorded but not written, because the server stopped in between. Returns the log's length.
pub fn complete_recorded(log: &Path, file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let mut gaps = load_recorded(log)?;
    let number = gaps.len();
    gaps.retain(|gap| gap.from <= length);
    if gaps.len() < number {
        // The log is from a backup that is older than the gaps: new ones replace them.
        let lines: String = gaps.iter().map(to_json_line).collect();
        atomic_write::replace(&gaps_path(log), 0o600, lines.as_bytes())?;
    }
    match gaps.last() {
        Some(gap) if gap.to > length => write_gap(file, *gap),
        _ => Ok(length),
    }
}

/// Records a gap, and writes it at the end of the log. Returns the log's length.
pub fn add(log: &Path, file: &mut File, gap: Gap) -> io::Result<u64> {
    let mut records_file = OpenOptions::new().create(true).append(true).open(gaps_path(log))?;
    // A line may be incomplete after a power failure.
    let ends_with_newline = fs::read(gaps_path(log))?.last().is_none_or(|byte| *byte == b'\n');
    records_file
        .write_all(format!("{}{}", if ends_with_newline { "" } else { "\n" }, to_json_line(&gap)).as_bytes())?;
    records_file.sync_all()?;
    if let Some(directory) = log.parent() {
        File::open(directory)?.sync_all()?;
    }
    write_gap(file, gap)
}

/// Returns whether exactly this gap is recorded, and if not whether another one is possible.
pub fn lookup(log: &Path, gap: Gap) -> io::Result<GapStatus> {
    let recorded = load_recorded(log)?;
    Ok(match recorded.contains(&gap) {
        true => GapStatus::Recorded,
        false if recorded.len() < MAX_GAPS => GapStatus::New,
        false => GapStatus::TooMany,
    })
}

fn write_gap(file: &mut File, gap: Gap) -> io::Result<u64> {
    // Half a marker may exist.
    file.set_len(gap.from)?;
    file.write_all(gap.marker_text().as_bytes())?;
    file.set_len(gap.to)?;
    file.sync_all()?;
    Ok(gap.to)
}

/// Writes a marker again if a power failure has left zeros instead of it.
pub fn restore_marker(log: &Path, gap: Gap) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(log)?;
    let marker = gap.marker_text().into_bytes();
    let mut stored = vec![0; marker.len()];
    file.read_exact_at(&mut stored, gap.from)?;
    if stored.contains(&0) {
        file.write_all_at(&marker, gap.from)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Returns where the last gap ends; 0 if there is none.
pub fn last_gap_end(log: &Path) -> io::Result<u64> {
    Ok(load_recorded(log)?.last().map_or(0, |gap| gap.to))
}

fn to_json_line(gap: &Gap) -> String {
    format!("{}\n", serde_json::to_string(gap).expect("two numbers"))
}

fn load_recorded(log: &Path) -> io::Result<Vec<Gap>> {
    let mut text = Vec::new();
    match File::open(gaps_path(log)) {
        Ok(mut file) => file.read_to_end(&mut text)?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let gaps = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Gap>(line).ok());
    Ok(gaps.filter(|gap| gap.to >= gap.from + MIN_GAP_BYTES).collect())
}

/// Sorted after the log: a backup copies the log first, so that no gap lacks its record.
fn gaps_path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".gaps");
    path.into()
}
