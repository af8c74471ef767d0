//! The endpoints of one attempt, opened by its job token.

use std::collections::BTreeMap;
use std::time::Duration;

use app::domain::trace::Trace;
use app::protocol::checkpoints::WholeCheckpoint;
use app::protocol::dispatch::BundleRef;
use app::protocol::secrets::JobSecrets;
use app::protocol::status::ArtifactKind;
use app::protocol::worker::{
    Accepted, ArtifactAck, EarlierCheckpoint, LogAck, ProgressReport, StatusReport, UploadProgress,
};
use bytes::Bytes;
use reqwest::{Body, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Api, ApiError, SHORT};
use crate::clock;
use crate::files::Key;
use crate::secret::Secret;

const JOB_TOKEN: &str = "X-Upload-Token";
const TRACEPARENT: &str = "traceparent";
/// An upload slower than this is given up and begun again.
const SLOWEST_BYTES_PER_SECOND: u64 = 50_000;

/// One attempt at the orchestrator.
#[derive(Debug, Clone)]
pub struct JobApi {
    api: Api,
    key: Key,
    token: Secret,
    trace: Option<Trace>,
}

impl JobApi {
    /// For this attempt.
    pub fn new(api: Api, key: Key, token: Secret, trace: Option<Trace>) -> Self {
        Self { api, key, token, trace }
    }

