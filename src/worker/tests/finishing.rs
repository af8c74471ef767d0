//! A host for several concurrent jobs that exits once its running jobs have ended: it accepts no more jobs, and reports
//! that.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::TestHost;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// Returns whether it has reported this many times that it is leaving, with its running jobs.
fn declined_times(shared: &FakeState, count: usize) -> Option<()> {
    let running = json!([{"job_id": "j_1", "attempt": 1}]);
    let disconnected = shared.disconnects.iter().filter(|disconnect| disconnect["left_running"] == running).count();
    let registered = shared.registrations.iter().skip(1).filter(|register| register["attempts"] == running).count();
    assert!(disconnected <= count && registered <= count, "{:?}", shared.disconnects);
    (disconnected == count && registered == count).then_some(())
}

#[tokio::test]
async fn finishing_host_gets_no_offers_but_gets_cancels() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("exec sleep 1000")?;
    let host = host.flags(&["--persistent", "--max-jobs", "2", "--on-stop", "finish"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    fake.wait_until("a disconnect", |shared| declined_times(shared, 1)).await;
    assert_eq!(fake.state().streams, 1, "it has opened another stream");

    // A later offer is declined once.
    fake.offer("j_2", 1, &config());
    fake.wait_until("the offer to be declined", |shared| declined_times(shared, 2)).await;
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 2).then_some(())).await;
    {
        let shared = fake.state();
        declined_times(&shared, 2).ok_or(io::ErrorKind::Other)?;
        assert_eq!((shared.streams, shared.polls), (1, 0), "it has opened another stream");
    }
    assert!(!host.attempt("j_2", 1).path().exists());

    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert_eq!(agent.wait_for_exit().await?.0, Some(143));
    assert_eq!(fake.reported_statuses(), ["starting", "running", "cancelled"]);
    Ok(())
}

/// Without a stream, heartbeats deliver the cancel, and soon.
#[tokio::test]
async fn finishing_host_sends_heartbeats_more_often() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // The configured heartbeat interval is an hour.
    fake.state().hold_streams = true;
    let host = TestHost::with_script("exec sleep 1000")?;
    let host = host.flags(&["--persistent", "--max-jobs", "2", "--on-stop", "finish"]);
    fake.offer("j_1", 1, &config());
    let agent = host.start(&fake)?;
    fake.wait_for_status("running").await;
    agent.signal(Signal::SIGTERM)?;
    fake.wait_until("a disconnect", |shared| declined_times(shared, 1)).await;
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert_eq!(agent.wait_for_exit().await?.0, Some(143));
    Ok(())
}
