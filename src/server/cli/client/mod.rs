//! The client of the public API, over the network or within this process.

pub mod connection;
pub mod credential;
mod error;

use std::time::Duration;

use app::remote::{root_cause, untrusted_certificate_text};
use axum::Router;
use axum::body::Body as Inner;
use axum::http::Request;
use http_body_util::BodyExt;
use reqwest::{Client as Http, Method, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde_json::Value;
use tower::ServiceExt;

use self::connection::{Connection, is_local};
use self::credential::ApiCredential;
pub use self::error::ClientError;
use crate::args::SecretString;
use crate::exit::ExitError;
use crate::http::guards::OPERATOR_HEADER;

/// Timeout of a short request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a large transfer.
const TRANSFER_TIMEOUT: Duration = Duration::from_mins(30);
/// Timeout of a file's download; its caller notices one that stalls.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_hours(24);
/// How often an idempotent request is sent at most.
const MAX_TRIES: u32 = 4;

pub struct Client {
    transport: Transport,
    base: Url,
    credential: ApiCredential,
    /// The delay before the first retry; it doubles.
    pub retry_delay: Duration,
}

enum Transport {
    Network(Http),
    InProcess(Router),
}

/// A request.
#[derive(Debug, Clone)]
pub struct ApiRequest<'c> {
    method: Method,
    segments: &'c [&'c str],
    query: Option<Value>,
    body: Option<Vec<u8>>,
    idempotency_key: Option<String>,
    /// Which bytes of a file: from this one on, if the file still has this tag.
    rest: Option<(u64, String)>,
}

impl<'c> ApiRequest<'c> {
    /// Creates a request to this path below `/api`.
    pub fn new(method: Method, segments: &'c [&'c str]) -> Self {
        Self { method, segments, query: None, body: None, idempotency_key: None, rest: None }
    }

    /// Adds query parameters; null fields are omitted.
    #[must_use]
    pub fn query(mut self, query: &impl Serialize) -> Self {
        self.query = serde_json::to_value(query).ok();
        self
    }

    /// Adds a JSON body.
    #[must_use]
    pub fn body(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).ok();
        self
    }

    /// Adds an `Idempotency-Key`, so that the request can be retried.
    #[must_use]
    pub fn idempotency_key(mut self, key: String) -> Self {
        self.idempotency_key = Some(key);
        self
    }

    /// Requests only the rest of a file, from this byte on; all of it if it has another tag.
    #[must_use]
    pub fn rest(mut self, from: u64, etag: String) -> Self {
        self.rest = Some((from, etag));
        self
    }

    fn is_idempotent(&self) -> bool {
        self.idempotency_key.is_some() || matches!(self.method, Method::GET | Method::PUT)
    }

    fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("api").extend(self.segments);
        }
        if let Some(Value::Object(fields)) = &self.query {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                // A list repeats its name.
                for value in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    pairs.append_pair(name, &text);
                }
            }
        }
        url
    }
}

impl Client {
    /// Creates a client without connecting.
    ///
    /// # Errors
    /// Returns an error if the certificates are unusable.
    pub fn new(connection: Connection) -> Result<Self, ExitError> {
        let tls_error = |reason: String| ExitError::config(format!("cannot set up TLS: {reason}"));
        let mut builder = Http::builder()
            .user_agent(concat!("simpletuner/", env!("CARGO_PKG_VERSION")))
            // A redirect would send the token to another server.
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .http1_only();
        builder =
            connection.trust.configure_client(builder, connection.url.scheme() == "https").map_err(
                |error| match error {
                    app::remote::ServerTrustError::Usage(reason) | app::remote::ServerTrustError::Unusable(reason) => {
                        ExitError::config(reason)
                    }
                },
            )?;
        if is_local(&connection.url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| tls_error(root_cause(&error)))?;
        let delay = Duration::from_millis(500);
        Ok(Self {
            transport: Transport::Network(http),
            base: connection.url,
            credential: connection.credential,
            retry_delay: delay,
        })
    }

    /// Creates a client of a server within this process, as the operator of its host.
    pub fn in_process(router: Router, token: String) -> Self {
        Self {
            transport: Transport::InProcess(router),
            base: Url::parse("http://localhost").expect("a constant"),
            credential: ApiCredential::Operator { token: SecretString(token), note: None },
            retry_delay: Duration::ZERO,
        }
    }

    /// Returns the address of a page of this server's dashboard.
    pub fn page_url(&self, path: &str) -> Result<Url, ExitError> {
        let url = self.base.join(path.trim_start_matches('/'));
        url.map_err(|error| ExitError::failed(format!("{path:?} is no path of a page ({error})")))
    }

    pub fn credential(&self) -> &ApiCredential {
        &self.credential
    }

