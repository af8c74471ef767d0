//! Control groups: found in recorded files, and created where this machine allows it.

use std::process::{Child, Command, Stdio};

use super::*;
use crate::worker::process::ProcId;

const HYBRID: &str = "\
29 1 0:27 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
33 29 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory
34 29 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:16 - cgroup cgroup rw,cpu,cpuacct
41 29 0:38 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate
";
const UNIFIED: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const MOUNTED_BELOW: &str = "800 790 0:30 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n";

#[test]
fn own_cgroup_is_found() {
    let hybrid = "4:memory:/a\n2:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/system.slice/w.service\n";
    for (mounts, groups, controller, expected) in [
        (HYBRID, hybrid, None, Some("/sys/fs/cgroup/unified/system.slice/w.service")),
        (HYBRID, hybrid, Some("memory"), Some("/sys/fs/cgroup/memory/a")),
        (HYBRID, hybrid, Some("cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct/b")),
        (HYBRID, hybrid, Some("pids"), None),
        (UNIFIED, "0::/\n", None, Some("/sys/fs/cgroup/")),
        (UNIFIED, "0::/user.slice/x:y\n", None, Some("/sys/fs/cgroup/user.slice/x:y")),
        (MOUNTED_BELOW, "0::/docker/abc/d\n", None, Some("/sys/fs/cgroup/d")),
        (MOUNTED_BELOW, "0::/elsewhere\n", None, None),
        (UNIFIED, "0::/../outside\n", None, None),
        (UNIFIED, "", None, None),
        ("", "0::/\n", None, None),
    ] {
        assert_eq!(
            find_cgroup(mounts, groups, controller).as_deref(),
            expected.map(Path::new),
            "{groups} {controller:?}"
        );
    }
}

#[test]
fn kernel_counters_are_parsed() {
    let text = "low 0\noom 3\noom_kill 2\noom_group_kill 1\n";
    assert_eq!(parse_counter(text, "oom_kill"), Some(2));
    assert_eq!(parse_counter(text, "oom"), Some(3));
    assert_eq!(parse_counter(text, "populated"), None);
}

/// A group on this machine, or `None` with the reason printed.
fn create_real_cgroup() -> Option<Cgroup> {
    own_cgroup(None)
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        .and_then(|parent| Cgroup::create_below(&parent))
        .inspect_err(|error| println!("skipped, because no cgroup can be created here: {error}"))
        .ok()
}

/// Starts a shell in this group, whose child, in its own session, prints its PID. (The test itself does not enter the
/// group, because other tests start processes at the same time.)
fn spawn_parent_and_child(group: &Cgroup) -> io::Result<(Child, ProcId)> {
    use std::io::{BufRead, BufReader, Write};
    let script = "read go; setsid -f sh -c 'echo $$; exec sleep 1000'; exec sleep 1000";
    let mut command = Command::new("sh");
    let mut shell = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    fs::write(group.path().join("cgroup.procs"), shell.id().to_string())?;
    shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(b"go\n")?;
    let mut line = String::new();
    BufReader::new(shell.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
    let child = line.trim().parse().ok().and_then(ProcId::from_pid).ok_or(io::ErrorKind::NotFound)?;
    Ok((shell, child))
}

#[test]
fn processes_started_in_a_cgroup_are_killed_with_it() -> io::Result<()> {
    let Some(group) = create_real_cgroup() else { return Ok(()) };
    let name = group.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    assert!(name.starts_with("st-") && group.is_empty(), "{name}");
    let (mut shell, child) = spawn_parent_and_child(&group)?;
    assert!(!group.is_empty());
    group.kill()?;
    let status = shell.wait()?;
    assert!(!status.success());
    while !group.is_empty() {
        std::thread::yield_now();
    }
    assert!(!child.is_alive());
    group.remove();
    assert!(!group.path().exists() && group.is_empty(), "a missing group is empty");
    Ok(())
}

#[test]
fn limits_are_set_before_processes_start() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let entered = EnteredCgroup { group: Cgroup::from_path(temp.path()), outside: temp.path().join("outside") };
    let limits = JobCgroup { base: temp.path().to_owned(), memory: Some(1 << 30), processes: None };
    let file_text = |name: &str| fs::read_to_string(temp.path().join(name)).unwrap_or_default();
    entered.apply_limits(&limits);
    assert_eq!((file_text("memory.max"), file_text("memory.oom.group")), ("1073741824".to_owned(), String::new()));
    assert_eq!(file_text("pids.max"), "");
    entered.apply_limits(&JobCgroup { memory: None, processes: Some(9), ..limits });
    assert_eq!(file_text("pids.max"), "9");
    // Not earlier, because it would also end the process that has started the trainer.
    fs::create_dir(&entered.outside)?;
    entered.leave()?;
    assert_eq!(file_text("memory.oom.group"), "1");
    Ok(())
}

#[test]
fn cgroup_names_are_unique() -> io::Result<()> {
    let Some(first) = create_real_cgroup() else { return Ok(()) };
    let second = create_real_cgroup().ok_or(io::ErrorKind::AlreadyExists)?;
    assert_ne!(first.path(), second.path());
    first.remove();
    second.remove();
    Ok(())
}

#[test]
fn only_unused_groups_of_jobs_are_removed() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    for name in ["st-unused", "st-used/cgroup.procs", "other"] {
        fs::create_dir_all(temp.path().join(name))?;
    }
    remove_unused(temp.path());
    let mut left: Vec<_> = fs::read_dir(temp.path())?.flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["other", "st-used"]);
    remove_unused(&temp.path().join("missing"));
    Ok(())
}
