//! What a trainer can do to its host, its agent and concurrent jobs: test trainers try each known attack.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::geteuid;
use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{AgentProcess, TestHost, wait_until};
use crate::worker::files::AttemptState;
use crate::worker::sandbox::proc_files::kernel_is_protected;
use crate::worker::sandbox::users;

mod control;
mod devices;
mod modes;
mod orphans;
mod process_isolation;

mod next_agent;
mod other_sandboxes;
mod outside;

use outside::AttackTargets;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// A host with this minimum sandbox level.
fn sandboxed_host(level: &str, program: &str) -> io::Result<TestHost> {
    let mut host = TestHost::with_python(program)?.flags(&["--persistent"]);
    host.variables.push(("SIMPLETUNER_MAX_JOBS".to_owned(), "64".to_owned()));
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
    Ok(host)
}

/// Starts the agent with an open file that no trainer should inherit.
const WITH_OPEN_FILE: [&str; 4] = ["sh", "-c", "exec 9<\"$HOME/worker.env\"; exec \"$@\"", "sh"];

/// Runs a trainer with these trials on a host with everything they could reach. Returns the trainer's output: a line
/// for each trial, with its name and result.
async fn run_trials(level: &str, program: &str) -> io::Result<Vec<String>> {
    run_trials_with(level, program, &json!({}), &WITH_OPEN_FILE, &[]).await
}

async fn run_trials_with(
    level: &str,
    program: &str,
    extra: &Value,
    wrapper: &[&str],
    flags: &[&str],
) -> io::Result<Vec<String>> {
    let fake = FakeOrchestrator::start().await?;
    let host = sandboxed_host(level, "")?.flags(flags).with_wrapper(wrapper);
    let outside = AttackTargets::create(level)?;
    AttackTargets::install_agent_files(&host)?;
    std::fs::write(
        host.path().join("trainer/trainer.py"),
        [&outside.program_line(&host, extra), TOOLS, program].concat(),
    )?;
    let agent = host.start(&fake)?;
    std::fs::write(host.path().join("trainer/agent-pid"), agent.pid()?.to_string())?;
    fake.wait_until("a registration", |shared| (!shared.registrations.is_empty()).then_some(())).await;
    // The directory of another job.
    std::fs::create_dir_all(host.attempt("j_0", 1).path())?;
    run_trials_on(&fake, &host, agent).await
}

async fn run_trials_on(fake: &FakeOrchestrator, _host: &TestHost, agent: AgentProcess) -> io::Result<Vec<String>> {
    fake.offer("j_1", 1, &config());
    fake.wait_until("the end", |shared| shared.statuses.iter().any(is_end).then_some(())).await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(fake.reported_statuses().ends_with(&["completed".to_owned()]), "{log}\n{:?}", fake.state().statuses);
    agent.kill().await?;
    Ok(log.lines().map(str::to_owned).collect())
}

fn is_end(status: &Value) -> bool {
    matches!(status["status"].as_str(), Some("completed" | "failed" | "requeue" | "cancelled"))
}

/// Functions for the trials: `trial` prints `out` if something worked that must not.
const TOOLS: &str = include_str!("sandbox/tools.py");

/// Asserts that the sandbox held in every trial.
fn assert_all_held(lines: &[String], trials: usize) {
    assert_eq!(trials_with_result(lines, "held").len() + trials_with_result(lines, "out").len(), trials, "{lines:#?}");
    assert_eq!(trials_with_result(lines, "out"), Vec::<&str>::new(), "{lines:#?}");
}

/// The names of the trials with this result.
fn trials_with_result<'a>(lines: &'a [String], result: &str) -> Vec<&'a str> {
    let trial = |line: &'a String| {
        let mut words = line.split(' ');
        words.next().filter(|_| words.next() == Some(result))
    };
    lines.iter().filter_map(trial).collect()
}

/// Trials of the agent's and the host's files, which both levels protect.
const FILES: &str = include_str!("sandbox/files.py");
const FILE_TRIALS: usize = 41;

#[tokio::test]
async fn sandbox_hides_files_of_the_host_and_the_agent() -> io::Result<()> {
    for level in ["files", "full"] {
        let lines = run_trials(level, FILES).await?;
        assert_all_held(&lines, FILE_TRIALS);
    }
    Ok(())
}

/// Trials of processes, the kernel and the host, which only namespaces and the system call filter protect.
const KERNEL: &str = concat!(include_str!("sandbox/kernel.py"), include_str!("sandbox/others.py"));
const KERNEL_TRIALS: usize = 54;

