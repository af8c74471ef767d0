//! A host with several places that leaves once what it runs has ended: it takes nothing more, and says so.

use std::io;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::Host;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// So many times it said that it goes, with what it goes on to run.
fn turned_away(shared: &Shared, times: usize) -> Option<()> {
    let running = json!([{"job_id": "j_1", "attempt": 1}]);
    let said = shared.disconnects.iter().filter(|said| said["left_running"] == running).count();
    let known = shared.registers.iter().skip(1).filter(|register| register["attempts"] == running).count();
    assert!(said <= times && known <= times, "{:?}", shared.disconnects);
    (said == times && known == times).then_some(())
}

#[tokio::test]
async fn a_host_that_finishes_is_offered_nothing_and_hears_a_cancel() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("exec sleep 1000")?;
    let host = host.flags(&["--persistent", "--max-jobs", "2", "--on-stop", "finish"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    fake.until("that it takes nothing more", |shared| turned_away(shared, 1)).await;
    assert_eq!(fake.shared().streams, 1, "it listens");

    // One that still comes is turned away, once.
    fake.offer("j_2", 1, &config());
    fake.until("that it does not take this one", |shared| turned_away(shared, 2)).await;
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats + 2).then_some(())).await;
    {
        let shared = fake.shared();
        turned_away(&shared, 2).ok_or(io::ErrorKind::Other)?;
        assert_eq!((shared.streams, shared.polls), (1, 0), "it listens");
    }
    assert!(!host.attempt("j_2", 1).path().exists());

    fake.stop("j_1", 1, "cancelled");
    fake.status("cancelled").await;
    assert_eq!(agent.end().await?.0, Some(143));
    assert_eq!(fake.words(), ["starting", "running", "cancelled"]);
    Ok(())
}

/// Where nothing is pushed any more, heartbeats bring the cancel, and soon.
#[tokio::test]
async fn a_host_that_finishes_beats_more_often() -> io::Result<()> {
    let fake = Fake::start().await?;
    // Then it is told to beat once an hour.
    fake.shared().hold_streams = true;
    let host = Host::with_script("exec sleep 1000")?;
    let host = host.flags(&["--persistent", "--max-jobs", "2", "--on-stop", "finish"]);
    fake.offer("j_1", 1, &config());
    let agent = host.start(&fake)?;
    fake.status("running").await;
    agent.signal(Signal::SIGTERM)?;
    fake.until("that it takes nothing more", |shared| turned_away(shared, 1)).await;
    fake.stop("j_1", 1, "cancelled");
    fake.status("cancelled").await;
    assert_eq!(agent.end().await?.0, Some(143));
    Ok(())
}
