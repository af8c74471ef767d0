//! A server or an agent whose stderr is a pipe that nobody reads, or whose reader has ended, works as before and stops when told.

use std::io::{PipeReader, PipeWriter, Read, pipe};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;

use crate::harness::Fleet;

/// The last line of a server's log; a reader that gets it had not stopped reading.
const STOPPING: &str = "a second signal ends at once";

/// A pipe that a few log lines fill.
fn small_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().expect("a pipe");
    fcntl(&writer, FcntlArg::F_SETPIPE_SZ(4_096)).expect("a small pipe");
    (reader, writer)
}

async fn assert_server_works_and_stops(fleet: &mut Fleet) {
    // Enough for the log to fill the pipe.
    for _ in 0..50 {
        fleet.api.submit("digits-quick").await;
    }
    let server = fleet.server();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().await, Some(0));
}

#[tokio::test]
async fn a_server_whose_log_is_not_read() {
    let mut fleet = Fleet::start().await;
    let (mut reader, writer) = small_pipe();
    fleet.restart_server_into(writer.into()).await;
    assert_server_works_and_stops(&mut fleet).await;
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("text");
    assert!(!said.is_empty() && !said.contains(STOPPING), "the pipe was not full: {said}");
}

#[tokio::test]
async fn a_server_whose_logs_reader_is_gone() {
    let mut fleet = Fleet::start().await;
    let (reader, writer) = small_pipe();
    drop(reader);
    fleet.restart_server_into(writer.into()).await;
    assert_server_works_and_stops(&mut fleet).await;
}

#[tokio::test]
async fn an_agent_whose_log_is_not_read_or_whose_logs_reader_is_gone() {
    let fleet = Fleet::start().await;
    let host = fleet.host("unheard").await.flags(&["--verbose"]);
    for is_there in [true, false] {
        let (reader, writer) = small_pipe();
        let reader = Some(reader).filter(|_| is_there);
        let mut agent = host.start_into(writer.into());
        // Enough for the log of a busy agent to fill the pipe.
        for _ in 0..4 {
            let job = fleet.api.submit("digits-quick").await;
            fleet.api.until_job(&job, "completed").await;
        }
        agent.signal(Signal::SIGTERM);
        assert_eq!(agent.ended().await, Some(143));
        drop(reader);
    }
}
