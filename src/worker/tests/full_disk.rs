//! A disk with no room left: the end is still known, and said to be no fault of the job.

use std::io;

use serde_json::{Value, json};

use super::fake::Fake;
use super::host::{Host, may_mount, until};

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Writes checkpoints until the disk is full, and fails of it as Python does.
const FILLS: &str = "
import os
print('saving', flush=True)
with open('../output/weights', 'wb', buffering=0) as file:
    while file.write(b'x' * 1048576): pass
    while file.write(b'x' * 512): pass
    raise OSError(28, os.strerror(28))
";

#[tokio::test]
async fn a_trainer_that_fails_of_it_is_given_back() -> io::Result<()> {
    if !may_mount() {
        return Ok(());
    }
    let fake = Fake::start().await?;
    let host = Host::with_python(FILLS)?.on_disk_of("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.status("requeue").await;
    let error = report["error"].as_str().unwrap_or_default();
    assert!(error.contains("the worker's disk is full (") && error.contains(" bytes free for "), "{error}");
    assert!(error.contains("state/jobs/j_1/1") && error.contains("No space left on device"), "{error}");
    assert_eq!(report["exit_code"], 1);
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    assert!(log.starts_with("saving\nTraceback") && log.ends_with("No space left on device\n"), "{log}");
    assert_eq!(fake.words(), ["starting", "running", "requeue"]);
    agent.kill().await
}

#[tokio::test]
async fn a_trainer_that_fails_of_something_else_has_failed() -> io::Result<()> {
    if !may_mount() {
        return Ok(());
    }
    let fake = Fake::start().await?;
    let program = FILLS.replace("    raise OSError(28, os.strerror(28))\n", "");
    let program = program.replace("with open", "try:\n  file = open").replace(" as file:", "");
    let program = format!("{}\n", program.replace("    while", "  while"))
        + "except OSError: pass\nraise ValueError('no images')\n";
    let host = Host::with_python(&program)?.on_disk_of("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.ends_with("ValueError: no images")), "{report}");
    agent.kill().await
}

/// What fills the disk goes on living while the trainer's end has to be written down.
#[tokio::test]
async fn the_end_is_written_down_on_a_full_disk() -> io::Result<()> {
    if !may_mount() {
        return Ok(());
    }
    let fake = Fake::start().await?;
    let script = "dd if=/dev/zero of=../output/a bs=1M 2>/dev/null; dd if=/dev/zero of=../output/b bs=512 2>/dev/null; \
                  dd if=/dev/zero of=../output/c bs=1 count=1 2>/dev/null && echo there was room; echo done; exit 3";
    let host = Host::with_script(script)?.on_disk_of("96m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let report = fake.status("failed").await;
    assert_eq!(report["exit_code"], 3, "{report}");
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), "done\n");
    agent.kill().await
}

#[tokio::test]
async fn a_flood_of_output_leaves_room_for_checkpoints() -> io::Result<()> {
    if !may_mount() {
        return Ok(());
    }
    let fake = Fake::start().await?;
    fake.shared().no_logs = true;
    // 200 MB of output at up to 200 MB/s, then a checkpoint of 60 MiB: neither fits beside the other on 128 MiB. A disk in
    // memory can be filled between two looks, so the checkpoint waits for the room it is promised.
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
    let host = Host::with_python(program)?.on_disk_of("128m").flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let dir = host.attempt("j_1", 1);
    let seen = agent.sees(&dir.join("exit.json"))?;
    until("the end", || seen.exists().then_some(())).await;
    fake.shared().no_logs = false;
    fake.status("completed").await;
    {
        let shared = fake.shared();
        assert_eq!(shared.log.len(), 200 * (1 << 20) + 6);
        assert!(shared.log.ends_with(b"199\nsaved\n") && !shared.log.contains(&0));
        assert!(!shared.dropped.is_empty());
    }
    agent.kill().await
}
