//! Every cause stops a job in the same way, and no process of it is left.

use std::io;
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, first_line, process_by_inner_pid, wait_until};
use crate::worker::files::SupervisorRecord;
use crate::worker::process::{self, ProcId};

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Ignores the signal, and prints its stop variables.
const PRINTS_STOP_VARIABLES: &str = "
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
env = lambda name: os.environ.get(name)
print(json.dumps({'grace': env('SIMPLETUNER_STOP_GRACE_SECONDS'), 'deadline': env('SIMPLETUNER_DEADLINE'), 'now': time.time()}), flush=True)
while not os.path.exists(env('SIMPLETUNER_STOP_FILE')): time.sleep(0.01)
print(json.dumps({'stop_file': json.load(open(env('SIMPLETUNER_STOP_FILE'))), 'now': time.time()}), flush=True)
time.sleep(1000)
";

/// The lines of the log, which are JSON.
fn lines(fake: &FakeOrchestrator) -> Vec<Value> {
    String::from_utf8_lossy(&fake.state().log).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn stop_file_has_cause_and_deadline() -> io::Result<()> {
    for (reason, cause, grace, status) in
        [("cancelled", "cancelled", 2, "cancelled"), ("drained", "requeue", 2, "requeue")]
    {
        let fake = FakeOrchestrator::start().await?;
        fake.state().offer_extra = json!({"max_runtime_seconds": 600});
        let host = TestHost::with_python(PRINTS_STOP_VARIABLES)?.flags(&["--persistent", "--stop-grace", "2"]);
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &config());
        fake.wait_until("the first line", |shared| shared.log.ends_with(b"\n").then_some(())).await;
        fake.stop("j_1", 1, reason);
        fake.wait_for_status(status).await;
        let output = lines(&fake);
        assert_eq!(output[0]["grace"], "2");
        let deadline: f64 = output[0]["deadline"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
        let seconds_left = deadline - output[0]["now"].as_f64().unwrap_or_default();
        assert!((590.0..=601.0).contains(&seconds_left), "{seconds_left}");
        let stop_file = &output[1]["stop_file"];
        assert_eq!((&stop_file["reason"], &stop_file["grace_seconds"]), (&json!(cause), &json!(grace)), "{stop_file}");
        let seconds_left =
            stop_file["deadline"].as_f64().unwrap_or_default() - output[1]["now"].as_f64().unwrap_or_default();
        assert!((0.0..=2.0).contains(&seconds_left), "{seconds_left}");
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn job_without_time_limit_has_no_deadline() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let agent = TestHost::with_script("env | grep -c SIMPLETUNER_DEADLINE; env | grep SIMPLETUNER_STOP_GRACE")?;
    let agent = agent.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.wait_for_exit().await?;
    assert_eq!(String::from_utf8_lossy(&fake.state().log), "0\nSIMPLETUNER_STOP_GRACE_SECONDS=30\n");
    Ok(())
}

/// A child that has left the trainer's group, session and environment by forking twice; its PID is printed.
const ESCAPED: &str = "setsid -f env -i /bin/sh -c 'echo $$; exec sleep 1000'; exec sleep 1000";

async fn wait_for_escaped_child(fake: &FakeOrchestrator, record: &SupervisorRecord) -> io::Result<ProcId> {
    let child = first_line(fake).await.trim().parse().map_err(io::Error::other)?;
    Ok(wait_until("the child", || process_by_inner_pid(record.trainer, child)).await)
}

#[tokio::test]
async fn escaped_processes_are_killed_too() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(ESCAPED)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let record = host.supervisor("j_1", 1).await;
    let child = wait_for_escaped_child(&fake, &record).await?;
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert!(!child.is_alive() && !record.trainer.is_alive());
    if let Some(group) = record.cgroup {
        assert!(!group.exists(), "{} is left", group.display());
    }
    agent.kill().await
}

#[tokio::test]
async fn killed_supervisor_leaves_no_processes_with_cgroups() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(ESCAPED)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let record = host.supervisor("j_1", 1).await;
    let child = wait_for_escaped_child(&fake, &record).await?;
    let Some(group) = &record.cgroup else {
        println!("skipped, because no cgroup can be created here");
        child.signal(Signal::SIGKILL);
        return agent.kill().await;
    };
    let read_pids = || {
        let text = std::fs::read_to_string(group.join("cgroup.procs")).ok()?;
        Some(text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<i32>>())
    };
    // The supervisor, which has started the trainer in the group, leaves it.
    let mut inside = wait_until("a group without the supervisor", || {
        read_pids().filter(|pids| !pids.contains(&record.supervisor.pid))
    })
    .await;
    inside.sort_unstable();
    let mut tree: Vec<i32> = process::descendants(record.trainer.pid).iter().map(|found| found.pid).collect();
    tree.push(record.trainer.pid);
    // A child that has left the trainer's tree: at level `full` none can leave it.
    if !tree.contains(&child.pid) {
        tree.push(child.pid);
    }
    tree.sort_unstable();
    assert_eq!(inside, tree, "only the trainer's processes");
    record.supervisor.signal(Signal::SIGKILL);
    fake.wait_for_status("failed").await;
    assert!(!child.is_alive(), "the child is alive after the end was reported");
    assert!(!group.exists(), "{} is left", group.display());
    agent.kill().await
}

/// The state after a supervisor was killed before it recorded its trainer.
#[tokio::test]
async fn second_supervisor_kills_leftovers_of_the_first() -> io::Result<()> {
    let host = TestHost::with_script("")?;
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.bundle_dir())?;
    std::fs::write(dir.bundle_dir().join("config.json"), "{}")?;
    std::fs::write(dir.join("supervisor.log"), "supervised by process 1\n")?;
    let mut leftover =
        std::process::Command::new("sleep").arg("1000").env("SIMPLETUNER_STOP_FILE", dir.stop_file()).spawn()?;
    let id = i32::try_from(leftover.id()).map_err(io::Error::other)?;
    let script = format!("kill -0 {id} && echo two at once; echo done");
    let spec = include_str!("v1/spec.json")
        .replace("\"trainer.sh\"", &json!(["-c", script]).to_string().replace(['[', ']'], ""));
    std::fs::write(dir.join("spec.json"), spec)?;
    // Reaped immediately, because otherwise its PID would still exist.
    let reaped = tokio::task::spawn_blocking(move || leftover.wait());
    host.supervise(&dir).await?;
    let status = reaped.await.map_err(io::Error::other)??;
    assert!(!status.success());
    let log = std::fs::read_to_string(dir.log_path())?;
    assert!(log.ends_with("done\n") && !log.contains("two at once"), "{log}");
    Ok(())
}

#[tokio::test]
async fn silent_trainer_is_killed_within_a_second() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let cancelled_at = Instant::now();
    fake.stop("j_1", 1, "cancelled");
    wait_until("the trainer's exit", || (!trainer.is_alive()).then_some(())).await;
    println!("a silent trainer was dead {:?} after its cancel", cancelled_at.elapsed());
    fake.wait_for_status("cancelled").await;
    println!("and reported {:?} after it", cancelled_at.elapsed());
    agent.kill().await
}
