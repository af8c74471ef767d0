//! Sends requests to the orchestrator.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use reqwest::{Client, Request, Response, Url};

use super::OrchestratorError;

/// How requests reach the orchestrator: over the network, or in a simulation of it.
pub trait Transport: Debug + Send + Sync {
    /// Sends a request. The response may be unsuccessful.
    ///
    /// # Errors
    /// If there is no response.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, OrchestratorError>>;
}

/// The network.
#[derive(Debug)]
pub struct Network {
    pub http: Client,
    /// For messages.
    pub base: Url,
}

impl Transport for Network {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, OrchestratorError>> {
        Box::pin(async move {
            self.http.execute(request).await.map_err(|error| OrchestratorError::unreachable(&error, &self.base))
        })
    }
}
