//! What a trainer can do to its host, its agent, and the jobs beside it: each way out is tried by a trainer that attacks.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Agent, Host, until};
use crate::files::State;
use crate::sandbox::users;

mod oracles;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// A host that confines its jobs.
fn confined(level: &str, program: &str) -> io::Result<Host> {
    let mut host = Host::with_python(program)?.flags(&["--persistent", "--max-jobs", "4"]);
    host.variables.push(("SIMPLETUNER_SANDBOX_MIN".to_owned(), level.to_owned()));
    Ok(host)
}

/// Runs a trainer that tries something and prints what became of it, one word a line.
async fn tried(level: &str, program: &str) -> io::Result<Vec<String>> {
    let fake = Fake::start().await?;
    let host = confined(level, program)?;
    let agent = host.start(&fake)?;
    tried_on(&fake, &host, agent).await
}

async fn tried_on(fake: &Fake, _host: &Host, agent: Agent) -> io::Result<Vec<String>> {
    fake.offer("j_1", 1, &config());
    fake.until("the end", |shared| shared.statuses.iter().any(is_end).then_some(())).await;
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    assert!(fake.words().ends_with(&["completed".to_owned()]), "{log}\n{:?}", fake.shared().statuses);
    agent.kill().await?;
    Ok(log.lines().map(str::to_owned).collect())
}

fn is_end(status: &Value) -> bool {
    matches!(status["status"].as_str(), Some("completed" | "failed" | "requeue" | "cancelled"))
}

/// What a trainer that attacks has at hand: `trial` prints `out` if something worked that must not.
const TOOLS: &str = include_str!("sandbox/tools.py");

/// Every trial must have held.
fn all_held(lines: &[String], trials: usize) {
    let said: Vec<&String> = lines.iter().filter(|line| line.contains(" held") || line.contains(" out")).collect();
    assert_eq!(said.len(), trials, "{lines:#?}");
    assert!(said.iter().all(|line| line.contains(" held")), "{lines:#?}");
}

/// The agent's and the host's files: both levels keep them closed.
const FILES: &str = include_str!("sandbox/files.py");

#[tokio::test]
async fn files_of_the_host_and_the_agent_stay_closed() -> io::Result<()> {
    for level in ["files", "full"] {
        let lines = tried(level, &[TOOLS, FILES].concat()).await?;
        all_held(&lines, 29);
    }
    Ok(())
}

/// Processes, the kernel and the host: what only namespaces and the system call filter keep away.
const KERNEL: &str = include_str!("sandbox/kernel.py");

#[tokio::test]
async fn processes_and_the_kernel_stay_out_of_reach() -> io::Result<()> {
    let lines = tried("full", &[TOOLS, KERNEL].concat()).await?;
    all_held(&lines, 35);
    Ok(())
}

/// As another user, and at the same time.
fn two_people() -> [Value; 2] {
    ["bob", "eve"].map(|name| json!({"submitted_by": name}))
}

#[tokio::test]
async fn two_peoples_jobs_side_by_side_see_nothing_of_each_other() -> io::Result<()> {
    // The first keeps a secret wherever jobs keep things; the second looks for it everywhere.
    let program = include_str!("sandbox/neighbour.py");
    let fake = Fake::start().await?;
    let host = confined("full", &[TOOLS, program].concat())?;
    let agent = host.start(&fake)?;
    let [bob, eve] = two_people();
    fake.offer_with("j_1", 1, &config(), bob);
    fake.until("bob's marks", |shared| shared.log.ends_with(b"ready\n").then_some(())).await;
    fake.shared().log.clear();
    fake.offer_with("j_2", 1, &config(), eve);
    fake.until("eve's end", |shared| {
        shared.statuses.iter().any(|one| one["job_id"] == "j_2" && is_end(one)).then_some(())
    })
    .await;
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    let lines: Vec<String> = log.lines().map(str::to_owned).collect();
    all_held(&lines, 5);
    agent.kill().await
}

/// Whether a process sleeps for so long.
fn sleeps(seconds: &str) -> bool {
    let command = format!("sleep\0{seconds}\0");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|found| found == command.as_bytes())
}

#[tokio::test]
async fn nothing_of_a_job_survives_it() -> io::Result<()> {
    let program = include_str!("sandbox/leave.py");
    for level in ["files", "full"] {
        let lines = tried(level, &[TOOLS, program].concat()).await?;
        all_held(&lines, 1);
        until("the end of what it left", || (!sleeps("4242")).then_some(())).await;
    }
    Ok(())
}

