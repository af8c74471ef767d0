//! The public API as a command asks it: over the network, or of a server within this process.

mod failure;
pub mod key;
pub mod way;

use std::time::Duration;

use app::remote::{distrust, innermost};
use axum::Router;
use axum::body::Body as Inner;
use axum::http::Request;
use http_body_util::BodyExt;
use reqwest::{Client as Http, Method, Response, StatusCode, Url, redirect};
use serde::Serialize;
use serde_json::Value;
use tower::ServiceExt;

pub use self::failure::Failure;
use self::key::Key;
use self::way::{Way, is_local};
use super::Secret;
use crate::boot::exit::Exit;
use crate::http::access::OPERATOR;

/// Longest time for a short request and its answer.
const SHORT: Duration = Duration::from_secs(30);
/// Longest time for a large one.
const LONG: Duration = Duration::from_mins(30);
/// So often a request is sent, if sending it again does no harm.
const TRIES: u32 = 4;

/// See the module.
pub struct Client {
    carrier: Carrier,
    base: Url,
    key: Key,
    /// Between the first two tries; it doubles.
    pub pause: Duration,
}

enum Carrier {
    Network(Http),
    Within(Router),
}

/// One request.
#[derive(Debug, Clone)]
pub struct Call<'c> {
    method: Method,
    segments: &'c [&'c str],
    query: Option<Value>,
    body: Option<Vec<u8>>,
    key: Option<String>,
}

impl<'c> Call<'c> {
    /// One to this path below `/api`.
    pub fn new(method: Method, segments: &'c [&'c str]) -> Self {
        Self { method, segments, query: None, body: None, key: None }
    }

    /// With the fields of this in its query string; what is null is left out.
    #[must_use]
    pub fn query(mut self, query: &impl Serialize) -> Self {
        self.query = serde_json::to_value(query).ok();
        self
    }

    /// With this as its JSON.
    #[must_use]
    pub fn body(mut self, body: &impl Serialize) -> Self {
        self.body = serde_json::to_vec(body).ok();
        self
    }

    /// With this `Idempotency-Key`: sent again, it is done once.
    #[must_use]
    pub fn key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
    }

    fn may_be_repeated(&self) -> bool {
        self.key.is_some() || matches!(self.method, Method::GET | Method::PUT)
    }

    fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("api").extend(self.segments);
        }
        if let Some(Value::Object(fields)) = &self.query {
            let mut pairs = url.query_pairs_mut();
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                pairs.append_pair(name, &text);
            }
        }
        url
    }
}

impl Client {
    /// One that goes this way; nothing is sent yet.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub fn over(way: Way) -> Result<Self, Exit> {
        let unusable = |why: String| Exit::config(format!("cannot set up TLS: {why}"));
        let mut builder = Http::builder()
            .user_agent(concat!("simpletuner/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the token to wherever it leads.
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .http1_only();
        builder = way.trust.apply(builder, way.url.scheme() == "https").map_err(|error| match error {
            app::remote::TrustError::Usage(why) | app::remote::TrustError::Unusable(why) => Exit::config(why),
        })?;
        if is_local(&way.url) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|error| unusable(innermost(&error)))?;
        let pause = Duration::from_millis(500);
        Ok(Self { carrier: Carrier::Network(http), base: way.url, key: way.key, pause })
    }

    /// One for a server within this process, as the operator of its host.
    pub fn within(router: Router, token: String) -> Self {
        Self {
            carrier: Carrier::Within(router),
            base: Url::parse("http://localhost").expect("a constant"),
            key: Key::Operator { token: Secret(token), note: None },
            pause: Duration::ZERO,
        }
    }

    /// As whom it asks.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// `GET`.
    pub async fn get(&self, segments: &[&str]) -> Result<Value, Failure> {
        self.json(Call::new(Method::GET, segments)).await
    }

    /// `POST` of this JSON.
    pub async fn post(&self, segments: &[&str], body: &impl Serialize) -> Result<Value, Failure> {
        self.json(Call::new(Method::POST, segments).body(body)).await
    }

    /// `DELETE`.
    pub async fn delete(&self, segments: &[&str]) -> Result<Value, Failure> {
        self.json(Call::new(Method::DELETE, segments)).await
    }

    /// A list over all its pages, as one document; no more than `most` of it.
    pub async fn list(
        &self,
        segments: &[&str],
        query: &impl Serialize,
        field: &str,
        most: Option<usize>,
    ) -> Result<Value, Failure> {
        let mut query = serde_json::to_value(query).unwrap_or_default();
        let mut whole = self.json(Call::new(Method::GET, segments).query(&query)).await?;
        loop {
            let items = whole[field].as_array().map_or(0, Vec::len);
            let cursor = whole["next_cursor"].take();
            if cursor.is_null() || most.is_some_and(|most| items >= most) {
                break;
            }
            query["cursor"] = cursor;
            let mut page = self.json(Call::new(Method::GET, segments).query(&query)).await?;
            whole["next_cursor"] = page["next_cursor"].take();
            if let (Some(all), Some(more)) = (whole[field].as_array_mut(), page[field].as_array_mut()) {
                all.append(more);
            }
        }
        if let (Some(most), Some(all)) = (most, whole[field].as_array_mut()) {
            all.truncate(most);
        }
        if let Some(fields) = whole.as_object_mut() {
            fields.remove("next_cursor");
        }
        Ok(whole)
    }

