//! Home directories of users, in a work directory.

use app::domain::disk_watermark::DiskFloor;

use super::*;
use crate::worker::config::disk::MinFreeSpace;
use crate::worker::files::AttemptDir;
use crate::worker::filesystem::FilesystemSpace;
use crate::worker::retention::{RetentionPolicy, prune};

const DAY: u64 = 24 * 60 * 60;

fn day(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(number * DAY)
}

/// A work directory with the home directories of these users, each last used on that day, and caches in it.
fn homes(owners: &[(&str, u64)]) -> io::Result<tempfile::TempDir> {
    let work = tempfile::tempdir()?;
    for (owner, used) in owners {
        let home = users::home_dir(work.path(), owner);
        users::touch_home(&home)?;
        fs::create_dir_all(home.join(".cache/torch"))?;
        fs::write(home.join(".cache/torch/kernel"), "x")?;
        fs::File::open(home.with_extension("used"))?.set_modified(day(*used))?;
    }
    Ok(work)
}

fn existing_homes(work: &Path, owners: &[&str]) -> Vec<String> {
    owners.iter().filter(|owner| users::home_dir(work, owner).exists()).map(|owner| (*owner).to_owned()).collect()
}

/// Prunes on day 100, with this many megabytes free and a minimum of ten; each removed home directory frees three.
fn prune_on_day_100(work: &Path, free: u64) -> bool {
    let before = users::list_homes(work).len();
    let mib = |number: u64| number << 20;
    let space = || {
        let removed = (before - users::list_homes(work).len()) as u64;
        Some(FilesystemSpace { free: mib(free + 3 * removed), total: mib(1_000) })
    };
    let policy = RetentionPolicy {
        min_free_space: MinFreeSpace::Explicit(DiskFloor::Bytes(mib(10))),
        home_retention: Duration::from_secs(30 * DAY),
    };
    prune(work, policy, false, day(100), space)
}

/// An attempt of a user's job.
fn attempt(work: &Path, owner: &str, job: &str, delivered: bool) -> io::Result<AttemptDir> {
    let dir = AttemptDir::from_path(&work.join("jobs").join(job).join("1"));
    fs::create_dir_all(dir.path())?;
    let offer = serde_json::json!({"job_id": job, "attempt": 1, "config_name": "c", "config": {}, "submitted_by": owner,
        "bundle": {"url": "/b", "sha256": "", "size": 0}, "upload_endpoint": "/u", "upload_token": ""});
    let spec = serde_json::json!({"version": 1, "key": {"job_id": job, "attempt": 1}, "offer": offer, "trainer": [],
        "host_boot": "", "resume": false});
    dir.write_json("spec.json", &spec)?;
    assert_eq!(dir.read_json::<AttemptSpec>("spec.json")?.map(|spec| users::owner_name(&spec)).as_deref(), Some(owner));
    dir.write_json("state.json", &AttemptState { delivered, ..AttemptState::default() })?;
    Ok(dir)
}

#[test]
fn long_unused_home_is_removed() -> io::Result<()> {
    let owners = ["bob", "eve", "ann"];
    let work = homes(&[("bob", 69), ("eve", 70), ("ann", 200)])?;
    assert!(!prune_on_day_100(work.path(), 500));
    assert_eq!(existing_homes(work.path(), &owners), ["eve", "ann"]);
    assert!(!users::home_dir(work.path(), "bob").with_extension("used").exists());
    assert_eq!(fs::read_dir(work.path().join("removed"))?.count(), 0);
    Ok(())
}

#[test]
fn least_recently_used_home_is_removed_first() -> io::Result<()> {
    let owners = ["bob", "eve", "ann"];
    let work = homes(&[("bob", 98), ("eve", 97), ("ann", 99)])?;
    assert!(!prune_on_day_100(work.path(), 5));
    assert_eq!(existing_homes(work.path(), &owners), ["ann"]);
    Ok(())
}

#[test]
fn finished_attempts_go_before_homes() -> io::Result<()> {
    let work = homes(&[("bob", 98)])?;
    let dir = attempt(work.path(), "bob", "j_1", true)?;
    let mut calls = 0;
    let space = || {
        calls += 1;
        Some(FilesystemSpace { free: if calls > 1 { 900 << 20 } else { 0 }, total: 1_000 << 20 })
    };
    let policy = RetentionPolicy {
        min_free_space: MinFreeSpace::Explicit(DiskFloor::Bytes(10 << 20)),
        home_retention: Duration::from_secs(30 * DAY),
    };
    assert!(!prune(work.path(), policy, false, day(100), space));
    assert!(!dir.path().exists());
    assert_eq!(existing_homes(work.path(), &["bob"]), ["bob"]);
    Ok(())
}

#[test]
fn home_of_a_user_with_a_job_stays() -> io::Result<()> {
    let owners = ["bob", "eve"];
    let work = homes(&[("bob", 1), ("eve", 1)])?;
    attempt(work.path(), "bob", "j_1", false)?;
    attempt(work.path(), "eve", "j_2", true)?;
    assert!(prune_on_day_100(work.path(), 0), "all removals together do not free enough space");
    assert_eq!(existing_homes(work.path(), &owners), ["bob"]);
    Ok(())
}

#[test]
fn unknown_job_owners_keep_all_homes() -> io::Result<()> {
    let work = homes(&[("bob", 1)])?;
    fs::write(attempt(work.path(), "eve", "j_1", false)?.join("spec.json"), "{")?;
    assert!(prune_on_day_100(work.path(), 0));
    assert_eq!(existing_homes(work.path(), &["bob"]), ["bob"]);
    Ok(())
}

#[test]
fn home_of_a_new_job_is_not_removed() -> io::Result<()> {
    let work = homes(&[("bob", 1)])?;
    let unused = unused_homes(work.path());
    attempt(work.path(), "bob", "j_1", false)?;
    let trash_path = work.path().join("away");
    assert!(unused.len() == 1 && !move_to_trash(work.path(), &unused[0], &trash_path)?);
    assert_eq!(existing_homes(work.path(), &["bob"]), ["bob"]);
    Ok(())
}
