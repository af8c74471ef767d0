//! The agent with the shipped unit file, under a systemd that is process 1 of a machine.

use std::fs;

use serde_json::{Value, json};

use crate::harness::machine::{SystemdMachine, may_use_this_machine};
use crate::harness::{TestFleet, WorkerHost, trainers, wait_until};

/// A fleet with one machine whose agent is connected.
async fn start_machine(trainer: &str) -> Option<(TestFleet, WorkerHost, SystemdMachine)> {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("serviced").await;
    let machine = SystemdMachine::boot(&fleet, &host, trainer).await?;
    machine.control_agent("start").await;
    Some((fleet, host, machine))
}

async fn assert_done_once(fleet: &TestFleet, job: &str) {
    let done = fleet.api.wait_for_job(job, "completed").await;
    assert_eq!(done["attempts"].as_array().map(Vec::len), Some(1), "{done:#}");
    assert_eq!(fleet.api.log(job).await, trainers::AT_THE_GATE_OUTPUT);
}

#[tokio::test]
async fn service_is_ready_after_registration_and_hides_its_token() {
    let Some((fleet, host, machine)) = start_machine(trainers::AT_THE_GATE).await else { return };
    assert_eq!(machine.property("ActiveState").await, "active", "a started service is active");
    let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
    assert!(worker["last_heartbeat"].is_string(), "an active agent is registered: {worker:#}");
    machine.wait_for_property("StatusText", "connected, idle").await;
    let job = fleet.submit_running_job().await;
    machine.wait_for_property("StatusText", &format!("connected, busy with {job}")).await;

    let processes = machine.processes();
    assert_eq!(processes.len(), 3, "agent, supervisor, trainer");
    for process in processes {
        for file in ["environ", "cmdline"] {
            let content = fs::read(format!("/proc/{process}/{file}")).expect("a process");
            let content = String::from_utf8_lossy(&content).into_owned();
            assert!(content.len() > 10, "nothing was read");
            assert!(!content.contains(&host.token), "{file} of {process} has the token: {content}");
        }
    }
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
    machine.wait_for_property("StatusText", "connected, idle").await;
}

#[tokio::test]
async fn service_jobs_survive_restart_kill_and_hang() {
    let Some((fleet, _host, machine)) = start_machine(trainers::AT_THE_GATE).await else { return };
    machine.write_settings("RestartSec=1\nWatchdogSec=3").await;
    let job = fleet.submit_running_job().await;
    let busy = format!("connected, busy with {job}");
    machine.control_agent("restart").await;
    machine.wait_for_property("StatusText", &busy).await;
    for (signal, times) in [("KILL", "1"), ("STOP", "2")] {
        machine.signal(signal).await;
        machine.wait_for_property("NRestarts", times).await;
        machine.wait_for_property("ActiveState", "active").await;
        machine.wait_for_property("StatusText", &busy).await;
    }
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
}

#[tokio::test]
async fn a_stopped_service_leaves_its_trainer_to_the_next_start() {
    let Some((fleet, host, machine)) = start_machine(trainers::AT_THE_GATE).await else { return };
    let job = fleet.submit_running_job().await;
    machine.control_agent("stop").await;
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    assert_eq!(machine.property("Result").await, "success", "a requested stop is no failure");
    assert_eq!(machine.processes().len(), 2, "supervisor and trainer");
    machine.open_gate();
    wait_until("the trainer's end", async || machine.processes().is_empty().then_some(())).await;
    machine.control_agent("start").await;
    assert_done_once(&fleet, &job).await;
}

/// The service's command, to which flags are appended.
const COMMAND: &str = "ExecStart=\nExecStart=/usr/local/bin/simpletuner-worker --worker-token-file %d/worker-token";
/// A stop may take longer than this while the agent extends the timeout.
const SHORT_STOP_TIMEOUT: &str = "TimeoutStopSec=2";

#[tokio::test]
async fn service_has_time_to_return_its_jobs() {
    let Some((fleet, _host, machine)) = start_machine(trainers::IGNORES_SIGTERM).await else { return };
    machine.write_settings(&format!("{SHORT_STOP_TIMEOUT}\n{COMMAND} --on-stop requeue --stop-grace 6")).await;
    machine.control_agent("restart").await;
    let job = fleet.submit_running_job().await;
    fleet.api.wait_for_log(&job, "child\n".len() as u64).await;
    machine.control_agent("stop").await;
    assert_eq!(machine.property("Result").await, "success");
    wait_until("the supervisor's end", async || machine.processes().is_empty().then_some(())).await;
    let requeued = fleet.api.job(&job).await;
    assert_eq!(requeued["status"], "queued", "{requeued:#}");
    assert_eq!(requeued["attempts"][0]["error"], "the worker was stopped", "{requeued:#}");
}