    /// The answer to a request, which is sent again where that does no harm.
    pub async fn json(&self, call: Call<'_>) -> Result<Value, Failure> {
        let mut pause = self.pause;
        let mut tries = 1;
        loop {
            match self.once(&call).await {
                Err(failure) if failure.passes() && call.may_be_repeated() && tries < TRIES => {
                    tokio::time::sleep(pause).await;
                    (tries, pause) = (tries + 1, pause * 2);
                }
                answer => return answer,
            }
        }
    }

    async fn once(&self, call: &Call<'_>) -> Result<Value, Failure> {
        let (status, body) = match &self.carrier {
            Carrier::Within(router) => self.ask_within(router.clone(), call).await?,
            Carrier::Network(http) => {
                let answer = self.sent(http, call, SHORT).await?;
                (answer.status(), answer.bytes().await.map_err(|error| self.broken(&error))?.to_vec())
            }
        };
        let none = || Failure::of(status.as_u16(), &body, self.base.as_str());
        if status.is_success() { serde_json::from_slice(&body).map_err(|_| none()) } else { Err(none()) }
    }

    async fn ask_within(&self, router: Router, call: &Call<'_>) -> Result<(StatusCode, Vec<u8>), Failure> {
        let failed = |why: String| Failure::Broken(format!("the server within this process failed: {why}"));
        let url = call.url(&self.base);
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let request = Request::builder().method(call.method.clone()).uri(path).header("host", "localhost");
        let request =
            self.headers(call).into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.body(Inner::from(call.body.clone().unwrap_or_default()));
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = router.oneshot(request).await.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| failed(error.to_string()))?;
        Ok((status, body.to_bytes().to_vec()))
    }

    /// An answer whose body is read as it comes.
    pub async fn open(&self, call: Call<'_>) -> Result<Response, Failure> {
        let Carrier::Network(http) = &self.carrier else {
            return Err(Failure::Foreign("this takes a server that runs".to_owned()));
        };
        let answer = self.sent(http, &call, LONG).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status().as_u16();
        let body = answer.bytes().await.map_err(|error| self.broken(&error))?;
        Err(Failure::of(status, &body, self.base.as_str()))
    }

    /// Sends a large body piece by piece.
    pub async fn upload(&self, segments: &[&str], length: usize, body: reqwest::Body) -> Result<Value, Failure> {
        let Carrier::Network(http) = &self.carrier else {
            return Err(Failure::Foreign("this takes a server that runs".to_owned()));
        };
        let call = Call::new(Method::PUT, segments);
        let request = self.request(http, &call, LONG).header("content-length", length).body(body);
        let answer = request.send().await.map_err(|error| self.failed(&error))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| self.broken(&error))?;
        let none = || Failure::of(status.as_u16(), &body, self.base.as_str());
        if status.is_success() { serde_json::from_slice(&body).map_err(|_| none()) } else { Err(none()) }
    }

    async fn sent(&self, http: &Http, call: &Call<'_>, within: Duration) -> Result<Response, Failure> {
        let mut request = self.request(http, call, within);
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        request.send().await.map_err(|error| self.failed(&error))
    }

    fn request(&self, http: &Http, call: &Call<'_>, within: Duration) -> reqwest::RequestBuilder {
        let request = http.request(call.method.clone(), call.url(&self.base)).timeout(within);
        self.headers(call).into_iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    fn headers(&self, call: &Call<'_>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if call.body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        headers.extend(self.key.token(&self.base).map(|token| ("authorization", format!("Bearer {}", token.0))));
        headers.extend(call.key.clone().map(|key| ("idempotency-key", key)));
        if self.key.is_operators() {
            headers.extend(own_name().map(|name| (OPERATOR, name)));
        }
        headers
    }

    fn failed(&self, error: &reqwest::Error) -> Failure {
        if let Some(sentence) = distrust(error, &self.base) {
            return Failure::Unreachable(sentence);
        }
        let (base, cause) = (&self.base, innermost(error));
        if error.is_connect() {
            let tls = cause.to_lowercase().contains("invalidcontenttype");
            let advice = if tls { "it speaks no TLS there: write http:// in place of https://" } else { ADVICE };
            return Failure::Unreachable(format!("cannot reach a server at {base} ({cause}): {advice}"));
        }
        self.broken(error)
    }

    fn broken(&self, error: &reqwest::Error) -> Failure {
        Failure::Broken(format!("the connection to {} broke ({}): try again", self.base, innermost(error)))
    }
}

const ADVICE: &str = "check that it runs, and --url; on its own host, name its --data-dir";

/// How this host knows whoever runs this.
fn own_name() -> Option<String> {
    nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten().map(|user| user.name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_and_queries_are_encoded() {
        let url = |base: &str, call: Call<'_>| call.url(&Url::parse(base).expect("a URL")).to_string();
        let call = Call::new(Method::GET, &["configs", "a/b ü?"]);
        assert_eq!(url("http://h:1/", call.clone()), "http://h:1/api/configs/a%2Fb%20%C3%BC%3F");
        assert_eq!(url("http://h/behind/", Call::new(Method::GET, &["queue"])), "http://h/behind/api/queue");
        let call = Call::new(Method::GET, &["queue"]).query(&json!({"user": "a&b", "limit": 5, "label": null}));
        assert_eq!(url("http://h/", call), "http://h/api/queue?limit=5&user=a%26b");
    }

    #[test]
    fn only_what_does_no_harm_is_sent_again() {
        assert!(Call::new(Method::GET, &[]).may_be_repeated() && Call::new(Method::PUT, &[]).may_be_repeated());
        assert!(!Call::new(Method::POST, &[]).may_be_repeated() && !Call::new(Method::DELETE, &[]).may_be_repeated());
        assert!(Call::new(Method::POST, &[]).key("k".to_owned()).may_be_repeated());
    }
}
