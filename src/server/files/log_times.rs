//! When the parts of a log arrived, beside its file: records of an offset and a time, which the domain keeps few. They
//! are written with each chunk, but not flushed: after a power failure a time may be missing, but no byte of the log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use app::domain::log_text::arrivals::{Arrival, ArrivalChange, MAX_ARRIVALS, record, thin};
use app::domain::time::Timestamp;

use super::atomic_write;

const RECORD_BYTES: usize = 16;

/// Records that bytes from this offset on have arrived.
pub fn add(log: &Path, new: Arrival) -> io::Result<()> {
    let path = times_path(log);
    let file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path)?;
    let count = file.metadata()?.len() / RECORD_BYTES as u64;
    let entries = match count {
        0 => None,
        1 => Some((read_record(&file, 0)?, None, read_record(&file, 0)?)),
        _ => Some((read_record(&file, 0)?, Some(read_record(&file, count - 2)?), read_record(&file, count - 1)?)),
    };
    if entries.is_some_and(|(_, _, last)| last.offset >= new.offset) {
        // The log is from a backup that is older than the records.
        let mut arrivals = load(log, new.offset)?;
        arrivals.retain(|arrival| arrival.offset < new.offset);
        arrivals.push(new);
        return replace(&path, &arrivals);
    }
    match record(entries, new) {
        ArrivalChange::None => Ok(()),
        ArrivalChange::ReplaceLast => write_record(&file, count - 1, new),
        ArrivalChange::Append if count + 1 < MAX_ARRIVALS as u64 => write_record(&file, count, new),
        ArrivalChange::Append => {
            let mut arrivals = load(log, u64::MAX)?;
            arrivals.push(new);
            replace(&path, &thin(&arrivals))
        }
    }
}

/// Loads the records of a log of this length, in order; what a power failure has damaged is left out.
pub fn load(log: &Path, length: u64) -> io::Result<Vec<Arrival>> {
    let bytes = match fs::read(times_path(log)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut arrivals: Vec<Arrival> = Vec::new();
    for bytes in bytes.as_chunks::<RECORD_BYTES>().0.iter().take(MAX_ARRIVALS) {
        let arrival = decode(*bytes);
        let is_next = arrivals.last().is_none_or(|last| last.offset < arrival.offset && last.at < arrival.at);
        if is_next && arrival.at > Timestamp(0) && arrival.offset <= length {
            arrivals.push(arrival);
        }
    }
    Ok(arrivals)
}

fn replace(path: &Path, arrivals: &[Arrival]) -> io::Result<()> {
    let bytes: Vec<u8> = arrivals.iter().flat_map(|arrival| encode(*arrival)).collect();
    atomic_write::replace(path, 0o600, &bytes)
}

fn read_record(file: &File, number: u64) -> io::Result<Arrival> {
    let mut bytes = [0; RECORD_BYTES];
    file.read_exact_at(&mut bytes, number * RECORD_BYTES as u64)?;
    Ok(decode(bytes))
}

fn write_record(file: &File, number: u64, arrival: Arrival) -> io::Result<()> {
    file.write_all_at(&encode(arrival), number * RECORD_BYTES as u64)
}

fn encode(Arrival { offset, at }: Arrival) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&at.0.to_le_bytes());
    bytes
}

fn decode(bytes: [u8; RECORD_BYTES]) -> Arrival {
    let part = |from: usize| <[u8; 8]>::try_from(&bytes[from..from + 8]).unwrap_or_default();
    Arrival { offset: u64::from_le_bytes(part(0)), at: Timestamp(i64::from_le_bytes(part(8))) }
}

/// Sorted after the log: a backup copies the log first, so that no record is of bytes that it lacks for long.
fn times_path(log: &Path) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(".times");
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(offset: u64, seconds: i64) -> Arrival {
        Arrival { offset, at: Timestamp(1_700_000_000_000 + seconds * 1_000) }
    }

    #[test]
    fn records_are_kept_few_and_in_order() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("1.log");
        assert_eq!(load(&log, 99).expect("disk"), []);
        for (offset, seconds) in [(0, 0), (5, 0), (9, 2), (20, 5)] {
            add(&log, arrival(offset, seconds)).expect("disk");
        }
        let all = [arrival(0, 0), arrival(9, 2), arrival(20, 5)];
        assert_eq!(load(&log, 99).expect("disk"), all);
        assert_eq!(load(&log, 10).expect("disk"), all[..2], "of a shorter log");
        // The log was restored from a backup, and grows differently.
        add(&log, arrival(10, 60)).expect("disk");
        assert_eq!(load(&log, 99).expect("disk"), [arrival(0, 0), arrival(9, 2), arrival(10, 60)]);
        for number in 0..2 * MAX_ARRIVALS as u64 {
            let seconds = 100 + i64::try_from(number).expect("small");
            add(&log, arrival(100 + number, seconds)).expect("disk");
        }
        let many = load(&log, u64::MAX).expect("disk");
        assert!(many.len() < MAX_ARRIVALS && many.last() == Some(&arrival(8_099, 8_099)), "{:?}", many.last());
        assert_eq!(many[0], arrival(0, 0));
    }

    #[test]
    fn damaged_records_are_left_out() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("1.log");
        let records = [arrival(0, 0), Arrival { offset: 0, at: Timestamp(0) }, arrival(9, 2), arrival(3, 4)];
        let mut bytes: Vec<u8> = records.iter().flat_map(|record| encode(*record)).collect();
        bytes.extend_from_slice(b"torn");
        fs::write(times_path(&log), bytes).expect("disk");
        assert_eq!(load(&log, 99).expect("disk"), [arrival(0, 0), arrival(9, 2)]);
        add(&log, arrival(20, 9)).expect("disk");
        assert_eq!(load(&log, 99).expect("disk"), [arrival(0, 0), arrival(9, 2), arrival(20, 9)]);
    }
}
