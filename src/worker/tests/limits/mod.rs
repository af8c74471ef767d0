//! Limits of jobs, in directories that imitate the kernel's.

use std::fs;
use std::io;

use tempfile::TempDir;

use super::cgroups::{AGENT_CGROUP, AvailableControllers, OwnedCgroup};
use super::memory::lowest_limit;
use super::*;
use crate::worker::args::limits::{JobMemoryLimit, JobProcessLimit};

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
    let leaf = temp.path().join("w.service").join(AGENT_CGROUP);
    group(leaf.parent().unwrap_or(&leaf), procs, controllers)?;
    group(&leaf, "7\n", "")?;
    Ok((temp, leaf))
}

fn find(group: &Path, is_top: bool) -> Result<OwnedCgroup, String> {
    OwnedCgroup::find(group, is_top, |pid| [1, 7, 8].contains(&pid))
}

fn rejection_reason(group: &Path, is_top: bool) -> String {
    find(group, is_top).map_or_else(|error| error, |found| format!("found {found:?}"))
}

fn file(path: &Path, name: &str) -> String {
    fs::read_to_string(path.join(name)).unwrap_or_default()
}

#[test]
fn prepared_service_cgroup_is_used() -> io::Result<()> {
    let (_temp, leaf) = service("", "cpu memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf);
    let found = find(&leaf, false).map_err(io::Error::other)?;
    let available = found.available().map_err(io::Error::other)?;
    assert_eq!((found.base.as_path(), available), (base, AvailableControllers { memory: true, pids: true }));
    found.delegate_controllers(available).map_err(io::Error::other)?;
    assert_eq!(file(base, "cgroup.subtree_control"), "+memory +pids");
    assert_eq!(file(&leaf, "cgroup.procs"), "7\n", "no process had to move");
    // For the next agent it is already set.
    fs::write(base.join("cgroup.subtree_control"), "memory pids\n")?;
    found.delegate_controllers(available).map_err(io::Error::other)?;
    assert_eq!(file(base, "cgroup.subtree_control"), "memory pids\n");
    Ok(())
}

#[test]
fn processes_in_the_base_are_moved_first() -> io::Result<()> {
    let (_temp, leaf) = service("8\n", "memory pids")?;
    let found = find(&leaf, false).map_err(io::Error::other)?;
    found.delegate_controllers(AvailableControllers { memory: true, pids: true }).map_err(io::Error::other)?;
    assert_eq!(file(&leaf, "cgroup.procs"), "8");
    Ok(())
}

#[test]
fn leaf_is_created_in_a_container() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    group(temp.path(), "7\n", "pids")?;
    let found = find(temp.path(), true).map_err(io::Error::other)?;
    let available = found.available().map_err(io::Error::other)?;
    assert!(available.missing_reason(temp.path()).is_some_and(|error| error.contains("memory")));
    found.delegate_controllers(available).map_err(io::Error::other)?;
    assert_eq!(file(&temp.path().join(AGENT_CGROUP), "cgroup.procs"), "7");
    assert_eq!(file(temp.path(), "cgroup.subtree_control"), "+pids");
    // The next agent starts in the leaf.
    assert_eq!(find(&temp.path().join(AGENT_CGROUP), false).map(|found| found.base).as_deref(), Ok(temp.path()));
    Ok(())
}

