//! A server or an agent whose stderr is a pipe that is not read, or is closed, keeps working and stops on request.

use std::io::{PipeReader, PipeWriter, Read, pipe};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;

use crate::harness::TestFleet;

/// The last line of a server's log, which shows that its reader kept reading.
const STOPPING: &str = "a second signal exits immediately";

/// A pipe with a small buffer.
fn small_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4_096)).expect("a small pipe");
    (reader, writer)
}

async fn assert_server_works_and_stops(fleet: &mut TestFleet) {
    // Enough to fill the pipe with log lines.
    for _ in 0..50 {
        fleet.api.submit("digits-quick").await;
    }
    let server = fleet.server();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().await, Some(0));
}

#[tokio::test]
async fn server_with_an_unread_log() {
    let mut fleet = TestFleet::start().await;
    let (mut reader, writer) = small_pipe();
    fleet.restart_server_with_stderr(writer.into()).await;
    assert_server_works_and_stops(&mut fleet).await;
    let mut rest = String::new();
    reader.read_to_string(&mut rest).expect("text");
    assert!(!rest.is_empty() && !rest.contains(STOPPING), "the pipe was not full: {rest}");
}

#[tokio::test]
async fn server_with_a_closed_log() {
    let mut fleet = TestFleet::start().await;
    let (reader, writer) = small_pipe();
    drop(reader);
    fleet.restart_server_with_stderr(writer.into()).await;
    assert_server_works_and_stops(&mut fleet).await;
}

#[tokio::test]
async fn agent_with_an_unread_or_closed_log() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("unheard").await.with_flags(&["--verbose"]);
    for is_open in [true, false] {
        let (reader, writer) = small_pipe();
        let reader = Some(reader).filter(|_| is_open);
        let mut agent = host.start_with_stderr(writer.into());
        // Enough to fill the pipe with log lines of a busy agent.
        for _ in 0..4 {
            let job = fleet.api.submit("digits-quick").await;
            fleet.api.wait_for_job(&job, "completed").await;
        }
        agent.signal(Signal::SIGTERM);
        assert_eq!(agent.wait().await, Some(143));
        drop(reader);
    }
}