#[tokio::test]
async fn a_home_stays_while_its_owner_has_a_job_and_goes_when_it_was_unused_for_long() -> io::Result<()> {
    let program = "import os, time\nopen(os.path.expanduser('~/cache'), 'w').close()\nprint('on', flush=True)\n\
                   while not os.path.exists('../control/go'): time.sleep(0.02)\n";
    let fake = Fake::start().await?;
    let host = confined("files", program)?.flags(&["--home-retention-days", "0"]);
    let agent = host.start(&fake)?;
    fake.shared().offer_more = json!({"submitted_by": "bob"});
    for job in ["j_1", "j_2"] {
        fake.offer(job, 1, &config());
        host.supervisor(job, 1).await;
    }
    let home = users::home(&host.path().join("state"), "bob");
    let has_ended = |shared: &Shared, job: &str| {
        shared.statuses.iter().any(|said| said["job_id"] == job && said["status"] == "completed").then_some(())
    };
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.until("the first job's end", |shared| has_ended(shared, "j_1")).await;
    until("its tidying", || host.attempt("j_1", 1).read::<State>("state.json").ok()??.delivered.then_some(())).await;
    assert!(home.join("cache").exists(), "the other one uses it");
    std::fs::write(host.attempt("j_2", 1).control().join("go"), "")?;
    until("its removal", || (!home.exists()).then_some(())).await;
    fake.until("the second job's end", |shared| has_ended(shared, "j_2")).await;
    agent.kill().await
}

#[tokio::test]
async fn what_one_job_fills_is_its_own() -> io::Result<()> {
    let program = include_str!("sandbox/fill.py");
    let lines = tried("full", &[TOOLS, program].concat()).await?;
    all_held(&lines, 5);
    Ok(())
}

/// As the server starts its own agent, and `simpletuner worker` becomes one.
const PRIVATE_UMASK: [&str; 4] = ["sh", "-c", "umask 077; exec \"$@\"", "sh"];

/// Reads why it is to stop.
const STOPPED: &str = "\
import json, os, signal
def stop(*_):
    print('stopped:', json.load(open(os.environ['SIMPLETUNER_STOP_FILE']))['reason'], flush=True)
    os._exit(143)
signal.signal(signal.SIGTERM, stop)
print('on', flush=True)
while True: signal.pause()
";

/// What real trainers do all the time.
#[tokio::test]
async fn a_confined_trainer_can_do_its_work() -> io::Result<()> {
    let program = include_str!("sandbox/work.py");
    for level in ["none", "files", "full"] {
        let fake = Fake::start().await?;
        let host = confined(level, "")?;
        std::fs::set_permissions(host.shared(), std::fs::Permissions::from_mode(0o777))?;
        std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o755))?;
        let program = [TOOLS, program].concat().replace("SHARED", &host.shared().display().to_string());
        std::fs::write(host.path().join("trainer/trainer.py"), program)?;
        let host = host.begun_by(&PRIVATE_UMASK);
        let agent = host.start(&fake)?;
        let lines = tried_on(&fake, &host, agent).await?;
        let has_users = host.path().join("state/people/users.json").exists();
        assert!(has_users || level != "full" || !nix::unistd::geteuid().is_root(), "each person has a user");
        let failed: Vec<_> = lines.iter().filter(|line| !line.ends_with(" works")).collect();
        assert!(failed.is_empty() && lines.len() == 17, "{level}: {lines:#?}");
        assert!(fake.shared().artifacts.contains_key("weights.safetensors"), "{level}");
        assert!(Path::new(&host.shared()).join("given").exists(), "{level}");
    }
    Ok(())
}

/// The one who stops it, adopts it and hears its end is outside.
#[tokio::test]
async fn a_confined_trainer_is_adopted_stopped_and_its_end_is_told() -> io::Result<()> {
    for level in ["files", "full"] {
        let fake = Fake::start().await?;
        let host = confined(level, STOPPED)?.begun_by(&PRIVATE_UMASK);
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &config());
        fake.until("its output", |shared| shared.log.starts_with(b"on").then_some(())).await;
        agent.kill().await?;
        let agent = host.start(&fake)?;
        fake.until("the adoption", |shared| (shared.registers.len() == 2).then_some(())).await;
        fake.stop("j_1", 1, "cancelled");
        let report = fake.status("cancelled").await;
        assert_eq!(report["exit_code"], 128 + 15, "{level}: {report}");
        let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
        assert!(log.contains("stopped: cancelled"), "{level}: {log}");
        agent.kill().await?;

        for (program, code) in [("import os; os.kill(os.getpid(), 11)", 139), ("raise SystemExit(7)", 7)] {
            let fake = Fake::start().await?;
            let host = confined(level, program)?;
            let agent = host.start(&fake)?;
            fake.offer("j_1", 1, &config());
            assert_eq!(fake.status("failed").await["exit_code"], code, "{level}");
            agent.kill().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_host_that_cannot_confine_as_its_owner_wants_takes_no_job() -> io::Result<()> {
    let fake = Fake::start().await?;
    // A kernel that makes no namespaces, and has no Landlock for whoever is root without it.
    let host = confined("full", "")?.begun_by(&[
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
    let why = fake
        .until("a registration", |shared| Some(shared.registers.first()?["unfit"].as_str().unwrap_or("fit").to_owned()))
        .await;
    assert!(why.contains("--sandbox-min") && why.contains("namespaces"), "{why}");
    agent.kill().await
}
