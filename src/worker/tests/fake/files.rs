//! Files that come in pieces, and checkpoints that go back.

use std::collections::BTreeMap;

use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Body, Shared, Stored, full, ok, problem};
use crate::clock::hex;

/// What the orchestrator has of files, beside the whole ones in [`Shared::artifacts`].
#[derive(Debug, Default)]
pub struct Files {
    /// What has come of files in pieces, by path.
    pub partial: BTreeMap<String, Vec<u8>>,
    /// Every piece: path, offset and length.
    pub pieces: Vec<(String, usize, usize)>,
    /// Checkpoints that were said to be whole.
    pub whole: Vec<Value>,
    /// The checkpoint that earlier attempts have left: its name, and its files.
    pub earlier: String,
    pub left_behind: BTreeMap<String, Vec<u8>>,
    /// Another takes its place under this name once a file of it was sent.
    pub superseded_by: Option<String>,
    /// What is sent of its files is not what was described.
    pub damaged: bool,
    /// Its files are named, and not there: a backup has left them out.
    pub refuse_downloads: bool,
    /// Every request for a file of it: path, and where it began.
    pub fetched: Vec<(String, usize)>,
    /// Keep half of so many pieces, and answer 503.
    pub cut_pieces: u32,
    /// Forget everything of a file once so many bytes of it have come.
    pub forget_at: Option<usize>,
    /// Send so many files of a checkpoint only by half.
    pub cut_downloads: u32,
    /// Answer 503 to all pieces but so many.
    pub most_pieces: Option<usize>,
    /// Forget a file before its checkpoint is said to be whole.
    pub lose: Option<String>,
}

/// What a request names.
struct Asked<'a> {
    path: &'a str,
    query: BTreeMap<&'a str, &'a str>,
    sha256: &'a str,
}

impl Asked<'_> {
    fn number(&self, name: &str) -> Option<usize> {
        self.query.get(name)?.parse().ok()
    }
}

pub fn answer(shared: &mut Shared, rest: &str, parts: &Parts, body: &Bytes) -> Response<Body> {
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).collect();
    let asked = |path| Asked { path, query, sha256: header("x-content-sha256") };
    if let Some(path) = rest.strip_prefix("artifacts/") {
        return match parts.method {
            Method::GET => progress(shared, &asked(path)),
            _ => put(shared, &asked(path), body),
        };
    }
    match (rest.strip_prefix("checkpoint"), &parts.method) {
        (Some(""), &Method::GET) => ok(&json!({
            "name": shared.files.earlier,
            "files": shared.files.left_behind.iter().map(|(path, bytes)| described(path, bytes)).collect::<Vec<_>>(),
        })),
        (Some(""), _) => mark(shared, body),
        (Some(path), _) => send(shared, path.trim_start_matches('/'), header("range")),
        (None, _) => problem(404, "no_such_route", json!({})),
    }
}

fn progress(shared: &Shared, asked: &Asked) -> Response<Body> {
    let sha256 = asked.query.get("sha256").copied().unwrap_or_default();
    let whole = shared.artifacts.get(asked.path).filter(|stored| hex(&Sha256::digest(&stored.bytes)) == sha256);
    let partial = shared.files.partial.get(&key(asked.path, sha256)).map_or(0, Vec::len);
    ok(&json!({"received": whole.map_or(partial, |stored| stored.bytes.len())}))
}

/// What has come is of exactly one content.
fn key(path: &str, sha256: &str) -> String {
    format!("{path} {sha256}")
}

