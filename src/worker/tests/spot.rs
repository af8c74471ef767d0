//! Termination notices of providers.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};

/// A metadata service.
#[derive(Clone, Default)]
struct FakeMetadataService {
    /// Requests as `METHOD path`, with the required header, and the response.
    responses: Arc<Mutex<Vec<MetadataResponse>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct MetadataResponse {
    request_line: &'static str,
    header: (&'static str, &'static str),
    status: u16,
    body: String,
}

fn response(
    request_line: &'static str,
    header: (&'static str, &'static str),
    status: u16,
    body: &str,
) -> MetadataResponse {
    MetadataResponse { request_line, header, status, body: body.to_owned() }
}

impl FakeMetadataService {
    async fn start(responses: Vec<MetadataResponse>) -> io::Result<(Self, String)> {
        let service = Self { responses: Arc::new(Mutex::new(responses)), ..Self::default() };
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", socket.local_addr()?);
        let accepting_service = service.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = socket.accept().await {
                let service = accepting_service.clone();
                let handler = service_fn(move |request| {
                    let response = service.respond(&request);
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(TokioIo::new(connection), handler).await);
                });
            }
        });
        Ok((service, url))
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let line = format!("{} {}", request.method(), request.uri());
        let responses = self.responses.lock().expect("no panic");
        let matches = |candidate: &&MetadataResponse| {
            let (name, value) = candidate.header;
            candidate.request_line == line && request.headers().get(name).is_some_and(|actual| actual == value)
        };
        let (status, body) = match responses.iter().find(matches) {
            Some(found) => (found.status, found.body.clone()),
            None => (400, String::new()),
        };
        self.requests.lock().expect("no panic").push(line);
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status.try_into().expect("a status");
        response
    }

    fn has_request(&self, line: &str) -> bool {
        self.requests.lock().expect("no panic").iter().any(|request| request == line)
    }

    fn set_response(&self, request_line: &str, status: u16, body: &str) {
        let mut responses = self.responses.lock().expect("no panic");
        for response in responses.iter_mut().filter(|response| response.request_line == request_line) {
            (response.status, response.body) = (status, body.to_owned());
        }
    }
}

const SAVING: &str = "trap 'echo saving; exit 0' TERM; while true; do sleep 0.05; done";

/// Asserts that the job was requeued with this reason, no offer was accepted, and the agent exited with 0.
async fn assert_requeued(
    fake: &FakeOrchestrator,
    agent: super::test_host::AgentProcess,
    words: &str,
) -> io::Result<String> {
    let report = fake.wait_for_status("requeue").await;
    assert_eq!(report["error"], format!("the host is being terminated (spot notice of {words})"));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"], "{output}");
    assert!(fake.state().log.ends_with(b"saving\n"), "the existing output was sent");
    assert_eq!(fake.state().disconnects[0]["left_running"], json!([]));
    Ok(output)
}

#[tokio::test]
async fn aws_notice_requeues_the_job() -> io::Result<()> {
    const ACTION: &str = "GET /latest/meta-data/spot/instance-action";
    let (service, url) = FakeMetadataService::start(vec![
        response("PUT /latest/api/token", ("X-aws-ec2-metadata-token-ttl-seconds", "21600"), 200, "imds-token"),
        response(ACTION, ("X-aws-ec2-metadata-token", "imds-token"), 404, ""),
    ])
    .await?;
    let fake = FakeOrchestrator::start().await?;
    // An address of this machine that does not bypass proxies by default.
    let url = url.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    // A persistent worker would leave its trainers running, but this host is being terminated.
    let mut host = TestHost::with_script(SAVING)?.flags(&["--persistent", "--spot-metadata-url", &url]);
    host.variables.push(("SIMPLETUNER_SPOT_NOTICE".to_owned(), "aws".to_owned()));
    // Nothing listens there: a metadata service is never contacted through a proxy.
    host.variables.push(("HTTP_PROXY".to_owned(), "http://127.0.0.1:1".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    wait_until("the first request", || service.has_request(ACTION).then_some(())).await;
    service.set_response(ACTION, 200, r#"{"action": "terminate", "time": "2100-01-15T10:32:00Z"}"#);
    assert_requeued(&fake, agent, "aws").await?;
    Ok(())
}

#[tokio::test]
async fn gcp_notice_limits_the_grace_period() -> io::Result<()> {
    const PREEMPTED: &str = "GET /computeMetadata/v1/instance/preempted";
    let (service, url) =
        FakeMetadataService::start(vec![response(PREEMPTED, ("Metadata-Flavor", "Google"), 200, "FALSE")]).await?;
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("trap '' TERM; while true; do sleep 0.05; done")?;
    // More than the half minute that Google gives.
    let host = host.flags(&["--stop-grace", "600", "--spot-notice", "gcp", "--spot-metadata-url", &url]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    service.set_response(PREEMPTED, 200, "TRUE");
    let order = wait_until("the order", || {
        let text = std::fs::read_to_string(host.attempt("j_1", 1).join("stop.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    })
    .await;
    let grace = order["grace_seconds"].as_u64().unwrap_or_default();
    assert!((15..=20).contains(&grace), "{order}");
    agent.kill().await
}

#[tokio::test]
async fn azure_notice_requeues_the_job() -> io::Result<()> {
    const EVENTS: &str = "GET /metadata/scheduledevents?api-version=2020-07-01";
    const NAME: &str = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text";
    let preempt = |name: &str| {
        json!({"DocumentIncarnation": 1, "Events": [{"EventId": "e", "EventType": "Preempt", "EventStatus": "Scheduled",
            "ResourceType": "VirtualMachine", "Resources": [name], "NotBefore": "Fri, 15 Jan 2100 10:30:00 GMT"}]})
        .to_string()
    };
    let (service, url) = FakeMetadataService::start(vec![
        response(NAME, ("Metadata", "true"), 200, "gpu-1"),
        response(EVENTS, ("Metadata", "true"), 200, &preempt("gpu-2")),
    ])
    .await?;
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(SAVING)?.flags(&["--spot-notice", "azure", "--spot-metadata-url", &url]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    wait_until("the first request", || service.has_request(EVENTS).then_some(())).await;
    service.set_response(EVENTS, 200, &preempt("gpu-1"));
    assert_requeued(&fake, agent, "azure").await?;
    Ok(())
}

#[tokio::test]
async fn notice_file_requeues_the_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script(SAVING)?;
    let file = host.path().join("gone");
    let host = host.flags(&["--spot-notice", &format!("file:{}", file.display())]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("running").await;
    std::fs::write(&file, "")?;
    assert_requeued(&fake, agent, &format!("file {}", file.display())).await?;
    Ok(())
}

#[tokio::test]
async fn unreachable_metadata_service_is_no_notice() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("sleep 1; echo done")?;
    let host = host.flags(&["--spot-notice", "gcp", "--spot-metadata-url", "http://127.0.0.1:1/"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert_eq!(output.matches("--spot-notice gcp: no response").count(), 1, "{output}");
    Ok(())
}
