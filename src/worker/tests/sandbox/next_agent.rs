//! A trainer that outlives its agent, and tries to read the worker's token when the next agent starts with it.

use std::io;

use super::{TOOLS, config, sandboxed_host, trials_with_result};
use crate::worker::tests::fake_orchestrator::FakeOrchestrator;

const WATCH: &str = r#"
print("on", flush=True)
found, looks = set(), 0
while not os.path.exists("../control/go"):
    for pid in pids():
        for name in ("environ", "cmdline"):
            if b"wt_test" in (try_read("/proc/%d/%s" % (pid, name)) or b""): found.add(name)
    looks += 1
trial("token", lambda: looks == 0 or found)
"#;

async fn run_watcher(level: &str) -> io::Result<Vec<String>> {
    let fake = FakeOrchestrator::start().await?;
    let host = sandboxed_host(level, &[TOOLS, WATCH].concat())?;
    let mut agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("its output", |shared| shared.log.starts_with(b"on").then_some(())).await;
    for number in 2..6 {
        agent.kill().await?;
        agent = host.start(&fake)?;
        fake.wait_until("the next agent", |shared| (shared.registrations.len() == number).then_some(())).await;
    }
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    agent.kill().await?;
    Ok(log.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn token_of_a_starting_agent_cannot_be_read() -> io::Result<()> {
    for (level, expected) in [("files", "held"), ("full", "held"), ("none", "out")] {
        let lines = run_watcher(level).await?;
        assert_eq!(trials_with_result(&lines, expected), ["token"], "{level}: {lines:#?}");
    }
    Ok(())
}
