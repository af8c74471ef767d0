//! What is given up of output, as tables, and on this disk.

use std::io::Write;
use std::os::unix::fs::FileExt;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn a_low_disk_leaves_the_newest() {
    for (limit, free, kept) in
        [(1 << 30, 1 << 40, 1 << 30), (1 << 30, LOW_DISK, 1 << 30), (1 << 30, LOW_DISK - 1, NEWEST), (MIB, 0, MIB)]
    {
        assert_eq!(keep(limit, free), kept, "{limit} with {free} free");
    }
}

#[test]
fn what_is_cut_is_whole_blocks_and_an_eighth_more() {
    // Length, blocks on disk, what may stay, where it begins now.
    for (length, on_disk, keep, floor, expected) in [
        (8 * MIB, 8 * MIB, 8 * MIB, 0, None),
        (8 * MIB, 8 * MIB + 1, 8 * MIB, 0, Some(MIB)),
        (10 * MIB + 5, 10 * MIB, 8 * MIB, 0, Some(3 * MIB)),
        (100 * MIB, 9 * MIB, 8 * MIB, 91 * MIB, Some(93 * MIB)),
        // Blocks that nobody can give back are no reason to cut what is new.
        (100 * MIB, 9 * MIB, 8 * MIB, 95 * MIB, None),
        (0, 9 * MIB, 8 * MIB, 0, None),
    ] {
        assert_eq!(cut(length, on_disk, keep, floor), expected, "{length} {on_disk} {keep} {floor}");
    }
}

#[test]
fn a_flood_is_looked_at_more_often() {
    let second = Duration::from_secs(1);
    for (grew, free, keep, expected) in [
        (0, 1 << 40, 1 << 30, second),
        (200 * MIB, 1 << 40, 1 << 30, second),
        (1 << 30, 1 << 40, 1 << 30, second / 4),
        // Nobody writes yet, but might begin to.
        (0, 256 * MIB, 1 << 30, second / 4),
        (0, 1 << 30, 1 << 30, second),
        (200 * MIB, MIB, 8 * MIB, LOOKS.1),
    ] {
        assert_eq!(next_look(grew, second, free, keep), expected, "{grew} with {free} free and {keep} to keep");
    }
    assert_eq!(next_look(0, Duration::ZERO, 1 << 40, 1 << 30), LOOKS.1);
}

#[test]
fn the_oldest_goes_and_offsets_stay_true() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    assert!(can_punch(temp.path())?, "the file system of {} makes no holes", temp.path().display());
    let dir = AttemptDir::at(temp.path());
    let mut spool = Spool::open(&dir, MIB)?;
    let pattern: Vec<u8> = (0..3 * MIB).map(|at| 1 + u8::try_from(at % 251).unwrap_or_default()).collect();
    let mut log = OpenOptions::new().append(true).open(dir.log())?;
    for piece in pattern.chunks(512 * 1024) {
        log.write_all(piece)?;
        log.sync_all()?;
        spool.look(Duration::from_secs(1))?;
    }
    let floor = dir.floors().log;
    assert!((2 * MIB..3 * MIB).contains(&floor), "{floor}");
    assert_eq!(dir.floors().events, 0);
    assert!(log.metadata()?.blocks() * 512 <= MIB + 512 * 1024, "{} blocks", log.metadata()?.blocks());
    let mut read = vec![9; pattern.len()];
    File::open(dir.log())?.read_exact_at(&mut read, 0)?;
    let floor = usize::try_from(floor).unwrap_or_default();
    assert!(read[..floor].iter().all(|byte| *byte == 0) && read[floor..] == pattern[floor..]);
    Ok(())
}

#[test]
fn a_log_that_is_only_long_is_not_kept_or_sent() -> io::Result<()> {
    for can in [true, false] {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let mut spool = Spool { can, ..Spool::open(&dir, MIB)? };
        // As a trainer can do to its standard output.
        let length = 1 << 43;
        OpenOptions::new().write(true).open(dir.log())?.set_len(length)?;
        spool.look(Duration::from_secs(1))?;
        let floor = dir.floors().log;
        assert!(length - floor <= MIB, "{floor} of {length}");
    }
    Ok(())
}

#[test]
fn where_no_hole_can_be_made_nothing_is_given_up() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let dir = AttemptDir::at(temp.path());
    let mut spool = Spool { can: false, ..Spool::open(&dir, MIB)? };
    std::fs::write(dir.log(), vec![b'x'; 4 << 20])?;
    spool.look(Duration::from_secs(1))?;
    assert!(spool.said && dir.floors() == Floors::default());
    Ok(())
}

#[test]
fn events_are_bounded_too() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let dir = AttemptDir::at(temp.path());
    let mut spool = Spool::open(&dir, MIB)?;
    fallocate(&spool.events.file, FallocateFlags::empty(), 0, 65 << 20).map_err(io::Error::from)?;
    spool.look(Duration::from_secs(1))?;
    assert_eq!((dir.floors().log, dir.floors().events), (0, 9 * MIB));
    Ok(())
}

#[test]
fn the_least_that_was_free_is_remembered() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let mut spool = Spool::open(&AttemptDir::at(temp.path()), MIB)?;
    for free in [9, 4, 7] {
        spool.remember(free);
    }
    assert_eq!(spool.lowest.map(|(_, free)| free), Some(4));
    spool.lowest = spool.lowest.and_then(|(at, free)| Some((at.checked_sub(MEMORY)?, free)));
    spool.remember(7);
    assert_eq!(spool.lowest.map(|(_, free)| free), Some(7), "a minute ago is long ago");
    Ok(())
}
