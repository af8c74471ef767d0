//! What is removed, in which order, on disks of any size.

use super::*;
use app::domain::disk_watermark::DiskFloor;

fn finished_attempt(age: u64, may_be_resumed: bool) -> FinishedAttempt {
    let ended = SystemTime::UNIX_EPOCH + Duration::from_hours(1000 - age);
    FinishedAttempt { ended_at: ended, dir: AttemptDir::from_path(Path::new(&age.to_string())), may_be_resumed }
}

#[test]
fn oldest_attempt_is_pruned_first() {
    let attempts = |count| (0..count).map(|age| finished_attempt(age, false)).collect::<Vec<_>>();
    for (count, short, expected) in
        [(10, false, None), (12, false, Some(11)), (12, true, Some(11)), (3, true, Some(2)), (0, true, None)]
    {
        assert_eq!(next_attempt(&attempts(count), short), expected, "{count} {short}");
    }
    let resumable = [finished_attempt(2, true), finished_attempt(1, false), finished_attempt(3, true)];
    assert_eq!(next_attempt(&resumable, true), Some(1));
    assert_eq!(next_attempt(&resumable[..1], true), None);
}

/// Attempts in a work directory, each with one megabyte, on a disk with three free megabytes.
struct RetentionFixture {
    temp: tempfile::TempDir,
    initial_count: usize,
}

const MIB: u64 = 1 << 20;
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn retention_policy(bytes: u64) -> RetentionPolicy {
    RetentionPolicy {
        min_free_space: MinFreeSpace::Explicit(DiskFloor::Bytes(bytes)),
        home_retention: Duration::from_hours(720),
    }
}

impl RetentionFixture {
    fn with(attempts: &[(&str, AttemptState)]) -> io::Result<Self> {
        let host = Self { temp: tempfile::tempdir()?, initial_count: attempts.len() };
        for (order, (path, state)) in attempts.iter().enumerate() {
            let dir = AttemptDir::from_path(&host.temp.path().join("jobs").join(path));
            fs::create_dir_all(dir.output_dir().join("checkpoint-1"))?;
            fs::write(dir.output_dir().join("checkpoint-1/weights"), path)?;
            dir.write_json("state.json", state)?;
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(order as u64);
            fs::File::options().write(true).open(dir.join("state.json"))?.set_modified(modified)?;
        }
        Ok(host)
    }

    fn existing_attempts(&self) -> Vec<String> {
        let name =
            |dir: AttemptDir| Some(dir.path().strip_prefix(self.temp.path().join("jobs")).ok()?.display().to_string());
        let mut names: Vec<_> = list_attempts(self.temp.path()).into_iter().flatten().filter_map(name).collect();
        names.sort();
        names
    }

    /// Prunes until this many megabytes are free. Returns whether there is still too little space.
    fn prune(&self, floor_mib: u64, was_short: bool) -> bool {
        let space = || {
            Some(FilesystemSpace {
                free: 3 * MIB + (self.initial_count - self.existing_attempts().len()) as u64 * MIB,
                total: 100 * MIB,
            })
        };
        prune(self.temp.path(), retention_policy(floor_mib * MIB), was_short, NOW, space)
    }
}

fn delivered() -> AttemptState {
    AttemptState { delivered: true, ..AttemptState::default() }
}

#[test]
fn pruning_stops_when_enough_space_is_free() -> io::Result<()> {
    let host = RetentionFixture::with(&[
        ("a/1", delivered()),
        ("b/1", delivered()),
        ("c/1", delivered()),
        ("d/1", delivered()),
    ])?;
    assert!(!host.prune(3, false));
    assert_eq!(host.existing_attempts(), ["a/1", "b/1", "c/1", "d/1"], "enough space is free");
    assert!(!host.prune(4, false));
    // A tenth more than the minimum, so that the next byte does not make it short again.
    assert_eq!(host.existing_attempts(), ["c/1", "d/1"]);
    assert!(!host.temp.path().join("jobs/a").exists() && !host.temp.path().join("removed/1").exists());
    assert!(host.prune(50, false), "there is nothing more to remove, and it is not enough");
    assert_eq!(host.existing_attempts(), [""; 0]);
    Ok(())
}

#[test]
fn undelivered_or_needed_attempts_stay() -> io::Result<()> {
    let host = RetentionFixture::with(&[
        ("a/1", AttemptState::default()),
        ("b/1", delivered()),
        ("b/2", AttemptState::default()),
        ("c/1", delivered()),
    ])?;
    fs::write(host.temp.path().join("jobs/c/broken"), "")?;
    assert!(host.prune(50, false));
    assert_eq!(host.existing_attempts(), ["a/1", "b/1", "b/2"]);
    // Its trainer has started.
    fs::write(host.temp.path().join("jobs/b/2/supervisor.json"), "{}")?;
    assert!(host.prune(50, true));
    assert_eq!(host.existing_attempts(), ["a/1", "b/2"]);
    Ok(())
}

#[test]
fn unknown_free_space_prunes_nothing() -> io::Result<()> {
    let host = RetentionFixture::with(&[("a/1", delivered())])?;
    assert!(!prune(host.temp.path(), retention_policy(u64::MAX), false, NOW, || None));
    assert_eq!(host.existing_attempts(), ["a/1"]);
    Ok(())
}

#[test]
fn interrupted_removal_is_completed() -> io::Result<()> {
    let host = RetentionFixture::with(&[("a/1", delivered())])?;
    fs::create_dir_all(host.temp.path().join("removed/attempt/output"))?;
    fs::write(host.temp.path().join("removed/attempt/output/weights"), "")?;
    assert!(!host.prune(1, false));
    assert!(!host.temp.path().join("removed").exists());
    assert!(host.prune(50, false));
    assert_eq!(host.existing_attempts(), [""; 0]);
    Ok(())
}
