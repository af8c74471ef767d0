//! The endpoints of one attempt, authenticated by its job token.

use std::collections::BTreeMap;
use std::time::Duration;

use app::domain::trace_context::TraceContext;
use app::protocol::agents::dispatch::BundleRef;
use app::protocol::agents::{
    ArtifactAck, LogAck, ProgressReport, ReportResponse, ResumeCheckpoint, StatusReport, UploadProgress,
};
use app::protocol::artifacts::checkpoints::CompletedCheckpoint;
use app::protocol::secrets::JobSecrets;
use app::protocol::status::ArtifactKind;
use bytes::Bytes;
use reqwest::{Body, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Api, OrchestratorError, REQUEST_TIMEOUT};
use crate::worker::clock;
use crate::worker::files::AttemptKey;
use crate::worker::secret::Secret;

const JOB_TOKEN_HEADER: &str = "X-Upload-Token";
const TRACEPARENT_HEADER: &str = "traceparent";
/// A slower upload is aborted and retried.
const MIN_UPLOAD_BYTES_PER_SECOND: u64 = 50_000;

/// The API of one attempt.
#[derive(Debug, Clone)]
pub struct JobApi {
    api: Api,
    key: AttemptKey,
    token: Secret,
    trace: Option<TraceContext>,
}

impl JobApi {
    pub fn new(api: Api, key: AttemptKey, token: Secret, trace: Option<TraceContext>) -> Self {
        Self { api, key, token, trace }
    }

