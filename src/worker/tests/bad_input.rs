//! Trainers that misbehave: the report names what they did.

use std::io;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, first_line, process_by_inner_pid, wait_until};
use crate::worker::cgroup;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Runs the job to its end. Returns the last report, the log, and the agent's log.
async fn run(host: TestHost) -> io::Result<(Value, Vec<u8>, String)> {
    let fake = FakeOrchestrator::start().await?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    Ok((shared.statuses.last().cloned().unwrap_or_default(), shared.log.clone(), output))
}

fn error(report: &Value) -> &str {
    report["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn trainer_that_cannot_start_says_why() -> io::Result<()> {
    let temp = tempfile::tempdir()?;
    let (file, script) = (temp.path().join("plain"), temp.path().join("script"));
    std::fs::write(&file, "text")?;
    std::fs::write(&script, "#!/no/such/interpreter\n")?;
    for path in [&file, &script] {
        std::process::Command::new("chmod").arg(if path == &file { "600" } else { "755" }).arg(path).status()?;
    }
    for (trainer, status, words) in [
        (temp.path(), "requeue", "does not exist or cannot be started"),
        (&*file, "requeue", "does not exist or cannot be started"),
        (&*script, "failed", "was not found"),
        (Path::new("/no/such/trainer"), "requeue", "does not exist or cannot be started"),
    ] {
        let trainer = trainer.display().to_string();
        let (report, log, _) = run(TestHost::with_trainer(&trainer)?).await?;
        let error = error(&report);
        assert_eq!(report["status"], status, "{report}");
        assert!(error.contains(words) && error.contains(&trainer) && error.contains("--trainer"), "{error}");
        assert!(status == "requeue" || String::from_utf8_lossy(&log).contains(words));
    }
    Ok(())
}

#[tokio::test]
async fn binary_output_arrives_unchanged() -> io::Result<()> {
    let script = "printf ' 10%%\\r 20%%\\r100%%\\n\\377\\376\\200 half: \\303' ; sleep 0.6; printf '\\244 \\000 \\033[31mred' >&2";
    let (report, log, _) = run(TestHost::with_script(script)?).await?;
    assert_eq!(report["status"], "completed");
    assert_eq!(log, b" 10%\r 20%\r100%\n\xff\xfe\x80 half: \xc3\xa4 \0 \x1b[31mred");
    Ok(())
}

#[tokio::test]
async fn short_job_between_two_heartbeats_is_reported() -> io::Result<()> {
    for code in [0, 7] {
        let fake = FakeOrchestrator::start().await?;
        // The heartbeat interval is an hour.
        fake.state().hold_streams = true;
        let host = TestHost::with_script(&format!("exit {code}"))?.flags(&["--persistent", "--stream-patience", "1"]);
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &config());
        let status = if code == 0 { "completed" } else { "failed" };
        let report = fake.wait_for_status(status).await;
        assert_eq!(report["exit_code"], code);
        assert_eq!(
            (fake.reported_statuses(), fake.state().heartbeats.len()),
            (["starting", "running", status].map(str::to_owned).to_vec(), 0)
        );
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn zombies_do_not_delay_the_end() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // One zombie child, and one orphan that is a zombie.
    let program = "
import os, time
first = os.fork()
if first == 0: os._exit(0)
read, write = os.pipe()
if os.fork() == 0:
    second = os.fork()
    if second == 0: os._exit(0)
    os.write(write, str(second).encode())
    time.sleep(0.2)
    os._exit(0)
print(first, int(os.read(read, 20)), flush=True)
while not os.path.exists('../control/go'): time.sleep(0.01)
";
    let host = TestHost::with_python(program)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    let numbers = first_line(&fake).await;
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).ok_or(io::ErrorKind::InvalidData);
    let mut numbers = numbers.split(' ');
    let (first, second): (i32, i32) = (number(numbers.next())?, number(numbers.next())?);
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let process = |number: i32| process_by_inner_pid(trainer, number);
    wait_until("the orphan to be reaped", || process(second).is_none().then_some(())).await;
    let zombie = process(first).expect("a child that was not reaped");
    assert!(!zombie.is_alive(), "the other is a zombie");
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    assert!(!Path::new(&format!("/proc/{}", zombie.pid)).exists());
    agent.kill().await
}

