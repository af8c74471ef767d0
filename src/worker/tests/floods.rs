//! An orchestrator, or whoever answers in its place, and a trainer, that send without end: memory stays bounded.

use std::io;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::fake::Fake;
use super::host::{Host, peak, until};

/// An agent and a supervisor in a debug build have a few dozen MiB, and one answer of the largest kind on top.
const MOST: u64 = 200 << 20;

/// What the agent says of an endless answer to what ends like this.
async fn said(end: &'static str, status: u16, words: &str) -> io::Result<String> {
    said_with(&[], end, status, words).await
}

async fn said_with(flags: &[&str], end: &'static str, status: u16, words: &str) -> io::Result<String> {
    let fake = Fake::start().await?;
    fake.shared().flood = Some((end, status));
    let host = Host::with_script("true")?.flags(&["--persistent"]).flags(flags);
    let mut agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let line = agent.line(words).await?;
    let (most, sent) = (agent.peak()?, fake.shared().flooded.load(Ordering::Relaxed));
    assert!(most < MOST, "{end}: {most} bytes of memory, {sent} sent");
    agent.kill().await?;
    Ok(line)
}

#[tokio::test]
async fn an_answer_without_end_is_given_up_and_named() -> io::Result<()> {
    for (end, size) in [("/register", 8), ("/heartbeat", 8), ("/bundle", 64), ("/secrets", 8)] {
        let line = said(end, 200, "an answer of more than").await?;
        let expected =
            format!("an answer of more than {size} MiB, which no orchestrator gives; check --orchestrator-url");
        assert!(line.contains(&expected), "{end}: {line}");
    }
    Ok(())
}

#[tokio::test]
async fn an_error_without_end_is_its_status() -> io::Result<()> {
    let line = said("/register", 500, "500 Internal Server Error").await?;
    assert!(line.contains("answers 500"), "{line}");
    Ok(())
}

#[tokio::test]
async fn an_event_without_end_is_given_up_and_named() -> io::Result<()> {
    said("/stream", 200, "an event of more than 1 MiB").await.map(drop)
}

#[tokio::test]
async fn the_owner_sets_the_limits() -> io::Result<()> {
    for (flag, end, words) in [
        ("--max-answer", "/register", "an answer of more than 96 KiB"),
        ("--max-bundle", "/bundle", "an answer of more than 96 KiB"),
        ("--max-event", "/stream", "an event of more than 96 KiB"),
    ] {
        said_with(&[flag, "96KiB"], end, 200, words).await?;
    }
    Ok(())
}

const TELLS: &str = r#"
import json, os, urllib.error, urllib.request
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
for body in ['{"type": "x"}', json.dumps({"type": "x" * 2000}), json.dumps([0] * 60)]:
    request = urllib.request.Request(hook["callback_url"], body.encode(), {"X-API-Key": hook["auth_token"]})
    try: print(urllib.request.urlopen(request).status, flush=True)
    except urllib.error.HTTPError as error: print(error.code, flush=True)
"#;

#[tokio::test]
async fn the_owner_sets_the_limits_of_the_webhook() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_python(TELLS)?.flags(&["--webhook-body", "1KiB", "--webhook-values", "50"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    agent.end().await?;
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), "204\n413\n400\n");
    Ok(())
}

#[tokio::test]
async fn of_a_checkpoints_file_no_more_is_read_than_was_announced() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.earlier = "checkpoint-5".to_owned();
    fake.shared().files.left_behind.insert("checkpoint-5/big".to_owned(), vec![b'x'; 100_000]);
    fake.shared().flood = Some(("/checkpoint-5/big", 200));
    let host = Host::with_script("true")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &json!({"config.json": "{}"}));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("checkpoint-5/big arrived damaged") && said.contains("begins at the beginning"), "{said}");
    // Twice, with what fits into buffers on the way.
    assert!(fake.shared().flooded.load(Ordering::Relaxed) < 64 << 20);
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
async fn a_trainer_that_floods_its_webhook_takes_bounded_memory() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_python(FLOOD)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let pid = host.supervisor("j_1", 1).await.supervisor.pid;
    fake.until("the end of the flood", |shared| shared.log.starts_with(b"flooded").then_some(())).await;
    let most = peak(u32::try_from(pid).unwrap_or_default())?;
    assert!(most < MOST, "{most} bytes of memory");
    fake.stop("j_1", 1, "cancelled");
    fake.status("cancelled").await;
    until("its end", || peak(u32::try_from(pid).unwrap_or_default()).is_err().then_some(())).await;
    agent.kill().await
}
