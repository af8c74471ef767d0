//! A trainer's user, processes, sockets and libraries.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::{TOOLS, config, sandboxed_host};
use crate::worker::process;
use crate::worker::sandbox::users::FIRST_USER;
use crate::worker::tests::fake_orchestrator::FakeOrchestrator;
use crate::worker::tests::test_host::{TestHost, wait_until};

/// Starts a trainer, and waits until it prints `on`.
async fn wait_until_running(
    host: &TestHost,
    fake: &FakeOrchestrator,
) -> io::Result<crate::worker::tests::test_host::AgentProcess> {
    let agent = host.start(fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("its output", |shared| shared.log.ends_with(b"on\n").then_some(())).await;
    Ok(agent)
}

const FORKS: &str = "
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(1000)
        time.sleep(1000)
print('on', flush=True)
time.sleep(1000)
";

/// The attempt's processes, found by a variable that only they have.
fn trainer_pids(host: &TestHost) -> BTreeSet<i32> {
    let marker = format!("SIMPLETUNER_STOP_FILE={}", host.attempt("j_1", 1).stop_file().display());
    process::find_by_environment(&marker).iter().map(|found| found.pid).collect()
}

#[tokio::test]
async fn early_forks_stay_in_the_attempts_cgroup() -> io::Result<()> {
    for level in ["none", "files", "full"] {
        let fake = FakeOrchestrator::start().await?;
        let host = sandboxed_host(level, &[TOOLS, FORKS].concat())?;
        let agent = wait_until_running(&host, &fake).await?;
        let Some(group) = host.supervisor("j_1", 1).await.cgroup else {
            println!("skipped, because no cgroup can be created here");
            return agent.kill().await;
        };
        let pids = wait_until("all processes", || Some(trainer_pids(&host)).filter(|pids| pids.len() > 40)).await;
        let text = std::fs::read_to_string(group.join("cgroup.procs"))?;
        let inside: BTreeSet<i32> = text.lines().filter_map(|pid| pid.parse().ok()).collect();
        let supervisor = host.supervisor("j_1", 1).await.supervisor.pid;
        let outside: Vec<_> = pids.difference(&inside).filter(|pid| **pid != supervisor).collect();
        assert!(outside.is_empty(), "{level}: {outside:?} of {pids:?}");
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn trainer_has_its_users_uid_and_no_group_of_the_agent() -> io::Result<()> {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped, because only root can change to another user");
        return Ok(());
    }
    let fake = FakeOrchestrator::start().await?;
    let host = sandboxed_host("full", "import os\nprint(os.getresuid(), os.getresgid(), os.getgroups())\n")?;
    let agent = host.start(&fake)?;
    for (job, number, user) in [("j_1", 1, "bob"), ("j_2", 2, "eve"), ("j_3", 1, "bob")] {
        fake.offer_with(job, 1, &config(), json!({"submitted_by": user}));
        fake.wait_until("its end", |shared| {
            shared.statuses.iter().any(|one| one["job_id"] == job && one["status"] == "completed").then_some(())
        })
        .await;
        let id = FIRST_USER.uid + number;
        let log = String::from_utf8_lossy(&fake.state().log).into_owned();
        assert_eq!(log, format!("({id}, {id}, {id}) ({id}, {id}, {id}) [{id}]\n"), "{user}");
    }
    agent.kill().await
}

const PATHS: &str = "
def works(name, work):
    try: print(name, bool(work()), flush=True)
    except OSError: print(name, False, flush=True)
works('read', lambda: read('READ/given'))
works('add to what is read', lambda: write('READ/new'))
works('change what is read', lambda: write('READ/given'))
works('remove what is read', lambda: os.unlink('READ/given') or True)
works('write', lambda: write('WRITE/new'))
";

#[tokio::test]
async fn path_is_read_only_by_default() -> io::Result<()> {
    for level in ["files", "full"] {
        let fake = FakeOrchestrator::start().await?;
        let mut host = sandboxed_host(level, "")?;
        let read_only = host.path().join("given");
        std::fs::create_dir(&read_only)?;
        std::fs::write(read_only.join("given"), "x")?;
        // For every user, so that the modes do not prevent access.
        let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
        open(&read_only, 0o777)?;
        open(&read_only.join("given"), 0o666)?;
        open(&host.trainer_dir(), 0o777)?;
        let paths = format!("given={}:shared={}:rw", read_only.display(), host.trainer_dir().display());
        host.variables.push(("SIMPLETUNER_PATHS".to_owned(), paths));
        let program = PATHS.replace("READ", &read_only.display().to_string());
        let program = program.replace("WRITE", &host.trainer_dir().display().to_string());
        std::fs::write(host.path().join("trainer/trainer.py"), [TOOLS, &program].concat())?;
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &config());
        fake.wait_for_status("completed").await;
        let log = String::from_utf8_lossy(&fake.state().log).into_owned();
        let expected =
            "read True\nadd to what is read False\nchange what is read False\nremove what is read False\nwrite True\n";
        assert_eq!(log, expected, "{level}");
        agent.kill().await?;
    }
    Ok(())
}

/// The listening sockets in a process's network namespace, with their inodes.
fn listening_sockets(pid: i32) -> io::Result<Vec<(String, String)>> {
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}"))?;
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.get(3) == Some(&"0A") {
                sockets.push((fields[9].to_owned(), format!("{table} {}", fields[1])));
            }
        }
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/unix"))?;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // `__SO_ACCEPTCON`.
        if fields.get(3).is_some_and(|flags| flags.ends_with("10000")) {
            sockets.push((fields[6].to_owned(), format!("unix {}", fields.get(7).unwrap_or(&"unnamed"))));
        }
    }
    Ok(sockets)
}

