//! What the agent says where the documentation has a headline, in the words that people search for.

use std::io;

use serde_json::json;

use super::fake::Fake;
use super::host::{Host, until};
use super::tls::orchestrator;

fn ephemeral() -> io::Result<Host> {
    Ok(Host::with_script("")?.flags(&["--give-up-after", "1"]))
}

#[tokio::test]
async fn connection_refused() -> io::Result<()> {
    let (_, said) = ephemeral()?.start_at("http://127.0.0.1:1")?.end().await?;
    assert!(said.contains("Connection refused") && said.contains("--host 0.0.0.0"), "{said}");
    Ok(())
}

#[tokio::test]
async fn invalid_token() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().refuse_token = true;
    let (code, said) = ephemeral()?.start(&fake)?.end().await?;
    assert!(code == Some(77) && said.contains("rotated"), "{said}");
    assert_eq!(said.matches("Invalid token").count(), 1, "{said}");
    // White space around it is nobody's fault, white space in it is somebody's.
    fake.shared().refuse_token = false;
    let mut padded = Host::with_script("")?.flags(&["--max-idle", "1"]);
    padded.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), " wt_test_token\n".to_owned()));
    assert_eq!(padded.start(&fake)?.end().await?.0, Some(0));
    padded.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_ test".to_owned()));
    let (code, said) = padded.start(&fake)?.end().await?;
    assert!(code == Some(78) && said.contains("white space"), "{said}");
    Ok(())
}

#[tokio::test]
async fn ssl_certificate_verify_failed() -> io::Result<()> {
    let known = orchestrator("localhost").await?;
    let (_, said) = ephemeral()?.start(&known.fake)?.end().await?;
    assert!(said.contains("SSL certificate verify failed") && said.contains("--ssl-no-verify"), "{said}");
    Ok(())
}

#[tokio::test]
async fn heartbeat_timeout() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    // It does not answer any more, as if the network between were cut.
    fake.shared().busy = true;
    fake.shared().cut();
    let trainer = host.supervisor("j_1", 1).await.trainer;
    let noticed = agent.says("Heartbeat timeout (4s)").await?;
    assert!(noticed.contains("SIMPLETUNER_HEARTBEAT_TIMEOUT"), "{noticed}");
    assert!(trainer.is_alive(), "what runs goes on");
    Ok(())
}

#[tokio::test]
async fn process_crash() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_python("print('step 1', flush=True)\nraise ValueError('no images')")?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (_, said) = agent.end().await?;
    assert!(said.contains("Process crash") && said.contains("ValueError: no images"), "{said}");
    assert!(said.contains("trainer.log"), "where to look: {said}");
    let report = fake.status("failed").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("ValueError: no images")), "{report}");
    until("the whole traceback", || {
        String::from_utf8_lossy(&fake.shared().log).contains("Traceback (most recent call last)").then_some(())
    })
    .await;
    Ok(())
}
