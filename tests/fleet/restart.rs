//! SIGTERM stops the server in order and quickly, and all clients reconnect to the next one.

use nix::sys::signal::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{ADMIN, TestFleet, trainers, wait_until};

#[tokio::test]
async fn open_streams_do_not_delay_shutdown() {
    let mut fleet = TestFleet::start().await;
    let (idle, busy) =
        (fleet.add_host("idle").await, fleet.add_host("busy").await.with_python_trainer(trainers::AT_THE_GATE));
    let _busy_agent = busy.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    let _idle_agent = idle.start();
    fleet.api.wait_for_worker(&idle.worker, "idle").await;
    let events = format!("{}/api/events", fleet.api.url());
    let browser = reqwest::Client::new().get(events).bearer_auth(ADMIN).send().await.expect("a stream");
    assert_eq!(browser.status(), 200);

    let (code, output) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{output}");
    assert!(!output.contains("did not close in time"), "the end was forced: {output}");
    drop(browser);

    fleet.start_server().await;
    fleet.api.wait_for_worker(&idle.worker, "idle").await;
    fleet.api.wait_for_worker(&busy.worker, "busy").await;
    busy.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

#[tokio::test]
async fn second_signal_stops_immediately() {
    let mut fleet = TestFleet::start().await;
    // A response waits for the rest of its request, which the server has asked for.
    let mut slow = TcpStream::connect(("127.0.0.1", fleet.port())).await.expect("connected");
    let head = format!(
        "POST /api/queue/submit HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {ADMIN}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n"
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.expect("a response");
    assert_eq!(&first, b"HTTP/1.1 100");

    let server = fleet.server();
    server.signal(Signal::SIGTERM);
    wait_until("the shutdown to begin", async || {
        server.output().contains("a second signal exits immediately").then_some(())
    })
    .await;
    assert!(server.is_running(), "it waits for open requests: {}", server.output());
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().await, Some(143), "{}", server.output());
}
