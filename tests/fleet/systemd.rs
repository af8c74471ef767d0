//! The agent as the service that is shipped, under a systemd that is process 1 of a machine.

use std::fs;

use serde_json::{Value, json};

use crate::harness::machine::{Machine, is_this};
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

/// The service's command; what follows it is a flag more.
const COMMAND: &str = "ExecStart=\nExecStart=/usr/local/bin/simpletuner-worker --worker-token-file %d/worker-token";
/// A stop may take longer than systemd gives a service by itself, as long as the agent says that it goes on.
const SHORT: &str = "TimeoutStopSec=2";

#[tokio::test]
async fn a_service_that_gives_back_what_it_runs_has_the_time_for_it() {
    let Some((fleet, _host, machine)) = up(trainers::STUBBORN_FAMILY).await else { return };
    machine.set(&format!("{SHORT}\n{COMMAND} --on-stop requeue --stop-grace 6")).await;
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
    machine.set(&format!("{SHORT}\n{COMMAND} --on-stop finish")).await;
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
import ctypes, grp, mmap, multiprocessing, os, pathlib, socket, tempfile
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
assert {grp.getgrnam(name).gr_gid for name in ("video", "render")} <= set(os.getgroups()), os.getgroups()
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

/// How far this host can confine a job, as the agent has told it.
async fn sandbox(fleet: &Fleet, host: &Host) -> Value {
    fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await["sandbox"].clone()
}

/// Takes more memory than its job may have.
const GREEDY: &str = "print('begun', flush=True)\nall = [bytearray(1 << 20) for _ in range(4000)]\n";

#[tokio::test]
async fn a_job_of_a_service_that_takes_too_much_memory_ends_alone() {
    let Some((fleet, host, machine)) = up(GREEDY).await else { return };
    machine.set(&format!("{COMMAND} --job-memory 256MiB")).await;
    machine.agent("restart").await;
    let limits = sandbox(&fleet, &host).await["limits"].clone();
    if !is_this() && limits["memory_bytes"].is_null() {
        assert!(limits["why_not"].as_str().is_some_and(|why| !why.is_empty()), "{limits}");
        return eprintln!("not tested: memory can be limited by systemd 254 or later with cgroup v2: {limits}");
    }
    assert_eq!(limits["memory_bytes"], 256 << 20, "{limits}");
    let agent = machine.shows("MainPID").await;
    let job = fleet.api.submit("digits-quick").await;
    let failed = fleet.api.until_job(&job, "failed").await;
    assert!(failed.to_string().contains("reached its memory limit on this worker, 256 MiB"), "{failed:#}");
    machine.until_shows("StatusText", "connected, idle").await;
    assert_eq!(machine.shows("MainPID").await, agent, "the agent is the one that it was");
}

#[tokio::test]
async fn a_service_takes_up_its_confined_jobs_again() {
    if !is_this() {
        return eprintln!("not tested: a machine made for a test cannot make namespaces");
    }
    let Some((fleet, host, machine)) = up(trainers::AT_THE_GATE).await else { return };
    let meet = "--path meet=/home/simpletuner:rw --pass-env MEET";
    machine.set(&format!("Environment=MEET=/home/simpletuner\n{COMMAND} --sandbox-min full {meet}")).await;
    machine.agent("restart").await;
    assert_eq!(sandbox(&fleet, &host).await["least"], "full");
    let job = fleet.running().await;
    machine.agent("restart").await;
    machine.until_shows("StatusText", &format!("connected, busy with {job}")).await;
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
}

/// Keeps a program from user namespaces, as Ubuntu does with each that has no profile.
const NO_NAMESPACES: &str = "abi <abi/4.0>,\n
    profile simpletuner-worker /usr/local/bin/simpletuner-worker {\n allow all,\n deny userns,\n}\n";

#[tokio::test]
async fn the_profile_for_apparmor_lets_a_service_make_namespaces() {
    if !is_this() {
        return eprintln!("not tested: profiles are loaded for a whole machine");
    }
    let Some((fleet, host, machine)) = up(trainers::SILENT_AT_THE_GATE).await else { return };
    machine.confine(NO_NAMESPACES).await;
    machine.agent("restart").await;
    let kept = sandbox(&fleet, &host).await;
    assert_eq!(kept["most"], "files", "{kept}");
    assert!(kept["why_not_more"].as_str().is_some_and(|why| why.contains("AppArmor")), "{kept}");
    machine.confine(include_str!("../../deploy/apparmor/simpletuner-worker")).await;
    machine.agent("restart").await;
    let let_in = sandbox(&fleet, &host).await;
    assert_eq!(let_in["most"], "full", "{let_in}");
}
