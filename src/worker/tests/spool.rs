//! Truncation of output: decisions as tables, and effects on this disk.

use std::io::Write;
use std::os::unix::fs::FileExt;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn low_disk_space_keeps_the_newest_output() {
    for (limit, free, kept) in [
        (1 << 30, 1 << 40, 1 << 30),
        (1 << 30, LOW_DISK_BYTES, 1 << 30),
        (1 << 30, LOW_DISK_BYTES - 1, MIN_KEPT_BYTES),
        (MIB, 0, MIB),
    ] {
        assert_eq!(kept_bytes(limit, free), kept, "{limit} with {free} free");
    }
}

#[test]
fn truncation_drops_whole_blocks_and_an_eighth_more() {
    // Length, size on disk, limit, current truncation offset.
    for (length, on_disk, limit, floor, expected) in [
        (8 * MIB, 8 * MIB, 8 * MIB, 0, None),
        (8 * MIB, 8 * MIB + 1, 8 * MIB, 0, Some(MIB)),
        (10 * MIB + 5, 10 * MIB, 8 * MIB, 0, Some(3 * MIB)),
        (100 * MIB, 9 * MIB, 8 * MIB, 91 * MIB, Some(93 * MIB)),
        // Blocks that cannot be freed are no reason to drop new data.
        (100 * MIB, 9 * MIB, 8 * MIB, 95 * MIB, None),
        (0, 9 * MIB, 8 * MIB, 0, None),
    ] {
        assert_eq!(truncation_offset(length, on_disk, limit, floor), expected, "{length} {on_disk} {limit} {floor}");
    }
}

#[test]
fn fast_output_is_checked_more_often() {
    let second = Duration::from_secs(1);
    for (added, free, limit, expected) in [
        (0, 1 << 40, 1 << 30, second),
        (200 * MIB, 1 << 40, 1 << 30, second),
        (1 << 30, 1 << 40, 1 << 30, second / 4),
        // Nothing is written yet, but the disk is small.
        (0, 256 * MIB, 1 << 30, second / 4),
        (0, 1 << 30, 1 << 30, second),
        (200 * MIB, MIB, 8 * MIB, CHECK_INTERVALS.1),
    ] {
        assert_eq!(next_check(added, second, free, limit), expected, "{added} with {free} free and {limit} to keep");
    }
    assert_eq!(next_check(0, Duration::ZERO, 1 << 40, 1 << 30), CHECK_INTERVALS.1);
}

#[test]
fn oldest_output_is_dropped_and_offsets_stay_valid() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    assert!(
        can_punch(&tempfile::tempfile_in(temp.path())?)?,
        "the file system of {} cannot punch holes",
        temp.path().display()
    );
    let dir = AttemptDir::from_path(temp.path());
    let mut spool = LogSpool::open(&dir, MIB)?;
    let pattern: Vec<u8> = (0..3 * MIB).map(|index| 1 + u8::try_from(index % 251).unwrap_or_default()).collect();
    let mut log = OpenOptions::new().append(true).open(dir.log_path())?;
    for chunk in pattern.chunks(512 * 1024) {
        log.write_all(chunk)?;
        log.sync_all()?;
        spool.check(Duration::from_secs(1))?;
    }
    let floor = dir.truncation_offsets().log;
    assert!((2 * MIB..3 * MIB).contains(&floor), "{floor}");
    assert_eq!(dir.truncation_offsets().events, 0);
    assert!(log.metadata()?.blocks() * 512 <= MIB + 512 * 1024, "{} blocks", log.metadata()?.blocks());
    let mut read = vec![9; pattern.len()];
    File::open(dir.log_path())?.read_exact_at(&mut read, 0)?;
    let floor = usize::try_from(floor).unwrap_or_default();
    assert!(read[..floor].iter().all(|byte| *byte == 0) && read[floor..] == pattern[floor..]);
    Ok(())
}

#[test]
fn sparse_log_is_not_kept_or_sent() -> io::Result<()> {
    for can_punch_holes in [true, false] {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let mut spool = LogSpool { can_punch: can_punch_holes, ..LogSpool::open(&dir, MIB)? };
        // A trainer can do this with its standard output.
        let length = 1 << 43;
        OpenOptions::new().write(true).open(dir.log_path())?.set_len(length)?;
        spool.check(Duration::from_secs(1))?;
        let floor = dir.truncation_offsets().log;
        assert!(length - floor <= MIB, "{floor} of {length}");
    }
    Ok(())
}

#[test]
fn nothing_is_dropped_without_hole_punching() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let dir = AttemptDir::from_path(temp.path());
    let mut spool = LogSpool { can_punch: false, ..LogSpool::open(&dir, MIB)? };
    std::fs::write(dir.log_path(), vec![b'x'; 4 << 20])?;
    spool.check(Duration::from_secs(1))?;
    assert!(spool.warned && dir.truncation_offsets() == TruncationOffsets::default());
    Ok(())
}

#[test]
fn events_are_limited_too() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let dir = AttemptDir::from_path(temp.path());
    let mut spool = LogSpool::open(&dir, MIB)?;
    fallocate(&spool.events.file, FallocateFlags::empty(), 0, 65 << 20).map_err(io::Error::from)?;
    spool.check(Duration::from_secs(1))?;
    assert_eq!((dir.truncation_offsets().log, dir.truncation_offsets().events), (0, 9 * MIB));
    Ok(())
}

#[test]
fn lowest_free_space_is_remembered() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let mut spool = LogSpool::open(&AttemptDir::from_path(temp.path()), MIB)?;
    for free in [9, 4, 7] {
        spool.record_free(free);
    }
    assert_eq!(spool.lowest_free.map(|(_, free)| free), Some(4));
    spool.lowest_free = spool.lowest_free.and_then(|(time, free)| Some((time.checked_sub(LOW_DISK_WINDOW)?, free)));
    spool.record_free(7);
    assert_eq!(spool.lowest_free.map(|(_, free)| free), Some(7), "an old minimum is forgotten");
    Ok(())
}
