//! HTTP requests to a server, as untyped JSON.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use ureq::http::Request;

/// The API token of the admin.
pub const ADMIN: &str = "st_crash-points-crash-points-crash";

/// A client of one server, authenticated by a header.
#[derive(Debug, Clone)]
pub struct Client {
    http: ureq::Agent,
    url: String,
    credential: (&'static str, String),
}

/// A request that changes something.
#[derive(Debug, Clone)]
pub struct Change {
    pub method: &'static str,
    pub path: String,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Change {
    pub fn new(method: &'static str, path: impl Into<String>, body: &Value) -> Self {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Self { method, path: path.into(), headers: Vec::new(), body }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn bytes(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }
}

impl Client {
    pub fn new(url: &str) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        let timeout = std::time::Duration::from_secs(30);
        let http = config.timeout_recv_response(Some(timeout)).build().new_agent();
        Self { http, url: url.to_owned(), credential: ("authorization", format!("Bearer {ADMIN}")) }
    }

    /// The same server with another credential.
    pub fn with_header(&self, name: &'static str, value: impl Into<String>) -> Self {
        Self { credential: (name, value.into()), ..self.clone() }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request; returns status and body.
    pub fn send(&self, id: &str, change: &Change) -> Result<(u16, Vec<u8>)> {
        let url = format!("{}{}", self.url, change.path);
        let mut request = Request::builder().method(change.method).uri(&url).header("x-request-id", id);
        request = request.header(self.credential.0, &self.credential.1);
        for (name, value) in &change.headers {
            request = request.header(*name, value);
        }
        let result = match change.method {
            "GET" | "DELETE" => self.http.run(request.body(())?),
            _ => self.http.run(request.body(change.body.as_slice())?),
        };
        let mut response = result.with_context(|| format!("{} {}", change.method, change.path))?;
        let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec()?;
        Ok((response.status().as_u16(), body))
    }

    /// Sends a request, which must succeed.
    pub fn change(&self, id: &str, change: &Change) -> Result<Value> {
        let (status, body) = self.send(id, change)?;
        if !(200..300).contains(&status) {
            let body = String::from_utf8_lossy(&body);
            bail!("{} {} returned {status}: {body}", change.method, change.path);
        }
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Reads bytes, which must succeed.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        let (status, body) = self.send("read", &Change::new("GET", path, &Value::Null))?;
        match status {
            200 => Ok(body),
            status => bail!("GET {path} returned {status}: {}", String::from_utf8_lossy(&body)),
        }
    }

    /// Reads JSON, which must succeed.
    pub fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&self.bytes(path)?)?)
    }

    /// Opens an agent's stream of events.
    pub fn events(&self) -> Result<Events> {
        let request = self.http.get(format!("{}/api/workers/stream", self.url));
        let response = request.header(self.credential.0, &self.credential.1).call()?;
        if response.status() != 200 {
            bail!("the stream returned {}", response.status());
        }
        let body = response.into_body().into_with_config().limit(u64::MAX).reader();
        Ok(Events(BufReader::new(Box::new(body))))
    }
}

/// The events of an agent's stream.
pub struct Events(BufReader<Box<dyn Read + Send>>);

impl Events {
    /// Waits for the next event of this type.
    pub fn wait_for(&mut self, event_type: &str) -> Result<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                bail!("the stream has ended before {event_type}");
            }
            if let Some(data) = line.strip_prefix("data: ")
                && let Ok(event) = serde_json::from_str::<Value>(data)
                && event["type"] == event_type
            {
                return Ok(event);
            }
        }
    }
}

/// Returns a text field, which must exist.
pub fn text(value: &Value, field: &str) -> Result<String> {
    value[field].as_str().map(str::to_owned).with_context(|| format!("{field} in {value}"))
}
