//! What goes, in which order, on disks of any size.

use super::*;
use app::domain::watermark::Floor;

fn one(age: u64, is_wanted: bool) -> Finished {
    let ended = SystemTime::UNIX_EPOCH + Duration::from_hours(1000 - age);
    Finished { ended, dir: AttemptDir::at(Path::new(&age.to_string())), is_wanted }
}

#[test]
fn the_oldest_goes_if_there_are_too_many_or_room_is_short() {
    let all = |count| (0..count).map(|age| one(age, false)).collect::<Vec<_>>();
    for (count, short, goes) in
        [(10, false, None), (12, false, Some(11)), (12, true, Some(11)), (3, true, Some(2)), (0, true, None)]
    {
        assert_eq!(next(&all(count), short), goes, "{count} {short}");
    }
    let wanted = [one(2, true), one(1, false), one(3, true)];
    assert_eq!(next(&wanted, true), Some(1));
    assert_eq!(next(&wanted[..1], true), None);
}

/// Attempts in a work directory, each with a megabyte on a disk that has three of them free.
struct Host {
    temp: tempfile::TempDir,
    begins: usize,
}

const MIB: u64 = 1 << 20;
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn keep(bytes: u64) -> Keep {
    Keep { free: KeepFree::Told(Floor::Bytes(bytes)), homes: Duration::from_hours(720) }
}

impl Host {
    fn with(attempts: &[(&str, State)]) -> io::Result<Self> {
        let host = Self { temp: tempfile::tempdir()?, begins: attempts.len() };
        for (order, (path, state)) in attempts.iter().enumerate() {
            let dir = AttemptDir::at(&host.temp.path().join("jobs").join(path));
            fs::create_dir_all(dir.output().join("checkpoint-1"))?;
            fs::write(dir.output().join("checkpoint-1/weights"), path)?;
            dir.write("state.json", state)?;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(order as u64);
            fs::File::options().write(true).open(dir.join("state.json"))?.set_modified(at)?;
        }
        Ok(host)
    }

    fn here(&self) -> Vec<String> {
        let name =
            |dir: AttemptDir| Some(dir.path().strip_prefix(self.temp.path().join("jobs")).ok()?.display().to_string());
        let mut here: Vec<_> = attempts(self.temp.path()).into_iter().flatten().filter_map(name).collect();
        here.sort();
        here
    }

    /// Tidies until so many megabytes are free. Whether that was not enough.
    fn tidy(&self, floor_mib: u64, was_short: bool) -> bool {
        let space = || Some(Space { free: 3 * MIB + (self.begins - self.here().len()) as u64 * MIB, total: 100 * MIB });
        tidy(self.temp.path(), keep(floor_mib * MIB), was_short, NOW, space)
    }
}

fn delivered() -> State {
    State { delivered: true, ..State::default() }
}

#[test]
fn finished_attempts_make_room_the_oldest_first_and_no_more_than_needed() -> io::Result<()> {
    let host = Host::with(&[("a/1", delivered()), ("b/1", delivered()), ("c/1", delivered()), ("d/1", delivered())])?;
    assert!(!host.tidy(3, false));
    assert_eq!(host.here(), ["a/1", "b/1", "c/1", "d/1"], "there is room");
    assert!(!host.tidy(4, false));
    // A tenth more than the floor, so that the next byte does not make it short again.
    assert_eq!(host.here(), ["c/1", "d/1"]);
    assert!(!host.temp.path().join("jobs/a").exists() && !host.temp.path().join("removed/1").exists());
    assert!(host.tidy(50, false), "there is nothing more to remove, and it is not enough");
    assert_eq!(host.here(), [""; 0]);
    Ok(())
}

#[test]
fn what_is_not_delivered_or_about_to_be_resumed_from_stays() -> io::Result<()> {
    let host = Host::with(&[
        ("a/1", State::default()),
        ("b/1", delivered()),
        ("b/2", State::default()),
        ("c/1", delivered()),
    ])?;
    fs::write(host.temp.path().join("jobs/c/broken"), "")?;
    assert!(host.tidy(50, false));
    assert_eq!(host.here(), ["a/1", "b/1", "b/2"]);
    // Its trainer has begun.
    fs::write(host.temp.path().join("jobs/b/2/supervisor.json"), "{}")?;
    assert!(host.tidy(50, true));
    assert_eq!(host.here(), ["a/1", "b/2"]);
    Ok(())
}

#[test]
fn where_nobody_can_tell_what_is_free_nothing_goes_for_it() -> io::Result<()> {
    let host = Host::with(&[("a/1", delivered())])?;
    assert!(!tidy(host.temp.path(), keep(u64::MAX), false, NOW, || None));
    assert_eq!(host.here(), ["a/1"]);
    Ok(())
}

#[test]
fn what_an_earlier_agent_had_begun_to_remove_is_removed() -> io::Result<()> {
    let host = Host::with(&[("a/1", delivered())])?;
    fs::create_dir_all(host.temp.path().join("removed/attempt/output"))?;
    fs::write(host.temp.path().join("removed/attempt/output/weights"), "")?;
    assert!(!host.tidy(1, false));
    assert!(!host.temp.path().join("removed").exists());
    assert!(host.tidy(50, false));
    assert_eq!(host.here(), [""; 0]);
    Ok(())
}