    fn url(&self, rest: &[&str], query: &str) -> Result<Url, OrchestratorError> {
        let mut url = self.api.resolve_url("api/workers/job/")?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(self.key.job_id.as_str()).extend(rest);
        }
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        Ok(url)
    }

    async fn send_json<T: DeserializeOwned>(
        &self,
        request: impl FnOnce() -> RequestBuilder,
    ) -> Result<T, OrchestratorError> {
        let sent_boot_ms = clock::boot_ms();
        let response =
            self.api.json(self.with_trace_header(request()).header(JOB_TOKEN_HEADER, self.token.header())).await;
        // An accepted report of a current attempt counts as a sign of life.
        if response.is_ok() {
            self.api.lease.renew(sent_boot_ms);
        }
        response
    }

    fn with_trace_header(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.trace {
            Some(trace) => request.header(TRACEPARENT_HEADER, trace.to_string()),
            None => request,
        }
    }

    /// `POST …/status`.
    pub async fn report_status(&self, report: &StatusReport) -> Result<(), OrchestratorError> {
        let url = self.url(&["status"], "")?;
        self.send_json::<ReportResponse>(|| self.api.http.post(url.clone()).json(report).timeout(REQUEST_TIMEOUT))
            .await
            .map(drop)
    }

    /// `POST …/progress`.
    pub async fn report_progress(&self, report: &ProgressReport) -> Result<(), OrchestratorError> {
        let url = self.url(&["progress"], "")?;
        let send = || self.api.http.post(url.clone()).json(report).timeout(REQUEST_TIMEOUT);
        self.send_json::<serde::de::IgnoredAny>(send).await.map(drop)
    }

    /// `PUT …/logs`: bytes from this offset on, after `dropped` bytes that the orchestrator will not get.
    pub async fn upload_log(&self, offset: u64, dropped: u64, bytes: Bytes) -> Result<LogAck, OrchestratorError> {
        let gap = if dropped > 0 { format!("&dropped={dropped}") } else { String::new() };
        let url = self.url(&["logs"], &format!("attempt={}&offset={offset}{gap}", self.key.attempt))?;
        self.send_json(|| {
            let request = self.api.http.put(url.clone()).header("Content-Type", "application/octet-stream");
            request.body(bytes.clone()).timeout(REQUEST_TIMEOUT * 3)
        })
        .await
    }

    /// `GET …/bundle`: the body, unchecked.
    pub async fn fetch_bundle(&self, bundle: &BundleRef) -> Result<Bytes, OrchestratorError> {
        let url = self.api.resolve_url(&bundle.url)?;
        let request = self.api.http.get(url).header(JOB_TOKEN_HEADER, self.token.header()).timeout(REQUEST_TIMEOUT * 6);
        let response = self.api.send(self.with_trace_header(request)).await?;
        self.api.read(response, self.api.limits.max_bundle).await
    }

    /// `POST …/secrets`: the job's secrets.
    pub async fn fetch_secrets(&self) -> Result<BTreeMap<String, String>, OrchestratorError> {
        let url = self.url(&["secrets"], &format!("attempt={}", self.key.attempt))?;
        self.send_json::<JobSecrets>(|| self.api.http.post(url.clone()).timeout(REQUEST_TIMEOUT))
            .await
            .map(|response| response.secrets)
    }

    /// `PUT …/artifacts/{path}`: the whole file in one request. Calls `body` for each try.
    pub async fn upload_artifact(
        &self,
        file: &FileUpload<'_>,
        body: impl Fn() -> Body,
    ) -> Result<ArtifactAck, OrchestratorError> {
        let query = format!("attempt={}&kind={}", self.key.attempt, file.kind.as_str());
        self.put_artifact(file, &query, file.size, body).await
    }

    /// `PUT …/artifacts/{path}` with `offset`: a part of the file.
    pub async fn upload_chunk(
        &self,
        file: &FileUpload<'_>,
        (offset, length): (u64, u64),
        body: impl Fn() -> Body,
    ) -> Result<ChunkAck, OrchestratorError> {
        let (attempt, kind, size) = (self.key.attempt, file.kind.as_str(), file.size);
        let query = format!("attempt={attempt}&kind={kind}&offset={offset}&size={size}");
        self.put_artifact(file, &query, length, body).await
    }

    async fn put_artifact<T: DeserializeOwned>(
        &self,
        file: &FileUpload<'_>,
        query: &str,
        length: u64,
        body: impl Fn() -> Body,
    ) -> Result<T, OrchestratorError> {
        let url = self.url(&join_segments("artifacts", file.path), query)?;
        let limit = REQUEST_TIMEOUT * 3 + Duration::from_secs(length / MIN_UPLOAD_BYTES_PER_SECOND);
        self.send_json(|| {
            let request = self.api.http.put(url.clone()).header("Content-Type", "application/octet-stream");
            let request = request.header("Content-Length", length).header("X-Content-SHA256", file.sha256);
            request.body(body()).timeout(limit)
        })
        .await
    }

    /// `GET …/artifacts/{path}`: how many bytes of exactly this file have arrived.
    pub async fn fetch_received_bytes(&self, file: &FileUpload<'_>) -> Result<u64, OrchestratorError> {
        let query = format!("attempt={}&size={}&sha256={}", self.key.attempt, file.size, file.sha256);
        let url = self.url(&join_segments("artifacts", file.path), &query)?;
        let progress: UploadProgress =
            self.send_json(|| self.api.http.get(url.clone()).timeout(REQUEST_TIMEOUT)).await?;
        Ok(progress.received)
    }

    /// `POST …/checkpoint`: all files of a checkpoint were sent.
    pub async fn complete_checkpoint(&self, manifest: &CompletedCheckpoint) -> Result<(), OrchestratorError> {
        let url = self.url(&["checkpoint"], &format!("attempt={}", self.key.attempt))?;
        self.send_json::<ReportResponse>(|| self.api.http.post(url.clone()).json(manifest).timeout(REQUEST_TIMEOUT * 3))
            .await
            .map(drop)
    }

    /// `GET …/checkpoint`: the newest checkpoint of earlier attempts.
    pub async fn fetch_resume_checkpoint(&self) -> Result<ResumeCheckpoint, OrchestratorError> {
        let url = self.url(&["checkpoint"], &format!("attempt={}", self.key.attempt))?;
        self.send_json(|| self.api.http.get(url.clone()).timeout(REQUEST_TIMEOUT)).await
    }

    /// `GET …/checkpoint/{path}`: one of its files, from an offset on. The response body has no overall timeout.
    pub async fn download_checkpoint_file(&self, path: &str, offset: u64) -> Result<Response, OrchestratorError> {
        let url = self.url(&join_segments("checkpoint", path), &format!("attempt={}", self.key.attempt))?;
        let request = self.api.http.get(url).header(JOB_TOKEN_HEADER, self.token.header());
        let request = if offset > 0 { request.header("Range", format!("bytes={offset}-")) } else { request };
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.api.send(self.with_trace_header(request)));
        response
            .await
            .unwrap_or_else(|_| Err(OrchestratorError::transient(format!("{} does not respond", self.api.base))))
    }
}

/// The response to a chunk of a file.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct ChunkAck {
    /// How many bytes have arrived; `None` if that was the last chunk and the file is stored.
    #[serde(default)]
    pub received: Option<u64>,
}

/// Splits a path into segments below one of the job's routes; each is escaped separately.
fn join_segments<'a>(route: &'a str, path: &'a str) -> Vec<&'a str> {
    std::iter::once(route).chain(path.split('/')).collect()
}

/// A file to upload.
#[derive(Debug, Clone, Copy)]
pub struct FileUpload<'a> {
    /// Relative to the output directory.
    pub path: &'a str,
    pub kind: ArtifactKind,
    /// In bytes.
    pub size: u64,
    /// In hex.
    pub sha256: &'a str,
}
