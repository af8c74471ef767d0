//! Limits of jobs, on directories that look like the kernel's.

use std::fs;
use std::io;

use tempfile::TempDir;

use super::groups::{Available, LEAF, Owned};
use super::memory::{JobMemory, least};
use super::*;

const GIB: u64 = 1 << 30;

/// A group like the kernel's.
fn group(path: &Path, procs: &str, controllers: &str) -> io::Result<()> {
    fs::create_dir_all(path)?;
    let files = [("type", "domain"), ("procs", procs), ("controllers", controllers), ("subtree_control", "")];
    files.iter().try_for_each(|(name, text)| fs::write(path.join(format!("cgroup.{name}")), text))
}

/// A service's group with the agent, process 7, in its leaf.
fn service(procs: &str, controllers: &str) -> io::Result<(TempDir, PathBuf)> {
    let temp = tempfile::tempdir()?;
    let leaf = temp.path().join("w.service").join(LEAF);
    group(leaf.parent().unwrap_or(&leaf), procs, controllers)?;
    group(&leaf, "7\n", "")?;
    Ok((temp, leaf))
}

fn find(own: &Path, is_top: bool) -> Result<Owned, String> {
    Owned::find(own, is_top, |pid| [1, 7, 8].contains(&pid))
}

fn why(own: &Path, is_top: bool) -> String {
    find(own, is_top).map_or_else(|why| why, |found| format!("found {found:?}"))
}

fn file(path: &Path, name: &str) -> String {
    fs::read_to_string(path.join(name)).unwrap_or_default()
}

#[test]
fn what_a_service_manager_has_prepared_is_used_as_it_is() -> io::Result<()> {
    let (_temp, leaf) = service("", "cpu memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf);
    let found = find(&leaf, false).map_err(io::Error::other)?;
    let available = found.available().map_err(io::Error::other)?;
    assert_eq!((found.base.as_path(), available), (base, Available { memory: true, pids: true }));
    found.take(available).map_err(io::Error::other)?;
    assert_eq!(file(base, "cgroup.subtree_control"), "+memory +pids");
    assert_eq!(file(&leaf, "cgroup.procs"), "7\n", "nobody had to move");
    // The next agent finds it done.
    fs::write(base.join("cgroup.subtree_control"), "memory pids\n")?;
    found.take(available).map_err(io::Error::other)?;
    assert_eq!(file(base, "cgroup.subtree_control"), "memory pids\n");
    Ok(())
}

#[test]
fn what_an_older_agent_has_left_in_the_base_is_moved_first() -> io::Result<()> {
    let (_temp, leaf) = service("8\n", "memory pids")?;
    let found = find(&leaf, false).map_err(io::Error::other)?;
    found.take(Available { memory: true, pids: true }).map_err(io::Error::other)?;
    assert_eq!(file(&leaf, "cgroup.procs"), "8");
    Ok(())
}

#[test]
fn in_a_container_the_leaf_is_made() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    group(temp.path(), "7\n", "pids")?;
    let found = find(temp.path(), true).map_err(io::Error::other)?;
    let available = found.available().map_err(io::Error::other)?;
    assert!(available.why_not(temp.path()).is_some_and(|why| why.contains("memory")));
    found.take(available).map_err(io::Error::other)?;
    assert_eq!(file(&temp.path().join(LEAF), "cgroup.procs"), "7");
    assert_eq!(file(temp.path(), "cgroup.subtree_control"), "+pids");
    // Its next agent is born in the leaf.
    assert_eq!(find(&temp.path().join(LEAF), false).map(|found| found.base).as_deref(), Ok(temp.path()));
    Ok(())
}