#[test]
fn foreign_cgroups_are_left_alone() -> io::Result<()> {
    let (_temp, leaf) = service("", "memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf).to_owned();
    // As an older systemd starts it: the next agent could not enter the group again.
    assert!(rejection_reason(&base, false).contains("DelegateSubgroup=agent"), "{}", rejection_reason(&base, false));
    fs::write(base.join("cgroup.procs"), "7\n4711\n")?;
    assert!(rejection_reason(&leaf, false).contains("process 4711"), "{}", rejection_reason(&leaf, false));
    assert!(rejection_reason(&base, true).contains("process 4711"), "{}", rejection_reason(&base, true));
    fs::write(base.join("cgroup.procs"), "")?;
    group(&base.join("st-j_1-1-abc"), "", "")?;
    assert!(find(&leaf, false).is_ok());
    group(&base.join("other.service"), "", "")?;
    assert!(rejection_reason(&leaf, false).contains("other.service"), "{}", rejection_reason(&leaf, false));
    fs::remove_dir_all(base.join("other.service"))?;
    // The host's root group has no such file.
    fs::remove_file(base.join("cgroup.type"))?;
    assert!(rejection_reason(&leaf, false).contains("root control group"), "{}", rejection_reason(&leaf, false));
    assert_eq!(file(&base, "cgroup.subtree_control"), "");
    Ok(())
}

#[test]
fn missing_controllers_mean_no_limits() -> io::Result<()> {
    let (_temp, leaf) = service("", "cpu hugetlb")?;
    let available = find(&leaf, false).and_then(|found| found.available());
    assert!(available.is_err_and(|error| error.contains("memory and pids")));
    Ok(())
}

#[test]
fn jobs_share_memory_equally_minus_a_reserve() {
    for (requested, total, jobs, expected) in [
        (JobMemoryLimit::EqualShare, Some(1_024 * GIB), 1, Some(1_020 * GIB)),
        (JobMemoryLimit::EqualShare, Some(1_024 * GIB), 8, Some(1_020 * GIB / 8)),
        (JobMemoryLimit::EqualShare, Some(4 * GIB), 1, Some(4 * GIB - GIB / 2)),
        (JobMemoryLimit::EqualShare, Some(GIB / 2), 0, Some(GIB / 4)),
        (JobMemoryLimit::EqualShare, None, 1, None),
        (JobMemoryLimit::Unlimited, Some(GIB), 1, None),
        (JobMemoryLimit::Bytes(3), Some(GIB), 8, Some(3)),
    ] {
        assert_eq!(requested.per_job_bytes(total, jobs), expected, "{requested:?} of {total:?} for {jobs}");
    }
}

#[test]
fn limits_of_parent_cgroups_apply() -> io::Result<()> {
    let (temp, leaf) = service("", "")?;
    fs::write(temp.path().join("memory.max"), "5\n")?;
    assert_eq!(lowest_limit(&leaf), None, "the parent is no control group");
    fs::write(leaf.join("memory.max"), "max\n")?;
    assert_eq!(lowest_limit(&leaf), None);
    group(temp.path(), "", "")?;
    fs::write(leaf.parent().unwrap_or(&leaf).join("memory.max"), "7\n")?;
    assert_eq!(lowest_limit(&leaf), Some(5));
    Ok(())
}

#[test]
fn reported_limits_are_those_set() -> io::Result<()> {
    let (_temp, leaf) = service("", "memory pids")?;
    let base = leaf.parent().unwrap_or(&leaf).to_owned();
    let requested = RequestedLimits { memory: JobMemoryLimit::Bytes(GIB), processes: JobProcessLimit(Some(100)) };
    let controllers = AvailableControllers { memory: true, pids: true };
    let host = HostLimits::from_inspection(Ok((base.clone(), controllers)), requested, 1);
    assert_eq!(host.to_report(), JobLimits { memory_bytes: Some(GIB), processes: Some(100), why_not: None });
    let host =
        HostLimits::from_inspection(Ok((base, AvailableControllers { memory: false, ..controllers })), requested, 1)
            .to_report();
    assert_eq!((host.memory_bytes, host.processes, host.why_not.is_some()), (None, Some(100), true));
    let host = HostLimits::from_inspection(Err("why".to_owned()), requested, 1);
    assert_eq!((host.job_cgroup(), host.to_report().why_not.as_deref()), (None, Some("why")));
    Ok(())
}

#[test]
fn agent_processes_are_found() {
    let own_pid = i32::try_from(std::process::id()).unwrap_or_default();
    let temp = tempfile::tempdir().expect("a directory");
    let found = agent_processes(temp.path());
    assert!(found.contains(&own_pid) && !found.contains(&nix::unistd::getppid().as_raw()), "{found:?}");
}