fn put(shared: &mut Shared, asked: &Asked, body: &Bytes) -> Response<Body> {
    let Some(offset) = asked.number("offset") else { return store(shared, asked, body.to_vec()) };
    let Some(size) = asked.number("size") else { return problem(422, "invalid", json!({})) };
    if shared.files.most_pieces.is_some_and(|most| shared.files.pieces.len() >= most) {
        return problem(503, "busy", json!({}));
    }
    shared.files.pieces.push((asked.path.to_owned(), offset, body.len()));
    let key = key(asked.path, asked.sha256);
    let mut there = shared.files.partial.remove(&key).unwrap_or_default();
    if shared.files.forget_at.is_some_and(|limit| there.len() >= limit) {
        shared.files.forget_at = None;
        there.clear();
    }
    if offset > there.len() {
        let received = there.len();
        shared.files.partial.insert(key, there);
        return problem(409, "upload_gap", json!({"received": received}));
    }
    let cut = shared.files.cut_pieces > 0;
    let kept = if cut { &body[..body.len() / 2] } else { &body[..] };
    there.extend_from_slice(kept.get(there.len() - offset..).unwrap_or_default());
    if cut {
        shared.files.cut_pieces -= 1;
        shared.files.partial.insert(key, there);
        return problem(503, "cut_short", json!({}));
    }
    if there.len() < size {
        let received = there.len();
        shared.files.partial.insert(key, there);
        return ok(&json!({"received": received}));
    }
    store(shared, asked, there)
}

fn store(shared: &mut Shared, asked: &Asked, bytes: Vec<u8>) -> Response<Body> {
    let found = hex(&Sha256::digest(&bytes));
    let size = bytes.len();
    if found != asked.sha256 {
        return problem(400, "upload_refused", json!({}));
    }
    let kind = asked.query.get("kind").copied().unwrap_or_default().to_owned();
    shared.artifacts.insert(asked.path.to_owned(), Stored { kind, bytes });
    ok(&json!({"path": asked.path, "size_bytes": size, "sha256": found}))
}

/// A checkpoint is whole: if it is.
fn mark(shared: &mut Shared, body: &Bytes) -> Response<Body> {
    let whole: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(path) = shared.files.lose.take() {
        shared.artifacts.remove(&path);
    }
    for file in whole["files"].as_array().into_iter().flatten() {
        let stored = file["path"].as_str().and_then(|path| shared.artifacts.get(path));
        if stored.is_none_or(|stored| file["sha256"] != hex(&Sha256::digest(&stored.bytes))) {
            return problem(409, "checkpoint_incomplete", json!({"path": file["path"]}));
        }
    }
    shared.files.whole.push(whole);
    ok(&json!({"success": true}))
}

fn described(path: &str, bytes: &[u8]) -> Value {
    json!({"path": path, "size_bytes": bytes.len(), "sha256": hex(&Sha256::digest(bytes))})
}

fn send(shared: &mut Shared, path: &str, range: &str) -> Response<Body> {
    if !shared.files.fetched.is_empty()
        && let Some(newer) = shared.files.superseded_by.take()
    {
        let older = std::mem::replace(&mut shared.files.earlier, newer.clone());
        let files = std::mem::take(&mut shared.files.left_behind).into_iter();
        shared.files.left_behind = files.map(|(path, bytes)| (path.replacen(&older, &newer, 1), bytes)).collect();
    }
    let there = shared.files.left_behind.get(path).filter(|_| !shared.files.refuse_downloads);
    let Some(bytes) = there else {
        return problem(404, "artifact_not_found", json!({}));
    };
    let start = range.strip_prefix("bytes=").and_then(|range| range.strip_suffix('-')?.parse::<usize>().ok());
    let from = start.unwrap_or_default();
    if from > 0 && from >= bytes.len() {
        return problem(416, "range_not_satisfiable", json!({}));
    }
    let mut rest = bytes[from..].to_vec();
    if let Some(first) = rest.first_mut().filter(|_| shared.files.damaged) {
        *first ^= 1;
    }
    let rest = Bytes::from(rest);
    let cut = shared.files.cut_downloads > 0;
    shared.files.fetched.push((path.to_owned(), from));
    shared.files.cut_downloads = shared.files.cut_downloads.saturating_sub(1);
    // As from a proxy whose own connection broke.
    let sent = if cut { rest.slice(..rest.len() / 2) } else { rest };
    full(if start.is_some() { 206 } else { 200 }, "application/octet-stream", sent)
}