    pub async fn get(&self, segments: &[&str]) -> Result<Value, ClientError> {
        self.send_json(ApiRequest::new(Method::GET, segments)).await
    }

    /// Sends a `POST` with this JSON.
    pub async fn post(&self, segments: &[&str], body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_json(ApiRequest::new(Method::POST, segments).body(body)).await
    }

    pub async fn put(&self, segments: &[&str], body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_json(ApiRequest::new(Method::PUT, segments).body(body)).await
    }

    pub async fn patch(&self, segments: &[&str], body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_json(ApiRequest::new(Method::PATCH, segments).body(body)).await
    }

    pub async fn delete(&self, segments: &[&str]) -> Result<Value, ClientError> {
        self.send_json(ApiRequest::new(Method::DELETE, segments)).await
    }

    /// Returns all pages of a list as one document, with at most `max` items.
    pub async fn list_all(
        &self,
        segments: &[&str],
        query: &impl Serialize,
        field: &str,
        max: Option<usize>,
    ) -> Result<Value, ClientError> {
        let mut query = serde_json::to_value(query).unwrap_or_default();
        let mut document = self.send_json(ApiRequest::new(Method::GET, segments).query(&query)).await?;
        loop {
            let items = document[field].as_array().map_or(0, Vec::len);
            let cursor = document["next_cursor"].take();
            if cursor.is_null() || max.is_some_and(|max| items >= max) {
                break;
            }
            query["cursor"] = cursor;
            let mut page = self.send_json(ApiRequest::new(Method::GET, segments).query(&query)).await?;
            document["next_cursor"] = page["next_cursor"].take();
            if let (Some(all), Some(next_items)) = (document[field].as_array_mut(), page[field].as_array_mut()) {
                all.append(next_items);
            }
        }
        if let (Some(max), Some(all)) = (max, document[field].as_array_mut()) {
            all.truncate(max);
        }
        if let Some(fields) = document.as_object_mut() {
            fields.remove("next_cursor");
        }
        Ok(document)
    }

    /// Returns the response to a request. Idempotent requests are retried.
    pub async fn send_json(&self, request: ApiRequest<'_>) -> Result<Value, ClientError> {
        let mut delay = self.retry_delay;
        let mut tries = 1;
        loop {
            match self.send_once(&request).await {
                Err(failure) if failure.is_transient() && request.is_idempotent() && tries < MAX_TRIES => {
                    tokio::time::sleep(delay).await;
                    (tries, delay) = (tries + 1, delay * 2);
                }
                response => return response,
            }
        }
    }

    async fn send_once(&self, request: &ApiRequest<'_>) -> Result<Value, ClientError> {
        let (status, body) = match &self.transport {
            Transport::InProcess(router) => self.send_in_process(router.clone(), request).await?,
            Transport::Network(http) => {
                let response = self.send_over_http(http, request, REQUEST_TIMEOUT).await?;
                (response.status(), response.bytes().await.map_err(|error| self.interrupted_error(&error))?.to_vec())
            }
        };
        let response_error = || ClientError::from_response(status.as_u16(), &body, self.base.as_str());
        if status.is_success() {
            serde_json::from_slice(&body).map_err(|_| response_error())
        } else {
            Err(response_error())
        }
    }

    async fn send_in_process(
        &self,
        router: Router,
        api_request: &ApiRequest<'_>,
    ) -> Result<(StatusCode, Vec<u8>), ClientError> {
        let process_error =
            |reason: String| ClientError::Interrupted(format!("the in-process server failed: {reason}"));
        let url = api_request.url(&self.base);
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let request = Request::builder().method(api_request.method.clone()).uri(path).header("host", "localhost");
        let request =
            self.headers(api_request).into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.body(Inner::from(api_request.body.clone().unwrap_or_default()));
        let request = request.map_err(|error| process_error(error.to_string()))?;
        let response = router.oneshot(request).await.map_err(|error| process_error(error.to_string()))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| process_error(error.to_string()))?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// Returns a response whose body is read as a stream.
    pub async fn stream(&self, request: ApiRequest<'_>) -> Result<Response, ClientError> {
        self.stream_with_timeout(request, TRANSFER_TIMEOUT).await
    }

    /// Returns a response whose body is a file of any size.
    pub async fn download(&self, request: ApiRequest<'_>) -> Result<Response, ClientError> {
        self.stream_with_timeout(request, DOWNLOAD_TIMEOUT).await
    }

    async fn stream_with_timeout(&self, request: ApiRequest<'_>, timeout: Duration) -> Result<Response, ClientError> {
        let Transport::Network(http) = &self.transport else {
            return Err(ClientError::NotOrchestrator("this requires a running server".to_owned()));
        };
        let response = self.send_over_http(http, &request, timeout).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = response.bytes().await.map_err(|error| self.interrupted_error(&error))?;
        Err(ClientError::from_response(status, &body, self.base.as_str()))
    }

