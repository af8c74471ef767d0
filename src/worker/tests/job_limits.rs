//! A job in a control group with limits, where this machine delegates the controllers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use crate::worker::cgroup::{self, JOB_CGROUP_PREFIX};
use crate::worker::clock;
use crate::worker::limits::cgroups::AGENT_CGROUP;

/// A group as systemd creates it for the service, or why not.
fn create_delegated_cgroup() -> Result<PathBuf, String> {
    let own_group = cgroup::own_cgroup(None).ok_or("cgroup v2 is not available")?;
    let delegates_limits = |group: &&Path| {
        let words = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        ["memory", "pids"].iter().all(|name| words.split_ascii_whitespace().any(|word| word == *name))
    };
    let parent = own_group
        .ancestors()
        .find(delegates_limits)
        .ok_or("no parent cgroup delegates memory and pids (does cgroup v1 have them?)")?;
    let unique = clock::random_secret().map_err(|error| error.to_string())?;
    let base = parent.join(format!("simpletuner-test-{}", &unique[..8]));
    fs::create_dir(&base).and_then(|()| fs::create_dir(base.join(AGENT_CGROUP))).map_err(|error| error.to_string())?;
    Ok(base)
}

/// Waits until the supervisors have removed their groups and exited, and removes this one.
async fn remove_when_unused(base: &Path) {
    let job_cgroups = || -> io::Result<usize> {
        let names = fs::read_dir(base)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        Ok(names.collect::<io::Result<Vec<_>>>()?.iter().filter(|name| name.starts_with(JOB_CGROUP_PREFIX)).count())
    };
    wait_until("no group of a job", || (job_cgroups().ok()? == 0).then_some(())).await;
    wait_until("the group to be empty", || {
        // Only an empty group can be removed.
        let _ = fs::remove_dir(base.join(AGENT_CGROUP));
        fs::remove_dir(base).ok()
    })
    .await;
}

#[tokio::test]
async fn job_over_its_memory_limit_is_killed_alone() -> io::Result<()> {
    let base = match create_delegated_cgroup() {
        Ok(base) => base,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let enter_group = format!("echo 0 > '{}/cgroup.procs' && exec \"$@\"", base.join(AGENT_CGROUP).display());
    let program = "print('on', flush=True)\nall = [bytearray(1 << 20) for _ in range(4000)]\n";
    let host = TestHost::with_python(program)?.with_wrapper(&["sh", "-c", &enter_group, "sh"]);
    let host = host.flags(&["--persistent", "--job-memory", "256MiB", "--job-pids", "777"]);
    let fake = FakeOrchestrator::start().await?;
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("the registration", |shared| shared.registrations.last().cloned()).await;
    assert_eq!(
        registration["sandbox"]["limits"],
        json!({"memory_bytes": 256 << 20, "processes": 777}),
        "{registration}"
    );
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let record = host.supervisor("j_1", 1).await;
    let group = record.cgroup.unwrap_or_default();
    assert_eq!(group.parent(), Some(base.as_path()));
    let report = fake.wait_for_status("failed").await;
    assert!(
        report["error"]
            .as_str()
            .is_some_and(|error| error.contains("reached its memory limit on this worker, 256 MiB")),
        "{report}"
    );
    assert!(!group.exists(), "{} is left", group.display());
    // That job has ended, and the agent accepts the next one.
    fake.offer("j_2", 1, &json!({"config.json": "{}"}));
    host.supervisor("j_2", 1).await;
    agent.kill().await?;
    drop(host);
    remove_when_unused(&base).await;
    Ok(())
}

#[tokio::test]
async fn fork_bomb_is_limited() -> io::Result<()> {
    let base = match create_delegated_cgroup() {
        Ok(base) => base,
        Err(reason) => {
            println!("skipped: {reason}");
            return Ok(());
        }
    };
    let enter_group = format!("echo 0 > '{}/cgroup.procs' && exec \"$@\"", base.join(AGENT_CGROUP).display());
    let program = "import os, time\ncount = 0\ntry:\n    while count < 1000:\n        if os.fork() == 0: time.sleep(1000)\n        \
                   count += 1\nexcept OSError as error: print(count, error.errno, flush=True)\n";
    let host = TestHost::with_python(program)?.with_wrapper(&["sh", "-c", &enter_group, "sh"]);
    let host = host.flags(&["--persistent", "--job-pids", "64"]);
    let fake = FakeOrchestrator::start().await?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("completed").await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    let count: Option<u32> = log.trim().strip_suffix(" 11").and_then(|count| count.parse().ok());
    assert!(count.is_some_and(|count| (1..64).contains(&count)), "{log}");
    agent.kill().await?;
    drop(host);
    remove_when_unused(&base).await;
    Ok(())
}
