//! Everything received as JSON or in a query string: a value stays the same when it is written and read again, and a
//! field unknown to this build changes nothing. The first byte selects the type.

use std::fs;
use std::path::Path;

use app::protocol::access::factors::ConfirmTotp;
use app::protocol::access::notices::ReadNotices;
use app::protocol::access::{
    ChangePassword, CreateToken, CreateUser, EditUser, Reauthenticate, ResetPassword, SessionView, UserDetail,
};
use app::protocol::agents::dispatch::WorkerEvent;
use app::protocol::agents::{
    DisconnectRequest, HeartbeatRequest, HeartbeatResponse, LogAck, ProgressReport, RegisterRequest, RegisterResponse,
    ResumeCheckpoint, StatusReport, UploadResponse,
};
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use app::protocol::audit::{AuditEntry, AuditQuery};
use app::protocol::configs::ConfigBundle;
use app::protocol::jobs::submit::SetPriority;
use app::protocol::jobs::{JobView, JobsQuery, LogChunk, SubmitJob};
use app::protocol::problem::Problem;
use app::protocol::secrets::{JobSecrets, PutSecret, SecretQuery};
use app::protocol::topic::TopicsChanged;
use app::protocol::workers::{CreateWorker, DrainWorker, EditWorker, RotateToken, WorkerView, WorkersQuery};
use axum::extract::Query;
use axum::http::Uri;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Checks a body of one type.
type Check = fn(&[u8]);

const CHECKS: &[Check] = &[
    // From agents.
    body::<RegisterRequest>,
    body::<HeartbeatRequest>,
    body::<StatusReport>,
    body::<ProgressReport>,
    body::<DisconnectRequest>,
    // From users and scripts.
    body::<SubmitJob>,
    body::<SetPriority>,
    body::<CreateWorker>,
    body::<EditWorker>,
    body::<DrainWorker>,
    body::<RotateToken>,
    body::<CreateUser>,
    body::<EditUser>,
    body::<Reauthenticate>,
    body::<ResetPassword>,
    body::<ChangePassword>,
    body::<CreateToken>,
    body::<PutSecret>,
    body::<ConfigBundle>,
    query::<JobsQuery>,
    query::<WorkersQuery>,
    query::<AuditQuery>,
    query::<SecretQuery>,
    // From servers, read by agents and browsers.
    body::<RegisterResponse>,
    body::<HeartbeatResponse>,
    body::<LogAck>,
    event,
    body::<JobSecrets>,
    body::<SessionView>,
    body::<UserDetail>,
    body::<WorkerView>,
    body::<JobView>,
    body::<LogChunk>,
    body::<TopicsChanged>,
    body::<AuditEntry>,
    body::<Problem>,
    // Checkpoints, and files in pieces.
    body::<CompletedCheckpoint>,
    body::<ResumeCheckpoint>,
    body::<UploadResponse>,
    // Accounts.
    body::<ConfirmTotp>,
    body::<ReadNotices>,
];

/// Writes the examples of types that have one with all fields as seeds, so that new fields are included.
///
/// # Errors
/// If the directory is not writable.
pub fn write_examples(directory: &Path) -> std::io::Result<()> {
    let submit = serde_json::to_vec(&SubmitJob::example()).expect("an example can be written");
    let job = serde_json::to_vec(&JobView::example()).expect("an example can be written");
    let query = serde_urlencoded::to_string(JobsQuery::example()).expect("plain fields").into_bytes();
    for (name, index, example) in [("submit", b'5', submit), ("job", b'O', job), ("jobs_query", b'C', query)] {
        fs::write(directory.join(name), [&[index], example.as_slice()].concat())?;
    }
    Ok(())
}

/// See the module.
pub fn check(data: &[u8]) {
    let Some((index, body)) = data.split_first() else { return };
    // Indexes start at `0`, so that a seed can be written by hand.
    CHECKS[usize::from(index.wrapping_sub(b'0')) % CHECKS.len()](body);
}

fn body<T: Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&value).expect("a value that can be written");
    let reparsed = serde_json::from_slice::<T>(&written).map_err(|error| panic!("{error}: {}", as_text(&written)));
    assert!(reparsed.is_ok_and(|reparsed| reparsed == value), "a different value: {}", as_text(&written));
    if let Some(inside) = written.strip_prefix(b"{") {
        let comma: &[u8] = if inside == b"}" { b"" } else { b"," };
        let newer = [br#"{"from a newer build":[{"x":null}]"#, comma, inside].concat();
        assert!(serde_json::from_slice::<T>(&newer).is_ok_and(|newer| newer == value), "{}", as_text(&newer));
    }
}

/// An event of a type unknown to this build is accepted.
fn event(bytes: &[u8]) {
    body::<WorkerEvent>(bytes);
    let kind = serde_json::to_string(&String::from_utf8_lossy(bytes)).expect("text");
    assert!(serde_json::from_str::<WorkerEvent>(&format!(r#"{{"type":"x{}}}"#, &kind[1..])).is_ok());
}

fn query<T: Serialize + DeserializeOwned + PartialEq>(bytes: &[u8]) {
    let Ok(uri) = Uri::try_from([b"/?", bytes].concat()) else { return };
    let Ok(Query(value)) = Query::<T>::try_from_uri(&uri) else { return };
    let written = serde_urlencoded::to_string(&value).expect("plain fields");
    let reparsed = Uri::try_from(format!("/?{written}")).ok().and_then(|uri| Query::<T>::try_from_uri(&uri).ok());
    assert!(reparsed.is_some_and(|Query(reparsed)| reparsed == value), "a different value: {written}");
}

fn as_text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
