//! Users of jobs on this host: each has a home directory for caches, and, if the agent runs as root, an operating
//! system user, so that other users' jobs cannot read its files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::plan::SandboxUser;
use crate::worker::clock::encode_hex;
use crate::worker::files::{AttemptSpec, write_atomic};

/// The first ID of the range. Nothing else allocates IDs there: those of regular users and containers are lower.
pub const FIRST_USER: SandboxUser = SandboxUser { uid: 1_879_048_192, gid: 1_879_048_192 };
/// Max number of users on a host. The first ID is for the sandbox test.
const USER_COUNT: u32 = 65_536;

/// The name of [`owners_dir`] in earlier versions.
const OLD_OWNERS_DIR: &str = "people";

/// Held while home directories or their users change.
static HOMES_LOCK: Mutex<()> = Mutex::new(());
/// Suffix of the file whose time is the last use of a home directory. The agent owns it: a trainer could change the
/// time of its home directory.
const LAST_USED_SUFFIX: &str = "used";

/// A home directory and its last use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeDir {
    pub path: PathBuf,
    /// When a job of its owner last started or ended.
    pub last_used: SystemTime,
}

/// The user of a job, if the orchestrator names one; otherwise a name that only this job has.
pub fn owner_name(spec: &AttemptSpec) -> String {
    spec.offer.submitted_by.clone().unwrap_or_else(|| format!("job {}", spec.key.job_id))
}

/// A file name that does not reveal the user.
fn owner_key(owner: &str) -> String {
    encode_hex(&Sha256::digest(owner.as_bytes())[..12])
}

/// The directory of home directories and of `users.json`.
pub fn owners_dir(work_dir: &Path) -> PathBuf {
    work_dir.join("users")
}

/// Renames the directory of an earlier version. Its old name becomes a link, because a running trainer has it in its
/// environment.
///
/// # Errors
/// On an I/O error.
pub fn rename_old_owners_dir(work_dir: &Path) -> io::Result<()> {
    let (old, new) = (work_dir.join(OLD_OWNERS_DIR), owners_dir(work_dir));
    if new.exists() || !old.is_dir() {
        return Ok(());
    }
    fs::rename(&old, &new)?;
    symlink(new.file_name().unwrap_or_default(), old)
}

/// Where a user's trainers keep their caches between jobs.
pub fn home_dir(work_dir: &Path, owner: &str) -> PathBuf {
    owners_dir(work_dir).join(owner_key(owner))
}

/// Runs the function while no home directory is allocated or removed.
pub fn with_homes_lock<T>(work: impl FnOnce() -> T) -> T {
    let _guard = HOMES_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Records that a home directory is in use now.
///
/// # Errors
/// On an I/O error.
pub fn touch_home(home: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home.parent().unwrap_or(home))?;
    write_atomic(&home.with_extension(LAST_USED_SUFFIX), b"", false)
}

/// Removes the record of a removed home directory.
pub fn remove_last_used(home: &Path) {
    // A remaining file has no effect.
    let _ = fs::remove_file(home.with_extension(LAST_USED_SUFFIX));
}

/// All home directories below a work directory.
pub fn list_homes(work_dir: &Path) -> Vec<HomeDir> {
    let entries = fs::read_dir(owners_dir(work_dir)).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path());
    let home = |path: PathBuf| {
        // An older agent has recorded nothing.
        let metadata = fs::metadata(path.with_extension(LAST_USED_SUFFIX)).or_else(|_| fs::metadata(&path));
        Some(HomeDir { last_used: metadata.ok()?.modified().ok()?, path })
    };
    dirs.filter_map(home).collect()
}

/// The operating system user of a user's trainers, permanent on this host.
///
/// # Errors
/// On an I/O error, or if too many users have trained here.
pub fn allocate_user(work_dir: &Path, owner: &str) -> io::Result<SandboxUser> {
    // Jobs are prepared concurrently, and no two users may get the same ID.
    let _guard = HOMES_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let file = owners_dir(work_dir).join("users.json");
    let mut users: BTreeMap<String, u32> = match fs::read(&file) {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(error),
    };
    let key = owner_key(owner);
    if let Some(number) = users.get(&key) {
        return Ok(user_at(*number));
    }
    let next = users.values().max().map_or(1, |last| last + 1);
    if next >= USER_COUNT {
        return Err(io::Error::other(format!(
            "{USER_COUNT} users have trained on this host; remove {}",
            file.display()
        )));
    }
    users.insert(key, next);
    fs::create_dir_all(owners_dir(work_dir))?;
    write_atomic(&file, &serde_json::to_vec_pretty(&users)?, true)?;
    Ok(user_at(next))
}

const fn user_at(number: u32) -> SandboxUser {
    SandboxUser { uid: FIRST_USER.uid + number, gid: FIRST_USER.gid + number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_keeps_a_separate_uid() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let bob = allocate_user(temp.path(), "bob")?;
        let eve = allocate_user(temp.path(), "eve")?;
        assert!(bob != eve && bob != FIRST_USER && eve != FIRST_USER);
        assert_eq!((allocate_user(temp.path(), "bob")?, allocate_user(temp.path(), "eve")?), (bob, eve));
        assert!(home_dir(temp.path(), "bob") != home_dir(temp.path(), "eve"));
        Ok(())
    }

    #[test]
    fn directory_of_an_earlier_version_is_renamed_once() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let work_dir = temp.path();
        rename_old_owners_dir(work_dir)?;
        assert_eq!(fs::read_dir(work_dir)?.count(), 0, "a new work directory stays empty");

        let bob = allocate_user(work_dir, "bob")?;
        touch_home(&home_dir(work_dir, "bob"))?;
        fs::create_dir(home_dir(work_dir, "bob"))?;
        fs::rename(owners_dir(work_dir), work_dir.join("people"))?;
        for _ in 0..2 {
            rename_old_owners_dir(work_dir)?;
            assert_eq!(allocate_user(work_dir, "bob")?, bob);
            assert_eq!(list_homes(work_dir).len(), 1);
            assert_eq!(fs::read_link(work_dir.join("people"))?, Path::new("users"));
        }
        assert_ne!(allocate_user(work_dir, "eve")?, bob);
        Ok(())
    }

    #[test]
    fn concurrent_users_get_different_uids() {
        let temp = tempfile::tempdir().expect("a directory");
        let ids: Vec<u32> = std::thread::scope(|scope| {
            let threads = (0..16).map(|number| {
                let work_dir = temp.path();
                scope.spawn(move || allocate_user(work_dir, &format!("user {number}")).map(|user| user.uid))
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic").expect("a user")).collect()
        });
        let different: std::collections::BTreeSet<u32> = ids.iter().copied().collect();
        assert_eq!(different.len(), 16, "{ids:?}");
    }
}
