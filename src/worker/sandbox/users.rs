//! People on this host: each has a home for caches, and on a host whose agent runs as root also a user, so that no other
//! person's jobs can read what theirs leave.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::plan::User;
use crate::clock::hex;
use crate::files::{Spec, write_atomic};
use crate::retention::homes::Home;

/// The first number of the range. Nothing else hands out numbers there: those of logins and containers end below it.
pub const FIRST: User = User { uid: 1_879_048_192, gid: 1_879_048_192 };
/// How many people a host knows. The first number is for trials.
const RANGE: u32 = 65_536;

/// Held by whoever changes what there is of people.
static ALONE: Mutex<()> = Mutex::new(());
/// Ends the name of the file whose time says when a home was used last. It is the agent's: a trainer could set that of its home.
const USED: &str = "used";

/// Whose job it is, as far as the orchestrator says so; else nobody else's.
pub fn person(spec: &Spec) -> String {
    spec.offer.submitted_by.clone().unwrap_or_else(|| format!("job {}", spec.key.job_id))
}

/// A name for files, which says nothing of who it is.
fn key(person: &str) -> String {
    hex(&Sha256::digest(person.as_bytes())[..12])
}

/// Where both are kept.
pub fn people(work_dir: &Path) -> PathBuf {
    work_dir.join("people")
}

/// Where a person's trainers keep their caches from one job to the next.
pub fn home(work_dir: &Path, person: &str) -> PathBuf {
    people(work_dir).join(key(person))
}

/// Does something with homes while no other is given out or taken away.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Notes that somebody uses a home now.
///
/// # Errors
/// If the disk refuses.
pub fn mark_used(home: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home.parent().unwrap_or(home))?;
    write_atomic(&home.with_extension(USED), b"", false)
}

/// Forgets the use of a home that is gone.
pub fn forget(home: &Path) {
    // What stays of it says nothing any more.
    let _ = fs::remove_file(home.with_extension(USED));
}

/// Every home below a work directory.
pub fn homes(work_dir: &Path) -> Vec<Home> {
    let entries = fs::read_dir(people(work_dir)).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let home = |path: PathBuf| {
        // An older agent has noted nothing.
        let noted = fs::metadata(path.with_extension(USED)).or_else(|_| fs::metadata(&path));
        Some(Home { used: noted.ok()?.modified().ok()?, path })
    };
    dirs.filter_map(home).collect()
}

/// The user of a person's trainers, the same for ever on this host.
///
/// # Errors
/// If the disk refuses, or too many people have trained here.
pub fn user_of(work_dir: &Path, person: &str) -> io::Result<User> {
    // Jobs are prepared at the same time, and no two people may be given one number.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let file = people(work_dir).join("users.json");
    let mut users: BTreeMap<String, u32> = match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(error),
    };
    let key = key(person);
    if let Some(number) = users.get(&key) {
        return Ok(user(*number));
    }
    let next = users.values().max().map_or(1, |last| last + 1);
    if next >= RANGE {
        return Err(io::Error::other(format!("{RANGE} people have trained on this host; remove {}", file.display())));
    }
    users.insert(key, next);
    fs::create_dir_all(people(work_dir))?;
    write_atomic(&file, &serde_json::to_vec_pretty(&users)?, true)?;
    Ok(user(next))
}

const fn user(number: u32) -> User {
    User { uid: FIRST.uid + number, gid: FIRST.gid + number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_person_keeps_a_user_of_their_own() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let bob = user_of(temp.path(), "bob")?;
        let eve = user_of(temp.path(), "eve")?;
        assert!(bob != eve && bob != FIRST && eve != FIRST);
        assert_eq!((user_of(temp.path(), "bob")?, user_of(temp.path(), "eve")?), (bob, eve));
        assert!(home(temp.path(), "bob") != home(temp.path(), "eve"));
        Ok(())
    }

    #[test]
    fn people_who_come_at_the_same_time_have_different_users() {
        let temp = tempfile::tempdir().expect("a directory");
        let ids: Vec<u32> = std::thread::scope(|scope| {
            let asking = (0..16).map(|number| {
                let work_dir = temp.path();
                scope.spawn(move || user_of(work_dir, &format!("person {number}")).map(|user| user.uid))
            });
            let asking: Vec<_> = asking.collect();
            asking.into_iter().map(|one| one.join().expect("no panic").expect("a user")).collect()
        });
        let different: std::collections::BTreeSet<u32> = ids.iter().copied().collect();
        assert_eq!(different.len(), 16, "{ids:?}");
    }
}
