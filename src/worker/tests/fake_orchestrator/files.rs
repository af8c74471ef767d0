//! Files that arrive in chunks, and checkpoints that are downloaded.

use std::collections::BTreeMap;

use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{ArtifactUpload, Body, FakeState, bytes_response, ok_response, problem_response};
use crate::worker::clock::encode_hex;

/// The files of the orchestrator, in addition to the complete ones in [`FakeState`].
#[derive(Debug, Default)]
pub struct FakeFileStore {
    /// Received bytes of chunked files, by path.
    pub partial: BTreeMap<String, Vec<u8>>,
    /// Every chunk: path, offset and length.
    pub chunks: Vec<(String, usize, usize)>,
    /// Checkpoints that were reported as complete.
    pub complete_checkpoints: Vec<Value>,
    /// The checkpoint of earlier attempts: its name and files.
    pub checkpoint_name: String,
    pub checkpoint_files: BTreeMap<String, Vec<u8>>,
    /// It is replaced by one with this name once a file of it was sent.
    pub superseded_by: Option<String>,
    /// The content of its files differs from their description.
    pub is_damaged: bool,
    /// Its files are listed but missing: the backup did not contain them.
    pub reject_downloads: bool,
    /// Every request for one of its files: path and offset.
    pub fetched: Vec<(String, usize)>,
    /// Keep half of this many chunks, and respond with 503.
    pub truncated_chunks: u32,
    /// Forget a file once this many bytes of it have arrived.
    pub forget_at: Option<usize>,
    /// Send only half of this many files of a checkpoint.
    pub truncated_downloads: u32,
    /// Respond with 503 to all chunks after this many.
    pub max_chunks: Option<usize>,
    /// Forget this file before its checkpoint is reported as complete.
    pub lost_file: Option<String>,
}

/// The parameters of a request.
struct UploadRequest<'a> {
    path: &'a str,
    query: BTreeMap<&'a str, &'a str>,
    sha256: &'a str,
}

impl UploadRequest<'_> {
    fn number(&self, name: &str) -> Option<usize> {
        self.query.get(name)?.parse().ok()
    }
}

pub fn respond(shared: &mut FakeState, rest: &str, parts: &Parts, body: &Bytes) -> Response<Body> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
    let request = |path| UploadRequest { path, query, sha256: header("x-content-sha256") };
    if let Some(path) = rest.strip_prefix("artifacts/") {
        return match parts.method {
            Method::GET => progress(shared, &request(path)),
            _ => put(shared, &request(path), body),
        };
    }
    match (rest.strip_prefix("checkpoint"), &parts.method) {
        (Some(""), &Method::GET) => ok_response(&json!({
            "name": shared.files.checkpoint_name,
            "files": shared.files.checkpoint_files.iter().map(|(path, bytes)| file_json(path, bytes)).collect::<Vec<_>>(),
        })),
        (Some(""), _) => complete_checkpoint(shared, body),
        (Some(path), _) => download(shared, path.trim_start_matches('/'), header("range")),
        (None, _) => problem_response(404, "no_such_route", json!({})),
    }
}

fn progress(shared: &FakeState, request: &UploadRequest) -> Response<Body> {
    let sha256 = request.query.get("sha256").copied().unwrap_or_default();
    let complete =
        shared.artifacts.get(request.path).filter(|stored| encode_hex(&Sha256::digest(&stored.bytes)) == sha256);
    let partial = shared.files.partial.get(&key(request.path, sha256)).map_or(0, Vec::len);
    ok_response(&json!({"received": complete.map_or(partial, |stored| stored.bytes.len())}))
}

/// Received bytes belong to exactly one content.
fn key(path: &str, sha256: &str) -> String {
    format!("{path} {sha256}")
}

