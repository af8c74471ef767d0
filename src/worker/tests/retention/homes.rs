//! Homes of people, on a work directory.

use app::domain::watermark::Floor;

use super::*;
use crate::config::disk::{KeepFree, Space};
use crate::files::AttemptDir;
use crate::retention::{Keep, tidy};

const DAY: u64 = 24 * 60 * 60;

fn day(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(number * DAY)
}

/// A work directory with the homes of these people, each used last on that day, and caches in it.
fn homes(people: &[(&str, u64)]) -> io::Result<tempfile::TempDir> {
    let work = tempfile::tempdir()?;
    for (person, used) in people {
        let home = users::home(work.path(), person);
        users::mark_used(&home)?;
        fs::create_dir_all(home.join(".cache/torch"))?;
        fs::write(home.join(".cache/torch/kernel"), "x")?;
        fs::File::open(home.with_extension("used"))?.set_modified(day(*used))?;
    }
    Ok(work)
}

fn here(work: &Path, people: &[&str]) -> Vec<String> {
    people.iter().filter(|person| users::home(work, person).exists()).map(|person| (*person).to_owned()).collect()
}

/// On day 100, with so many megabytes free of which ten are to stay so, and three more for each home that goes.
fn on_day_100(work: &Path, free: u64) -> bool {
    let before = users::homes(work).len();
    let mib = |number: u64| number << 20;
    let space = || {
        let gone = (before - users::homes(work).len()) as u64;
        Some(Space { free: mib(free + 3 * gone), total: mib(1_000) })
    };
    let keep = Keep { free: KeepFree::Told(Floor::Bytes(mib(10))), homes: Duration::from_secs(30 * DAY) };
    tidy(work, keep, false, day(100), space)
}

/// An attempt of somebody's job.
fn attempt(work: &Path, person: &str, job: &str, delivered: bool) -> io::Result<AttemptDir> {
    let dir = AttemptDir::at(&work.join("jobs").join(job).join("1"));
    fs::create_dir_all(dir.path())?;
    let offer = serde_json::json!({"job_id": job, "attempt": 1, "config_name": "c", "config": {}, "submitted_by": person,
        "bundle": {"url": "/b", "sha256": "", "size": 0}, "upload_endpoint": "/u", "upload_token": ""});
    let spec = serde_json::json!({"version": 1, "key": {"job_id": job, "attempt": 1}, "offer": offer, "trainer": [],
        "host_boot": "", "resume": false});
    dir.write("spec.json", &spec)?;
    assert_eq!(dir.read::<Spec>("spec.json")?.map(|spec| users::person(&spec)).as_deref(), Some(person));
    dir.write("state.json", &State { delivered, ..State::default() })?;
    Ok(dir)
}

#[test]
fn a_home_that_nobody_has_used_for_long_goes() -> io::Result<()> {
    let people = ["bob", "eve", "ann"];
    let work = homes(&[("bob", 69), ("eve", 70), ("ann", 200)])?;
    assert!(!on_day_100(work.path(), 500));
    assert_eq!(here(work.path(), &people), ["eve", "ann"]);
    assert!(!users::home(work.path(), "bob").with_extension("used").exists());
    assert_eq!(fs::read_dir(work.path().join("removed"))?.count(), 0);
    Ok(())
}

#[test]
fn where_room_is_short_the_longest_unused_goes_first_and_no_more_than_needed() -> io::Result<()> {
    let people = ["bob", "eve", "ann"];
    let work = homes(&[("bob", 98), ("eve", 97), ("ann", 99)])?;
    assert!(!on_day_100(work.path(), 5));
    assert_eq!(here(work.path(), &people), ["ann"]);
    Ok(())
}

#[test]
fn finished_attempts_go_before_homes() -> io::Result<()> {
    let work = homes(&[("bob", 98)])?;
    let dir = attempt(work.path(), "bob", "j_1", true)?;
    let mut looks = 0;
    let space = || {
        looks += 1;
        Some(Space { free: if looks > 1 { 900 << 20 } else { 0 }, total: 1_000 << 20 })
    };
    let keep = Keep { free: KeepFree::Told(Floor::Bytes(10 << 20)), homes: Duration::from_secs(30 * DAY) };
    assert!(!tidy(work.path(), keep, false, day(100), space));
    assert!(!dir.path().exists());
    assert_eq!(here(work.path(), &["bob"]), ["bob"]);
    Ok(())
}

#[test]
fn whoever_has_a_job_here_keeps_their_home() -> io::Result<()> {
    let people = ["bob", "eve"];
    let work = homes(&[("bob", 1), ("eve", 1)])?;
    attempt(work.path(), "bob", "j_1", false)?;
    attempt(work.path(), "eve", "j_2", true)?;
    assert!(on_day_100(work.path(), 0), "all that could go is not enough");
    assert_eq!(here(work.path(), &people), ["bob"]);
    Ok(())
}

#[test]
fn where_it_cannot_be_told_who_has_jobs_all_stay() -> io::Result<()> {
    let work = homes(&[("bob", 1)])?;
    fs::write(attempt(work.path(), "eve", "j_1", false)?.join("spec.json"), "{")?;
    assert!(on_day_100(work.path(), 0));
    assert_eq!(here(work.path(), &["bob"]), ["bob"]);
    Ok(())
}

#[test]
fn a_job_that_came_after_the_look_keeps_its_home() -> io::Result<()> {
    let work = homes(&[("bob", 1)])?;
    let found = idle(work.path());
    attempt(work.path(), "bob", "j_1", false)?;
    let away = work.path().join("away");
    assert!(found.len() == 1 && !take_away(work.path(), &found[0], &away)?);
    assert_eq!(here(work.path(), &["bob"]), ["bob"]);
    Ok(())
}