#[tokio::test]
async fn level_full_protects_processes_and_the_kernel() -> io::Result<()> {
    let lines = run_trials("full", KERNEL).await?;
    assert_all_held(&lines, KERNEL_TRIALS);
    Ok(())
}

/// Parts of the offers of two users' jobs.
fn two_users() -> [Value; 2] {
    ["bob", "eve"].map(|name| json!({"submitted_by": name}))
}

/// The first job leaves marks in many places, and the second one looks for them.
const NEIGHBOR: &str = include_str!("sandbox/neighbour.py");
const NEIGHBOR_TRIALS: usize = 13;

/// Returns the second job's results. Without a sandbox it does not read everything, because reading removes some
/// things.
async fn run_neighbor_trials(level: &str) -> io::Result<Vec<String>> {
    let fake = FakeOrchestrator::start().await?;
    let host = sandboxed_host(level, "")?;
    let outside = AttackTargets::create(level)?;
    let write = |extra: &Value| {
        let text = [&outside.program_line(&host, extra), TOOLS, NEIGHBOR].concat();
        std::fs::write(host.path().join("trainer/trainer.py"), text)
    };
    write(&json!({}))?;
    let agent = host.start(&fake)?;
    let [bob, eve] = two_users();
    fake.offer_with("j_1", 1, &config(), bob);
    let port = fake
        .wait_until("bob's marks", |shared| {
            let log = std::str::from_utf8(&shared.log).ok()?.strip_suffix("\nready\n")?;
            log.strip_prefix("port ")?.parse::<u16>().ok()
        })
        .await;
    let tops = (level == "none").then(|| [host.path().join("state"), "/dev/shm".into()]);
    write(&json!({"port": port, "tops": tops}))?;
    fake.offer_with("j_2", 1, &config(), eve);
    fake.wait_until("eve's end", |shared| {
        shared.statuses.iter().any(|report| report["job_id"] == "j_2" && is_end(report)).then_some(())
    })
    .await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    agent.kill().await?;
    Ok(log.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn concurrent_jobs_of_two_users_cannot_see_each_other() -> io::Result<()> {
    assert_all_held(&run_neighbor_trials("full").await?, NEIGHBOR_TRIALS);
    Ok(())
}

/// Whether a process `sleep SECONDS` exists.
fn is_sleeping(seconds: &str) -> bool {
    let command = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|cmdline| cmdline == command.as_bytes())
}

#[tokio::test]
async fn no_process_of_a_job_survives_it() -> io::Result<()> {
    let program = include_str!("sandbox/leave.py");
    for level in ["files", "full"] {
        assert_all_held(&run_trials(level, program).await?, 1);
        wait_until("the exit of its child process", || (!is_sleeping("4242")).then_some(())).await;
    }
    Ok(())
}

#[tokio::test]
async fn home_is_removed_only_when_unused_for_long() -> io::Result<()> {
    let program = "import os, time\nopen(os.path.expanduser('~/cache'), 'w').close()\nprint('on', flush=True)\n\
                   while not os.path.exists('../control/go'): time.sleep(0.02)\n";
    let fake = FakeOrchestrator::start().await?;
    let host = sandboxed_host("files", program)?.flags(&["--home-retention-days", "0"]);
    let agent = host.start(&fake)?;
    fake.state().offer_extra = json!({"submitted_by": "bob"});
    for job in ["j_1", "j_2"] {
        fake.offer(job, 1, &config());
        host.supervisor(job, 1).await;
    }
    let home = users::home_dir(&host.path().join("state"), "bob");
    let has_ended = |shared: &FakeState, job: &str| {
        shared.statuses.iter().any(|report| report["job_id"] == job && report["status"] == "completed").then_some(())
    };
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_until("the first job's end", |shared| has_ended(shared, "j_1")).await;
    wait_until("the removal of its files", || {
        host.attempt("j_1", 1).read_json::<AttemptState>("state.json").ok()??.delivered.then_some(())
    })
    .await;
    assert!(home.join("cache").exists(), "the other job uses it");
    std::fs::write(host.attempt("j_2", 1).control_dir().join("go"), "")?;
    wait_until("its removal", || (!home.exists()).then_some(())).await;
    fake.wait_until("the second job's end", |shared| has_ended(shared, "j_2")).await;
    agent.kill().await
}

/// Trials of resources that all processes share: memory, and the number of processes.
const FILL: &str = include_str!("sandbox/fill.py");
const FILL_TRIALS: usize = 5;

/// The agent may have few processes, which also limits its trainers. Only root can have many others at the same time.
async fn run_fill_trials(level: &str) -> io::Result<Vec<String>> {
    let few = ["prlimit", "--nproc=300:300", "--"];
    let wrapper = if nix::unistd::geteuid().is_root() { &few[..] } else { &[] };
    run_trials_with(level, FILL, &json!({"jobs": 64}), wrapper, &[]).await
}

#[tokio::test]
async fn job_can_fill_only_its_own_storage() -> io::Result<()> {
    assert_all_held(&run_fill_trials("full").await?, FILL_TRIALS);
    Ok(())
}

/// The umask with which the server and `simpletuner worker` start an agent.
const PRIVATE_UMASK: [&str; 4] = ["sh", "-c", "umask 077; exec \"$@\"", "sh"];

/// Prints the reason from its stop file.
const STOPPED: &str = "\
import json, os, signal
def stop(*_):
    print('stopped:', json.load(open(os.environ['SIMPLETUNER_STOP_FILE']))['reason'], flush=True)
    os._exit(143)
signal.signal(signal.SIGTERM, stop)
print('on', flush=True)
while True: signal.pause()
";

/// Everything that real trainers do.
#[tokio::test]
async fn sandboxed_trainer_can_do_its_work() -> io::Result<()> {
    let program = include_str!("sandbox/work.py");
    for level in ["none", "files", "full"] {
        let fake = FakeOrchestrator::start().await?;
        let host = sandboxed_host(level, "")?;
        std::fs::set_permissions(host.trainer_dir(), std::fs::Permissions::from_mode(0o777))?;
        std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o755))?;
        let program = [TOOLS, program].concat().replace("SHARED", &host.trainer_dir().display().to_string());
        std::fs::write(host.path().join("trainer/trainer.py"), program)?;
        let host = host.with_wrapper(&PRIVATE_UMASK);
        let agent = host.start(&fake)?;
        let lines = run_trials_on(&fake, &host, agent).await?;
        let has_users = host.path().join("state/users/users.json").exists();
        assert!(has_users || level != "full" || !geteuid().is_root(), "each user has an operating system user");
        // Root at level `files` could change the kernel's settings with the same right.
        let is_root_on_host =
            level == "files" && !has_users && geteuid().is_root() && !kernel_is_protected(Path::new("/proc"));
        let expected =
            |line: &&String| line.ends_with(" works") != (is_root_on_host && line.starts_with("thread-names"));
        assert!(lines.iter().all(|line| expected(&line)) && lines.len() == 19, "{level}: {lines:#?}");
        assert!(fake.state().artifacts.contains_key("weights.safetensors"), "{level}");
        assert!(Path::new(&host.trainer_dir()).join("given").exists(), "{level}");
    }
    Ok(())
}

