//! Memory stays bounded when an orchestrator, another server or a trainer sends endless data.

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TEST_TIMEOUT, TestHost, peak_memory};
use crate::worker::files::SupervisorRecord;
use crate::worker::process::ProcId;

/// An agent and a supervisor in a debug build use a few dozen MiB, plus one response of maximum size.
const MAX_MEMORY_BYTES: u64 = 200 << 20;

/// The agent's log after an endless response to paths with this suffix.
async fn agent_log(path_suffix: &'static str, status: u16, words: &str) -> io::Result<String> {
    agent_log_with(&[], path_suffix, status, words).await
}

async fn agent_log_with(flags: &[&str], path_suffix: &'static str, status: u16, words: &str) -> io::Result<String> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().flood = Some((path_suffix, status));
    let host = TestHost::with_script("true")?.flags(&["--persistent"]).flags(flags);
    let mut agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let line = agent.read_until_line(words).await?;
    let (peak, sent) = (agent.peak_memory()?, fake.state().flooded.load(Ordering::Relaxed));
    assert!(peak < MAX_MEMORY_BYTES, "{path_suffix}: {peak} bytes of memory, {sent} sent");
    agent.kill().await?;
    Ok(line)
}

#[tokio::test]
async fn endless_response_is_aborted_and_logged() -> io::Result<()> {
    for (path_suffix, size) in [("/register", 8), ("/heartbeat", 8), ("/bundle", 64), ("/secrets", 8)] {
        let line = agent_log(path_suffix, 200, "a response of more than").await?;
        let expected =
            format!("a response of more than {size} MiB, which no orchestrator sends; check --orchestrator-url");
        assert!(line.contains(&expected), "{path_suffix}: {line}");
    }
    Ok(())
}

#[tokio::test]
async fn endless_error_is_reduced_to_its_status() -> io::Result<()> {
    let line = agent_log("/register", 500, "500 Internal Server Error").await?;
    assert!(line.contains("responded with 500"), "{line}");
    Ok(())
}

#[tokio::test]
async fn endless_event_is_aborted_and_logged() -> io::Result<()> {
    agent_log("/stream", 200, "an event of more than 1 MiB").await.map(drop)
}

#[tokio::test]
async fn input_limits_are_configurable() -> io::Result<()> {
    for (flag, path_suffix, words) in [
        ("--max-answer", "/register", "a response of more than 96 KiB"),
        ("--max-bundle", "/bundle", "a response of more than 96 KiB"),
        ("--max-event", "/stream", "an event of more than 96 KiB"),
    ] {
        agent_log_with(&[flag, "96KiB"], path_suffix, 200, words).await?;
    }
    Ok(())
}

const WEBHOOK_TRAINER: &str = r#"
import json, os, urllib.error, urllib.request
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
for body in ['{"type": "x"}', json.dumps({"type": "x" * 2000}), json.dumps([0] * 60)]:
    request = urllib.request.Request(hook["callback_url"], body.encode(), {"X-API-Key": hook["auth_token"]})
    try: print(urllib.request.urlopen(request).status, flush=True)
    except urllib.error.HTTPError as error: print(error.code, flush=True)
"#;

#[tokio::test]
async fn webhook_limits_are_configurable() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(WEBHOOK_TRAINER)?.flags(&["--webhook-body", "1KiB", "--webhook-values", "50"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    agent.wait_for_exit().await?;
    assert_eq!(String::from_utf8_lossy(&fake.state().log), "204\n413\n400\n");
    Ok(())
}

#[tokio::test]
async fn checkpoint_download_stops_at_the_announced_size() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.checkpoint_name = "checkpoint-5".to_owned();
    fake.state().files.checkpoint_files.insert("checkpoint-5/big".to_owned(), vec![b'x'; 100_000]);
    fake.state().flood = Some(("/checkpoint-5/big", 200));
    let host = TestHost::with_script("true")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("checkpoint-5/big arrived damaged") && output.contains("starts from the beginning"),
        "{output}"
    );
    // Twice, plus what fits into buffers on the way.
    assert!(fake.state().flooded.load(Ordering::Relaxed) < 64 << 20);
    Ok(())
}

const FLOOD: &str = r#"
import json, os, socket, time, urllib.parse
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
port = urllib.parse.urlparse(hook["callback_url"]).port
open_ = []
for number in range(24):
    try:
        s = socket.create_connection(("127.0.0.1", port), timeout=1)
        s.settimeout(1)
        s.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nX-API-Key: %s\r\nContent-Length: 60000000\r\n\r\n" % hook["auth_token"].encode())
        for _ in range(50):
            s.sendall(b" " * 1000000)
    except OSError:
        pass
    open_.append(s)
print("flooded", flush=True)
time.sleep(1000)
"#;

#[tokio::test]
async fn webhook_flood_uses_bounded_memory() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(FLOOD)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let SupervisorRecord { supervisor: ProcId { pid, .. }, port, .. } = host.supervisor("j_1", 1).await;
    fake.wait_until("the end of the flood", |shared| shared.log.starts_with(b"flooded").then_some(())).await;
    let peak = peak_memory(u32::try_from(pid).unwrap_or_default())?;
    assert!(peak < MAX_MEMORY_BYTES, "{peak} bytes of memory");
    // A connection of another process does not stay open in a supervisor that has the next job.
    let mut held = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    let end = tokio::time::timeout(TEST_TIMEOUT, held.read(&mut [0])).await?;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    agent.kill().await
}
