//! A full disk: the exit is still recorded, and does not count as the job's fault.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, can_mount, wait_until};

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes checkpoints until the disk is full, and fails as Python does.
const FILLS: &str = "
import os
print('saving', flush=True)
with open('../output/weights', 'wb', buffering=0) as file:
    while file.write(b'x' * 1048576): pass
    while file.write(b'x' * 512): pass
    raise OSError(28, os.strerror(28))
";

#[tokio::test]
async fn trainer_failed_on_a_full_disk_is_requeued() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(FILLS)?.with_disk_size("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("the worker's disk is full (") && error.contains(" bytes free for "), "{error}");
    assert!(error.contains("state/jobs/j_1/1") && error.contains("No space left on device"), "{error}");
    assert_eq!(report["exit_code"], 1);
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(log.starts_with("saving\nTraceback") && log.ends_with("No space left on device\n"), "{log}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"]);
    agent.kill().await
}

#[tokio::test]
async fn other_failure_on_a_full_disk_is_a_failure() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let program = FILLS.replace("    raise OSError(28, os.strerror(28))\n", "");
    let program = program.replace("with open", "try:\n  file = open").replace(" as file:", "");
    let program = format!("{}\n", program.replace("    while", "  while"))
        + "except OSError: pass\nraise ValueError('no images')\n";
    let host = TestHost::with_python(&program)?.with_disk_size("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.ends_with("ValueError: no images")), "{report}");
    agent.kill().await
}

/// A process that fills the disk survives while the trainer's exit must be recorded.
#[tokio::test]
async fn exit_is_recorded_on_a_full_disk() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let script = "dd if=/dev/zero of=../output/a bs=1M 2>/dev/null; dd if=/dev/zero of=../output/b bs=512 2>/dev/null; \
                  dd if=/dev/zero of=../output/c bs=1 count=1 2>/dev/null && echo space was left; echo done; exit 3";
    let host = TestHost::with_script(script)?.with_disk_size("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.wait_for_status("failed").await;
    assert_eq!(report["exit_code"], 3, "{report}");
    assert_eq!(String::from_utf8_lossy(&fake.state().log), "done\n");
    agent.kill().await
}

#[tokio::test]
async fn output_flood_leaves_space_for_checkpoints() -> io::Result<()> {
    if !can_mount() {
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    fake.state().rejects_logs = true;
    // 200 MB of output at up to 200 MB/s, then a checkpoint of 60 MiB: together they do not fit on 128 MiB. A disk in
    // memory can be filled between two checks, so the checkpoint waits for the guaranteed space.
    let program = "
import os, time
for i in range(200):
    os.write(1, b'%063d\\n' % i * 16384)
    time.sleep(0.005)
def free():
    disk = os.statvfs('.')
    return disk.f_bavail * disk.f_frsize
while free() < 64 << 20: time.sleep(0.01)
with open('../output/weights', 'wb', buffering=0) as file:
    for i in range(60): file.write(b'x' * 1048576)
print('saved', flush=True)
";
    let host = TestHost::with_python(program)?.with_disk_size("128m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    let exit_file = agent.path_seen_by_agent(&dir.join("exit.json"))?;
    wait_until("the end", || exit_file.exists().then_some(())).await;
    fake.state().rejects_logs = false;
    fake.wait_for_status("completed").await;
    {
        let shared = fake.state();
        assert_eq!(shared.log.len(), 200 * (1 << 20) + 6);
        assert!(shared.log.ends_with(b"199\nsaved\n") && !shared.log.contains(&0));
        assert!(!shared.dropped.is_empty());
    }
    agent.kill().await
}