/// The supervisor and the agent, which are outside the sandbox, can still stop and adopt the trainer and get its exit
/// status.
#[tokio::test]
async fn sandboxed_trainer_is_adopted_stopped_and_reported() -> io::Result<()> {
    for level in ["files", "full"] {
        let fake = FakeOrchestrator::start().await?;
        let host = sandboxed_host(level, STOPPED)?.with_wrapper(&PRIVATE_UMASK);
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &config());
        fake.wait_until("its output", |shared| shared.log.starts_with(b"on").then_some(())).await;
        agent.kill().await?;
        let agent = host.start(&fake)?;
        fake.wait_until("the adoption", |shared| (shared.registrations.len() == 2).then_some(())).await;
        fake.stop("j_1", 1, "cancelled");
        let report = fake.wait_for_status("cancelled").await;
        assert_eq!(report["exit_code"], 128 + 15, "{level}: {report}");
        let log = String::from_utf8_lossy(&fake.state().log).into_owned();
        assert!(log.contains("stopped: cancelled"), "{level}: {log}");
        agent.kill().await?;

        for (program, code) in [("import os; os.kill(os.getpid(), 11)", 139), ("raise SystemExit(7)", 7)] {
            let fake = FakeOrchestrator::start().await?;
            let host = sandboxed_host(level, program)?;
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &config());
            assert_eq!(fake.wait_for_status("failed").await["exit_code"], code, "{level}");
            agent.kill().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn host_below_its_minimum_sandbox_level_takes_no_jobs() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // The kernel cannot create namespaces here, and Landlock alone is not enough for root.
    let host = sandboxed_host("full", "")?.with_wrapper(&[
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$@\"",
        "sh",
    ]);
    let agent = host.start(&fake)?;
    let reason = fake
        .wait_until("a registration", |shared| {
            Some(shared.registrations.first()?["unhealthy_reason"].as_str().unwrap_or("healthy").to_owned())
        })
        .await;
    assert!(reason.contains("--sandbox-min") && reason.contains("namespaces"), "{reason}");
    agent.kill().await
}