#[test]
fn what_is_not_the_agents_own_is_left_alone() -> io::Result<()> {
    let (_temp, leaf) = service("", "memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf).to_owned();
    // As an older systemd starts it: the next start could not enter the group again.
    assert!(why(&base, false).contains("DelegateSubgroup=agent"), "{}", why(&base, false));
    fs::write(base.join("cgroup.procs"), "7\n4711\n")?;
    assert!(why(&leaf, false).contains("process 4711"), "{}", why(&leaf, false));
    assert!(why(&base, true).contains("process 4711"), "{}", why(&base, true));
    fs::write(base.join("cgroup.procs"), "")?;
    group(&base.join("st-j_1-1-abc"), "", "")?;
    assert!(find(&leaf, false).is_ok());
    group(&base.join("other.service"), "", "")?;
    assert!(why(&leaf, false).contains("other.service"), "{}", why(&leaf, false));
    fs::remove_dir_all(base.join("other.service"))?;
    // The host's topmost group has no such file.
    fs::remove_file(base.join("cgroup.type"))?;
    assert!(why(&leaf, false).contains("topmost"), "{}", why(&leaf, false));
    assert_eq!(file(&base, "cgroup.subtree_control"), "");
    Ok(())
}

#[test]
fn without_controllers_there_are_no_limits() -> io::Result<()> {
    let (_temp, leaf) = service("", "cpu hugetlb")?;
    let none = find(&leaf, false).and_then(|found| found.available());
    assert!(none.is_err_and(|why| why.contains("memory and pids")));
    Ok(())
}

#[test]
fn each_job_has_an_equal_part_less_a_reserve() {
    for (wanted, there_is, jobs, expected) in [
        (JobMemory::Usual, Some(1_024 * GIB), 1, Some(1_020 * GIB)),
        (JobMemory::Usual, Some(1_024 * GIB), 8, Some(1_020 * GIB / 8)),
        (JobMemory::Usual, Some(4 * GIB), 1, Some(4 * GIB - GIB / 2)),
        (JobMemory::Usual, Some(GIB / 2), 0, Some(GIB / 4)),
        (JobMemory::Usual, None, 1, None),
        (JobMemory::Unlimited, Some(GIB), 1, None),
        (JobMemory::Bytes(3), Some(GIB), 8, Some(3)),
    ] {
        assert_eq!(wanted.of_each(there_is, jobs), expected, "{wanted:?} of {there_is:?} for {jobs}");
    }
}

#[test]
fn the_groups_above_count_up_to_the_hosts_own() -> io::Result<()> {
    let (temp, leaf) = service("", "")?;
    fs::write(temp.path().join("memory.max"), "5\n")?;
    assert_eq!(least(&leaf), None, "that one is no group");
    fs::write(leaf.join("memory.max"), "max\n")?;
    assert_eq!(least(&leaf), None);
    group(temp.path(), "", "")?;
    fs::write(leaf.parent().unwrap_or(&leaf).join("memory.max"), "7\n")?;
    assert_eq!(least(&leaf), Some(5));
    Ok(())
}

#[test]
fn what_is_told_is_what_is_set() -> io::Result<()> {
    let (_temp, leaf) = service("", "memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf).to_owned();
    let wanted = Wanted { memory: JobMemory::Bytes(GIB), processes: JobProcesses(Some(100)) };
    let both = Available { memory: true, pids: true };
    let host = Host::of(Ok((base.clone(), both)), wanted, 1);
    assert_eq!(host.reported(), JobLimits { memory_bytes: Some(GIB), processes: Some(100), why_not: None });
    let host = Host::of(Ok((base, Available { memory: false, ..both })), wanted, 1).reported();
    assert_eq!((host.memory_bytes, host.processes, host.why_not.is_some()), (None, Some(100), true));
    let host = Host::of(Err("why".to_owned()), wanted, 1);
    assert_eq!((host.place(), host.reported().why_not.as_deref()), (None, Some("why")));
    Ok(())
}

#[test]
fn own_processes_are_found() {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let temp = tempfile::tempdir().expect("a directory");
    let found = own_processes(temp.path());
    assert!(found.contains(&own) && !found.contains(&nix::unistd::getppid().as_raw()), "{found:?}");
}