/// The listening sockets that a process has open.
fn accepting_sockets(pid: i32) -> io::Result<Vec<String>> {
    let listeners = listening_sockets(pid)?;
    let open =
        std::fs::read_dir(format!("/proc/{pid}/fd"))?.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let inodes: Vec<String> = open
        .filter_map(|target| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    Ok(listeners.into_iter().filter(|(inode, _)| inodes.contains(inode)).map(|(_, socket)| socket).collect())
}

#[tokio::test]
async fn job_can_connect_only_to_its_own_webhook() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let program = "import json, os, time\n\
                   hook = json.load(open(os.environ['CONFIG_PATH']))['webhook_config'][-1]['callback_url']\n\
                   print(hook.split(':')[2].split('/')[0])\nprint('on', flush=True)\ntime.sleep(1000)\n";
    let host = sandboxed_host("full", program)?;
    let agent = wait_until_running(&host, &fake).await?;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    let port: u16 = log.lines().next().and_then(|line| line.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let record = host.supervisor("j_1", 1).await;
    let agent_pid = i32::try_from(agent.pid()?).map_err(io::Error::other)?;
    assert_eq!(accepting_sockets(agent_pid)?, Vec::<String>::new());
    assert_eq!(accepting_sockets(record.supervisor.pid)?, [format!("tcp 0100007F:{port:04X}")]);
    // The trainer's init has none either.
    assert_eq!(accepting_sockets(record.trainer.pid)?, Vec::<String>::new());
    agent.kill().await
}

/// A library that records the PID of each process that loads it.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void) {
    char line[32];
    int length = snprintf(line, sizeof line, "%d\n", getpid());
    FILE *file = fopen("LOADED", "a");
    if (file) { fwrite(line, 1, length, file); fclose(file); }
}
"#;

#[tokio::test]
async fn no_job_loads_a_library_into_its_supervisor() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host =
        sandboxed_host("full", "print('on', flush=True)\nimport time\ntime.sleep(1000)\n")?.flags(&["--allow-code"]);
    let (source, library) = (host.path().join("own.c"), host.trainer_dir().join("own.so"));
    let loaded = host.trainer_dir().join("loaded");
    std::fs::write(&source, LIBRARY.replace("LOADED", &loaded.display().to_string()))?;
    let compiler =
        std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output();
    if !compiler.is_ok_and(|compiler| compiler.status.success()) {
        println!("skipped, because there is no C compiler");
        return Ok(());
    }
    // The library works.
    let status = std::process::Command::new("true").env("LD_PRELOAD", &library).status()?;
    assert!(status.success() && loaded.exists());
    std::fs::remove_file(&loaded)?;
    for name in ["LD_PRELOAD", "ld_preload", "LD_AUDIT", "LD_PRELOAD\0", "PYTHONPATH", "LD_LIBRARY_PATH"] {
        fake.state().secrets.insert(name.to_owned(), library.display().to_string());
    }
    let files = json!({"config.json": json!({"LD_PRELOAD": library, "--LD_PRELOAD": library}).to_string(),
        ".env": format!("LD_PRELOAD={}\n", library.display()), "config.env": format!("LD_PRELOAD={}\n", library.display())});
    let agent = host.start(&fake)?;
    fake.offer_with("j_1", 1, &files, json!({"env": {"LD_PRELOAD": library}, "environment": {"LD_PRELOAD": library}}));
    fake.wait_until("its output", |shared| shared.log.ends_with(b"on\n").then_some(())).await;
    let record = host.supervisor("j_1", 1).await;
    for (process, is_trainer) in [(record.supervisor.pid, false), (record.trainer.pid, true)] {
        let environment = std::fs::read(format!("/proc/{process}/environ"))?;
        let names = String::from_utf8_lossy(&environment).to_uppercase();
        assert_eq!(names.contains("SIMPLETUNER_JOB_ID="), is_trainer, "{names}");
        assert!(!names.contains(&library.display().to_string().to_uppercase()), "{names}");
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
        assert!(!maps.contains("own.so"), "{maps}");
    }
    assert!(!loaded.exists(), "the library was loaded");
    agent.kill().await
}
