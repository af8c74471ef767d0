//! The agent as the service that is shipped, under a systemd that is process 1 of a machine.

use std::fs;

use serde_json::json;

use crate::harness::machine::Machine;
use crate::harness::{Fleet, Host, trainers, until};

/// A fleet with one machine, whose agent is up.
async fn up(trainer: &str) -> Option<(Fleet, Host, Machine)> {
    let fleet = Fleet::start().await;
    let host = fleet.host("serviced").await;
    let machine = Machine::boot(&fleet, &host, trainer).await?;
    machine.agent("start").await;
    Some((fleet, host, machine))
}

async fn assert_done_once(fleet: &Fleet, job: &str) {
    let done = fleet.api.until_job(job, "completed").await;
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(fleet.api.log(job).await, trainers::THROUGH);
}

#[tokio::test]
async fn a_service_is_up_once_it_is_registered_and_its_token_is_with_no_process() {
    let Some((fleet, host, machine)) = up(trainers::AT_THE_GATE).await else { return };
    assert_eq!(machine.shows("ActiveState").await, "active", "starting ends with being up");
    let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
    assert!(worker["last_heartbeat"].is_string(), "up is who is registered: {worker:#}");
    machine.until_shows("StatusText", "connected, idle").await;
    let job = fleet.running().await;
    machine.until_shows("StatusText", &format!("connected, busy with {job}")).await;

    let processes = machine.processes();
    assert_eq!(processes.len(), 3, "agent, supervisor, trainer");
    for process in processes {
        for what in ["environ", "cmdline"] {
            let shown = fs::read(format!("/proc/{process}/{what}")).expect("a process");
            let shown = String::from_utf8_lossy(&shown).into_owned();
            assert!(shown.len() > 10, "nothing was read");
            assert!(!shown.contains(&host.token), "{what} of {process} has the token: {shown}");
        }
    }
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
    machine.until_shows("StatusText", "connected, idle").await;
}

#[tokio::test]
async fn what_a_service_runs_goes_on_when_it_is_restarted_killed_or_hangs() {
    let Some((fleet, _host, machine)) = up(trainers::AT_THE_GATE).await else { return };
    machine.set("RestartSec=1\nWatchdogSec=3").await;
    let job = fleet.running().await;
    let busy = format!("connected, busy with {job}");
    machine.agent("restart").await;
    machine.until_shows("StatusText", &busy).await;
    for (signal, times) in [("KILL", "1"), ("STOP", "2")] {
        machine.signal(signal).await;
        machine.until_shows("NRestarts", times).await;
        machine.until_shows("ActiveState", "active").await;
        machine.until_shows("StatusText", &busy).await;
    }
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
}

#[tokio::test]
async fn a_stopped_service_leaves_its_trainer_to_the_next_start() {
    let Some((fleet, host, machine)) = up(trainers::AT_THE_GATE).await else { return };
    let job = fleet.running().await;
    machine.agent("stop").await;
    fleet.api.until_worker(&host.worker, "offline").await;
    assert_eq!(machine.shows("Result").await, "success", "told to end is no failure");
    assert_eq!(machine.processes().len(), 2, "supervisor and trainer");
    machine.open_gate();
    until("the trainer's end", async || machine.processes().is_empty().then_some(())).await;
    machine.agent("start").await;
    assert_done_once(&fleet, &job).await;
}

/// A stop may take longer than systemd gives a service by itself, as long as the agent says that it goes on.
const SHORT: &str =
    "TimeoutStopSec=2\nExecStart=\nExecStart=/usr/local/bin/simpletuner-worker --worker-token-file %d/worker-token";

#[tokio::test]
async fn a_service_that_gives_back_what_it_runs_has_the_time_for_it() {
    let Some((fleet, _host, machine)) = up(trainers::STUBBORN_FAMILY).await else { return };
    machine.set(&format!("{SHORT} --on-stop requeue --stop-grace 6")).await;
    machine.agent("restart").await;
    let job = fleet.running().await;
    fleet.api.until_log(&job, "child\n".len() as u64).await;
    machine.agent("stop").await;
    assert_eq!(machine.shows("Result").await, "success");
    assert_eq!(machine.processes(), Vec::<i32>::new());
    let given_back = fleet.api.job(&job).await;
    assert_eq!(given_back["status"], "queued", "{given_back:#}");
    assert_eq!(given_back["attempts"][0]["error"], "the worker was asked to leave", "{given_back:#}");
}

#[tokio::test]
async fn a_service_that_finishes_what_it_runs_has_the_time_for_it() {
    let Some((fleet, _host, machine)) = up(trainers::AT_THE_GATE).await else { return };
    machine.set(&format!("{SHORT} --on-stop finish")).await;
    machine.agent("restart").await;
    let job = fleet.running().await;
    let stopped = machine.agent("stop");
    let meanwhile = async {
        machine.until_shows("ActiveState", "deactivating").await;
        // Longer than it would have without a word of the agent's.
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        assert_eq!(fleet.api.job(&job).await["status"], "running");
        machine.open_gate();
    };
    tokio::join!(stopped, meanwhile);
    assert_eq!(machine.shows("Result").await, "success");
    assert_done_once(&fleet, &job).await;
}

/// What trainers do that a service could be kept from.
const NEEDY: &str = r#"
import ctypes, mmap, multiprocessing, os, pathlib, socket, tempfile
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
cache = pathlib.Path.home() / ".cache" / "models"
cache.mkdir(parents=True)
(cache / "weights").write_bytes(b"1")
tempfile.TemporaryFile().write(b"1")
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [-1, -2]) == [1, 2]
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    socket.socket(family, socket.SOCK_DGRAM if family != socket.AF_NETLINK else socket.SOCK_RAW).close()
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
ctypes.CDLL(None).getpid()
assert {44, 105} <= set(os.getgroups()), os.getgroups()
print("has what it needs")
"#;

#[tokio::test]
async fn what_a_service_may_not_do_no_trainer_needs() {
    let Some((fleet, _host, machine)) = up(NEEDY).await else { return };
    let job = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "worker"})).await;
    fleet.api.until_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, "has what it needs\n");
    assert_eq!(machine.left(".cache/models/weights").as_deref(), Some("1"));
}