fn put(shared: &mut FakeState, request: &UploadRequest, body: &Bytes) -> Response<Body> {
    let Some(offset) = request.number("offset") else { return store(shared, request, body.to_vec()) };
    let Some(size) = request.number("size") else { return problem_response(422, "invalid", json!({})) };
    if shared.files.max_chunks.is_some_and(|max_chunks| shared.files.chunks.len() >= max_chunks) {
        return problem_response(503, "busy", json!({}));
    }
    shared.files.chunks.push((request.path.to_owned(), offset, body.len()));
    let key = key(request.path, request.sha256);
    let mut stored = shared.files.partial.remove(&key).unwrap_or_default();
    if shared.files.forget_at.is_some_and(|limit| stored.len() >= limit) {
        shared.files.forget_at = None;
        stored.clear();
    }
    if offset > stored.len() {
        let received = stored.len();
        shared.files.partial.insert(key, stored);
        return problem_response(409, "upload_gap", json!({"received": received}));
    }
    let is_truncated = shared.files.truncated_chunks > 0;
    let received_part = if is_truncated { &body[..body.len() / 2] } else { &body[..] };
    stored.extend_from_slice(received_part.get(stored.len() - offset..).unwrap_or_default());
    if is_truncated {
        shared.files.truncated_chunks -= 1;
        shared.files.partial.insert(key, stored);
        return problem_response(503, "cut_short", json!({}));
    }
    if stored.len() < size {
        let received = stored.len();
        shared.files.partial.insert(key, stored);
        return ok_response(&json!({"received": received}));
    }
    store(shared, request, stored)
}

fn store(shared: &mut FakeState, request: &UploadRequest, bytes: Vec<u8>) -> Response<Body> {
    let sha256 = encode_hex(&Sha256::digest(&bytes));
    let size = bytes.len();
    if sha256 != request.sha256 {
        return problem_response(400, "upload_rejected", json!({}));
    }
    let kind = request.query.get("kind").copied().unwrap_or_default().to_owned();
    shared.artifacts.insert(request.path.to_owned(), ArtifactUpload { kind, bytes });
    ok_response(&json!({"path": request.path, "size_bytes": size, "sha256": sha256}))
}

/// Handles the report of a complete checkpoint.
fn complete_checkpoint(shared: &mut FakeState, body: &Bytes) -> Response<Body> {
    let checkpoint: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(path) = shared.files.lost_file.take() {
        shared.artifacts.remove(&path);
    }
    for file in checkpoint["files"].as_array().into_iter().flatten() {
        let stored = file["path"].as_str().and_then(|path| shared.artifacts.get(path));
        if stored.is_none_or(|stored| file["sha256"] != encode_hex(&Sha256::digest(&stored.bytes))) {
            return problem_response(409, "checkpoint_incomplete", json!({"path": file["path"]}));
        }
    }
    shared.files.complete_checkpoints.push(checkpoint);
    ok_response(&json!({"success": true}))
}

fn file_json(path: &str, bytes: &[u8]) -> Value {
    json!({"path": path, "size_bytes": bytes.len(), "sha256": encode_hex(&Sha256::digest(bytes))})
}

fn download(shared: &mut FakeState, path: &str, range: &str) -> Response<Body> {
    if !shared.files.fetched.is_empty()
        && let Some(newer) = shared.files.superseded_by.take()
    {
        let older = std::mem::replace(&mut shared.files.checkpoint_name, newer.clone());
        let files = std::mem::take(&mut shared.files.checkpoint_files).into_iter();
        shared.files.checkpoint_files = files.map(|(path, bytes)| (path.replacen(&older, &newer, 1), bytes)).collect();
    }
    let content = shared.files.checkpoint_files.get(path).filter(|_| !shared.files.reject_downloads);
    let Some(bytes) = content else {
        return problem_response(404, "artifact_not_found", json!({}));
    };
    let start = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')?.parse::<usize>().ok());
    let from = start.unwrap_or_default();
    if from > 0 && from >= bytes.len() {
        return problem_response(416, "range_not_satisfiable", json!({}));
    }
    let mut rest = bytes[from..].to_vec();
    if let Some(first) = rest.first_mut().filter(|_| shared.files.is_damaged) {
        *first ^= 1;
    }
    let rest = Bytes::from(rest);
    let is_truncated = shared.files.truncated_downloads > 0;
    shared.files.fetched.push((path.to_owned(), from));
    shared.files.truncated_downloads = shared.files.truncated_downloads.saturating_sub(1);
    // As from a proxy whose own connection broke.
    let sent = if is_truncated { rest.slice(..rest.len() / 2) } else { rest };
    bytes_response(if start.is_some() { 206 } else { 200 }, "application/octet-stream", sent)
}