    /// Sends a large body in chunks.
    pub async fn upload(&self, segments: &[&str], length: usize, body: reqwest::Body) -> Result<Value, ClientError> {
        let Transport::Network(http) = &self.transport else {
            return Err(ClientError::NotOrchestrator("this requires a running server".to_owned()));
        };
        let api_request = ApiRequest::new(Method::PUT, segments);
        let request =
            self.build_request(http, &api_request, TRANSFER_TIMEOUT).header("content-length", length).body(body);
        let response = request.send().await.map_err(|error| self.unreachable_error(&error))?;
        let status = response.status();
        let body = response.bytes().await.map_err(|error| self.interrupted_error(&error))?;
        let response_error = || ClientError::from_response(status.as_u16(), &body, self.base.as_str());
        if status.is_success() {
            serde_json::from_slice(&body).map_err(|_| response_error())
        } else {
            Err(response_error())
        }
    }

    async fn send_over_http(
        &self,
        http: &Http,
        api_request: &ApiRequest<'_>,
        timeout: Duration,
    ) -> Result<Response, ClientError> {
        let mut request = self.build_request(http, api_request, timeout);
        if let Some(body) = &api_request.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| self.unreachable_error(&error))
    }

    fn build_request(&self, http: &Http, api_request: &ApiRequest<'_>, timeout: Duration) -> reqwest::RequestBuilder {
        let request = http.request(api_request.method.clone(), api_request.url(&self.base)).timeout(timeout);
        self.headers(api_request).into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    fn headers(&self, request: &ApiRequest<'_>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if request.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend(self.credential.token(&self.base).map(|token| ("authorization", format!("Bearer {}", token.0))));
        if let Some((from, etag)) = &request.rest {
            headers.extend([("range", format!("bytes={from}-")), ("if-range", etag.clone())]);
        }
        headers.extend(request.idempotency_key.clone().map(|key| ("idempotency-key", key)));
        if self.credential.is_operator() {
            headers.extend(hostname().map(|name| (OPERATOR_HEADER, name)));
        }
        headers
    }

    fn unreachable_error(&self, error: &reqwest::Error) -> ClientError {
        if let Some(message) = untrusted_certificate_text(error, &self.base) {
            return ClientError::Unreachable(message);
        }
        let (base, cause) = (&self.base, root_cause(error));
        if error.is_connect() {
            let tls = cause.to_lowercase().contains("invalidcontenttype");
            let advice =
                if tls { "the server does not use TLS: write http:// instead of https://" } else { UNREACHABLE_HINT };
            return ClientError::Unreachable(format!("cannot reach a server at {base} ({cause}): {advice}"));
        }
        self.interrupted_error(error)
    }

    fn interrupted_error(&self, error: &reqwest::Error) -> ClientError {
        ClientError::Interrupted(format!("lost the connection to {} ({}): try again", self.base, root_cause(error)))
    }
}

const UNREACHABLE_HINT: &str = "check that it runs, and --url; on its own host, set --data-dir";

/// Returns this host's name as the server knows it.
fn hostname() -> Option<String> {
    nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten().map(|user| user.name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_queries_are_encoded() {
        let url =
            |base: &str, api_request: ApiRequest<'_>| api_request.url(&Url::parse(base).expect("a URL")).to_string();
        let request = ApiRequest::new(Method::GET, &["configs", "a/b ü?"]);
        assert_eq!(url("http://h:1/", request.clone()), "http://h:1/api/configs/a%2Fb%20%C3%BC%3F");
        assert_eq!(url("http://h/behind/", ApiRequest::new(Method::GET, &["queue"])), "http://h/behind/api/queue");
        let request =
            ApiRequest::new(Method::GET, &["queue"]).query(&json!({"user": "a&b", "limit": 5, "label": null}));
        assert_eq!(url("http://h/", request), "http://h/api/queue?limit=5&user=a%26b");
        let request = ApiRequest::new(Method::GET, &["q"]).query(&json!({"path": ["a", "b c"], "none": []}));
        assert_eq!(url("http://h/", request), "http://h/api/q?path=a&path=b+c");
    }

    #[test]
    fn only_idempotent_requests_are_retried() {
        assert!(ApiRequest::new(Method::GET, &[]).is_idempotent() && ApiRequest::new(Method::PUT, &[]).is_idempotent());
        assert!(
            !ApiRequest::new(Method::POST, &[]).is_idempotent()
                && !ApiRequest::new(Method::DELETE, &[]).is_idempotent()
        );
        assert!(ApiRequest::new(Method::POST, &[]).idempotency_key("k".to_owned()).is_idempotent());
    }
}