    fn url(&self, rest: &[&str], query: &str) -> Result<Url, ApiError> {
        let mut url = self.api.locate("api/workers/job/")?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(self.key.job_id.as_str()).extend(rest);
        }
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        Ok(url)
    }

    async fn ask<T: DeserializeOwned>(&self, request: impl FnOnce() -> RequestBuilder) -> Result<T, ApiError> {
        let sent = clock::boot_ms();
        let answer = self.api.json(self.traced(request()).header(JOB_TOKEN, self.token.header())).await;
        // A report of an attempt that is in force is a sign of life.
        if answer.is_ok() {
            self.api.lease.renew(sent);
        }
        answer
    }

    fn traced(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.trace {
            Some(trace) => request.header(TRACEPARENT, trace.to_string()),
            None => request,
        }
    }

    /// `POST …/status`.
    pub async fn status(&self, report: &StatusReport) -> Result<(), ApiError> {
        let url = self.url(&["status"], "")?;
        self.ask::<Accepted>(|| self.api.http.post(url.clone()).json(report).timeout(SHORT)).await.map(drop)
    }

    /// `POST …/progress`.
    pub async fn progress(&self, report: &ProgressReport) -> Result<(), ApiError> {
        let url = self.url(&["progress"], "")?;
        let send = || self.api.http.post(url.clone()).json(report).timeout(SHORT);
        self.ask::<serde::de::IgnoredAny>(send).await.map(drop)
    }

    /// `PUT …/logs`: bytes from this offset on, before which so many were dropped that the orchestrator does not have.
    pub async fn logs(&self, offset: u64, dropped: u64, bytes: Bytes) -> Result<LogAck, ApiError> {
        let gap = if dropped > 0 { format!("&dropped={dropped}") } else { String::new() };
        let url = self.url(&["logs"], &format!("attempt={}&offset={offset}{gap}", self.key.attempt))?;
        self.ask(|| {
            let request = self.api.http.put(url.clone()).header("Content-Type", "application/octet-stream");
            request.body(bytes.clone()).timeout(SHORT * 3)
        })
        .await
    }

    /// `GET …/bundle`: the body as it came.
    pub async fn bundle(&self, bundle: &BundleRef) -> Result<Bytes, ApiError> {
        let url = self.api.locate(&bundle.url)?;
        let request = self.api.http.get(url).header(JOB_TOKEN, self.token.header()).timeout(SHORT * 6);
        let response = self.api.send(self.traced(request)).await?;
        self.api.read(response, self.api.bounds.max_bundle).await
    }

    /// `POST …/secrets`: what the job is given.
    pub async fn secrets(&self) -> Result<BTreeMap<String, String>, ApiError> {
        let url = self.url(&["secrets"], &format!("attempt={}", self.key.attempt))?;
        self.ask::<JobSecrets>(|| self.api.http.post(url.clone()).timeout(SHORT)).await.map(|given| given.secrets)
    }

    /// `PUT …/artifacts/{path}`, the whole file at once. `body` is asked for anew at each try.
    pub async fn artifact(&self, file: &Upload<'_>, body: impl Fn() -> Body) -> Result<ArtifactAck, ApiError> {
        let query = format!("attempt={}&kind={}", self.key.attempt, file.kind.as_str());
        self.put(file, &query, file.size, body).await
    }

    /// `PUT …/artifacts/{path}` with `offset`: so many bytes from there on.
    pub async fn piece(
        &self,
        file: &Upload<'_>,
        (offset, length): (u64, u64),
        body: impl Fn() -> Body,
    ) -> Result<Taken, ApiError> {
        let (attempt, kind, size) = (self.key.attempt, file.kind.as_str(), file.size);
        let query = format!("attempt={attempt}&kind={kind}&offset={offset}&size={size}");
        self.put(file, &query, length, body).await
    }

    async fn put<T: DeserializeOwned>(
        &self,
        file: &Upload<'_>,
        query: &str,
        length: u64,
        body: impl Fn() -> Body,
    ) -> Result<T, ApiError> {
        let url = self.url(&below("artifacts", file.path), query)?;
        let limit = SHORT * 3 + Duration::from_secs(length / SLOWEST_BYTES_PER_SECOND);
        self.ask(|| {
            let request = self.api.http.put(url.clone()).header("Content-Type", "application/octet-stream");
            let request = request.header("Content-Length", length).header("X-Content-SHA256", file.sha256);
            request.body(body()).timeout(limit)
        })
        .await
    }

    /// `GET …/artifacts/{path}`: how much of exactly this file has arrived.
    pub async fn received(&self, file: &Upload<'_>) -> Result<u64, ApiError> {
        let query = format!("attempt={}&size={}&sha256={}", self.key.attempt, file.size, file.sha256);
        let url = self.url(&below("artifacts", file.path), &query)?;
        let progress: UploadProgress = self.ask(|| self.api.http.get(url.clone()).timeout(SHORT)).await?;
        Ok(progress.received)
    }

    /// `POST …/checkpoint`: all of its files were sent.
    pub async fn checkpoint_is_whole(&self, whole: &WholeCheckpoint) -> Result<(), ApiError> {
        let url = self.url(&["checkpoint"], &format!("attempt={}", self.key.attempt))?;
        self.ask::<Accepted>(|| self.api.http.post(url.clone()).json(whole).timeout(SHORT * 3)).await.map(drop)
    }

    /// `GET …/checkpoint`: what earlier attempts have left.
    pub async fn earlier_checkpoint(&self) -> Result<EarlierCheckpoint, ApiError> {
        let url = self.url(&["checkpoint"], &format!("attempt={}", self.key.attempt))?;
        self.ask(|| self.api.http.get(url.clone()).timeout(SHORT)).await
    }

    /// `GET …/checkpoint/{path}`: one of its files, from an offset on. The answer's body has no limit in time of its own.
    pub async fn earlier_file(&self, path: &str, offset: u64) -> Result<Response, ApiError> {
        let url = self.url(&below("checkpoint", path), &format!("attempt={}", self.key.attempt))?;
        let request = self.api.http.get(url).header(JOB_TOKEN, self.token.header());
        let request = if offset > 0 { request.header("Range", format!("bytes={offset}-")) } else { request };
        let sent = tokio::time::timeout(SHORT, self.api.send(self.traced(request)));
        sent.await.unwrap_or_else(|_| Err(ApiError::transient(format!("{} does not answer", self.api.base))))
    }
}

/// The answer to a piece of a file.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Taken {
    /// How much of it has arrived; none if that was the last piece, and the file is stored.
    #[serde(default)]
    pub received: Option<u64>,
}

/// A path's segments below one of the job's routes; each is escaped by itself.
fn below<'a>(route: &'a str, path: &'a str) -> Vec<&'a str> {
    std::iter::once(route).chain(path.split('/')).collect()
}

/// A file on its way.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    /// Path below the output directory.
    pub path: &'a str,
    /// What kind of file.
    pub kind: ArtifactKind,
    /// In bytes.
    pub size: u64,
    /// In hex.
    pub sha256: &'a str,
}