#[tokio::test]
async fn service_has_time_to_finish_its_jobs() {
    let Some((fleet, _host, machine)) = start_machine(trainers::AT_THE_GATE).await else { return };
    machine.write_settings(&format!("{SHORT_STOP_TIMEOUT}\n{COMMAND} --on-stop finish")).await;
    machine.control_agent("restart").await;
    let job = fleet.submit_running_job().await;
    let stop = machine.control_agent("stop");
    let finish_job = async {
        machine.wait_for_property("ActiveState", "deactivating").await;
        // Longer than without the agent's extension.
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        assert_eq!(fleet.api.job(&job).await["status"], "running");
        machine.open_gate();
    };
    tokio::join!(stop, finish_job);
    assert_eq!(machine.property("Result").await, "success");
    assert_done_once(&fleet, &job).await;
}

/// A trainer that needs what a service might be denied.
const DEMANDING_TRAINER: &str = r#"
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
async fn service_restrictions_do_not_affect_trainers() {
    let Some((fleet, _host, machine)) = start_machine(DEMANDING_TRAINER).await else { return };
    let job = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "worker"})).await;
    fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, "has what it needs\n");
    assert_eq!(machine.trainer_file(".cache/models/weights").as_deref(), Some("1"));
}

/// Returns the sandbox that this host supports, as reported by the agent.
async fn sandbox(fleet: &TestFleet, host: &WorkerHost) -> Value {
    fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await["sandbox"].clone()
}

/// Allocates more memory than its job may have.
const LARGE_MEMORY_TRAINER: &str = "print('begun', flush=True)\nall = [bytearray(1 << 20) for _ in range(4000)]\n";

#[tokio::test]
async fn job_over_its_memory_limit_ends_alone() {
    let Some((fleet, host, machine)) = start_machine(LARGE_MEMORY_TRAINER).await else { return };
    machine.write_settings(&format!("{COMMAND} --job-memory 256MiB")).await;
    machine.control_agent("restart").await;
    let limits = sandbox(&fleet, &host).await["limits"].clone();
    if !may_use_this_machine() && limits["memory_bytes"].is_null() {
        assert!(limits["why_not"].as_str().is_some_and(|why| !why.is_empty()), "{limits}");
        return eprintln!("not tested: memory can be limited by systemd 254 or later with cgroup v2: {limits}");
    }
    assert_eq!(limits["memory_bytes"], 256 << 20, "{limits}");
    let agent = machine.property("MainPID").await;
    let job = fleet.api.submit("digits-quick").await;
    let failed = fleet.api.wait_for_job(&job, "failed").await;
    assert!(failed.to_string().contains("reached its memory limit on this worker, 256 MiB"), "{failed:#}");
    machine.wait_for_property("StatusText", "connected, idle").await;
    assert_eq!(machine.property("MainPID").await, agent, "the agent was not restarted");
}

#[tokio::test]
async fn service_adopts_its_sandboxed_jobs() {
    if !may_use_this_machine() {
        return eprintln!("not tested: a machine of a test cannot create namespaces");
    }
    let Some((fleet, host, machine)) = start_machine(trainers::AT_THE_GATE).await else { return };
    let meet = "--path meet=/home/simpletuner:rw --pass-env MEET";
    machine.write_settings(&format!("Environment=MEET=/home/simpletuner\n{COMMAND} --sandbox-min full {meet}")).await;
    machine.control_agent("restart").await;
    assert_eq!(sandbox(&fleet, &host).await["least"], "full");
    let job = fleet.submit_running_job().await;
    machine.control_agent("restart").await;
    machine.wait_for_property("StatusText", &format!("connected, busy with {job}")).await;
    machine.open_gate();
    assert_done_once(&fleet, &job).await;
}

/// Denies user namespaces, as Ubuntu does for programs without a profile.
const NO_NAMESPACES: &str = "abi <abi/4.0>,\n
    profile simpletuner-worker /usr/local/bin/simpletuner-worker {\n allow all,\n deny userns,\n}\n";

#[tokio::test]
async fn apparmor_profile_allows_namespaces() {
    if !may_use_this_machine() {
        return eprintln!("not tested: profiles are loaded for a whole machine");
    }
    let Some((fleet, host, machine)) = start_machine(trainers::SILENT_AT_THE_GATE).await else { return };
    machine.load_apparmor_profile(NO_NAMESPACES).await;
    machine.control_agent("restart").await;
    let restricted = sandbox(&fleet, &host).await;
    assert_eq!(restricted["most"], "files", "{restricted}");
    assert!(restricted["why_not_more"].as_str().is_some_and(|why| why.contains("AppArmor")), "{restricted}");
    machine.load_apparmor_profile(include_str!("../../deploy/apparmor/simpletuner-worker")).await;
    machine.control_agent("restart").await;
    let sandbox_view = sandbox(&fleet, &host).await;
    assert_eq!(sandbox_view["most"], "full", "{sandbox_view}");
}
