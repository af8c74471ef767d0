//! A job's trace, from the offer to the trainer, every report and the log.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, TRACE};
use super::test_host::TestHost;

#[tokio::test]
async fn trace_reaches_trainer_reports_and_log() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("env | grep ^TRACEPARENT")?.flags(&["--log-format", "json"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    let log = String::from_utf8_lossy(&shared.log);
    assert!(log.contains(&format!("TRACEPARENT={TRACE}\n")), "{log}");
    for request in ["status", "bundle", "logs"] {
        assert!(shared.traces.contains(&format!("{request} {TRACE}")), "{request}: {:?}", shared.traces);
    }
    assert!(shared.traces.iter().all(|trace| trace.ends_with(TRACE)), "{:?}", shared.traces);
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).expect("JSON in each line")).collect();
    let job_lines: Vec<_> = lines.iter().filter(|line| line["job_id"] == "j_1").collect();
    assert!(!job_lines.is_empty(), "{output}");
    assert!(job_lines.iter().all(|line| line["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"), "{output}");
    Ok(())
}