#[tokio::test]
async fn flooding_trainer_is_cancelled() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // 200 MB/s for a second, and then silence.
    let program = "
import os, time
chunk, start = b'%0255d\\n' % 7 * 4096, time.monotonic()
for number in range(200):
    os.write(2, chunk)
    time.sleep(max(0, start + number / 200 - time.monotonic()))
time.sleep(1000)
";
    let host = TestHost::with_python(program)?.flags(&["--persistent", "--spool-limit", "64MiB"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the first output", |shared| (shared.log.len() > 1 << 20).then_some(())).await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats during the job", |shared| {
        (shared.heartbeats.len() > heartbeat_count + 1).then_some(())
    })
    .await;
    let dir = host.attempt("j_1", 1);
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let cancelled_at = Instant::now();
    fake.stop("j_1", 1, "cancelled");
    wait_until("the exit", || (!trainer.is_alive()).then_some(())).await;
    let written = std::fs::metadata(dir.log_path())?.len() / 1_000_000;
    println!("dead {:?} after its cancel, with {written} MB written", cancelled_at.elapsed());
    fake.wait_for_status("cancelled").await;
    agent.kill().await
}

const TRACEBACK: &str = "
import os, sys
for number in range(60): print('step', number, file=sys.stderr)
print('token is', os.environ['HF_TOKEN'], file=sys.stderr)
";

#[tokio::test]
async fn last_lines_of_a_crash_are_in_report_and_agent_log() -> io::Result<()> {
    for (end, status_words) in [
        ("raise ValueError('no images')", "ValueError: no images\nTraceback (most recent call last):\n  File "),
        ("print('about to die', flush=True); os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("print('about to die', flush=True); os.abort()", "killed by signal 6"),
    ] {
        let fake = FakeOrchestrator::start().await?;
        fake.state().secrets.insert("HF_TOKEN".to_owned(), "hf_0123456789".to_owned());
        let agent = TestHost::with_python(&format!("{TRACEBACK}{end}\n"))?;
        let agent = agent.start(&fake)?;
        fake.offer("j_1", 1, &config());
        let (_, output) = agent.wait_for_exit().await?;
        let report = fake.wait_for_status("failed").await;
        let last_line = if end.starts_with("raise") { "ValueError: no images" } else { "about to die" };
        assert!(error(&report).contains(status_words) && error(&report).ends_with(last_line), "{report}");
        assert!(String::from_utf8_lossy(&fake.state().log).contains(last_line));
        // The agent's log also has the last forty lines, without secrets.
        let lines: Vec<&str> =
            output.lines().filter_map(|line| line.split_once(" ERROR | ")).map(|(_, line)| line).collect();
        assert!(output.contains("the trainer failed; its last lines:") && lines.len() == 40, "{output}");
        assert!(lines[39].starts_with(last_line), "{output}");
        assert!(output.contains("token is ************* ") && !output.contains("hf_0123456789"), "{output}");
    }
    Ok(())
}

#[tokio::test]
async fn out_of_memory_is_reported() -> io::Result<()> {
    let Some(memory_group) = cgroup::own_cgroup(Some("memory")) else {
        println!("skipped, because cgroup v1 does not account memory here");
        return Ok(());
    };
    let group = memory_group.join(format!("st-test-{}", std::process::id()));
    if let Err(error) =
        std::fs::create_dir(&group).and_then(|()| std::fs::write(group.join("memory.limit_in_bytes"), "160M"))
    {
        println!("skipped, because no cgroup can be created here: {error}");
        return Ok(());
    }
    let enter_group = format!("echo 0 > '{}/cgroup.procs' && exec \"$@\"", group.display());
    let program = "print('step 1', flush=True)\nall = [bytearray(1 << 20) for _ in range(1000)]\n";
    let host = TestHost::with_python(program)?.with_wrapper(&["sh", "-c", &enter_group, "sh"]);
    let result = run(host).await;
    wait_until("the group to be empty", || std::fs::remove_dir(&group).ok()).await;
    let (report, ..) = result?;
    assert_eq!((&report["status"], &report["exit_code"]), (&json!("failed"), &json!(137)), "{report}");
    assert!(error(&report).contains("this host's memory was full"), "{report}");
    Ok(())
}
