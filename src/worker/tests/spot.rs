//! A host that is about to be taken away, as its provider says it.

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

use super::fake::Fake;
use super::host::{Host, until};

/// A metadata service.
#[derive(Clone, Default)]
struct Service {
    /// What is asked, as `METHOD path`, with the header that opens it, and the answer.
    answers: Arc<Mutex<Vec<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Answer {
    to: &'static str,
    header: (&'static str, &'static str),
    status: u16,
    body: String,
}

fn answer(to: &'static str, header: (&'static str, &'static str), status: u16, body: &str) -> Answer {
    Answer { to, header, status, body: body.to_owned() }
}

impl Service {
    async fn start(answers: Vec<Answer>) -> io::Result<(Self, String)> {
        let service = Self { answers: Arc::new(Mutex::new(answers)), ..Self::default() };
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", socket.local_addr()?);
        let own = service.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = socket.accept().await {
                let own = own.clone();
                let answering = service_fn(move |request| {
                    let answer = own.answer(&request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(async move {
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(TokioIo::new(connection), answering).await);
                });
            }
        });
        Ok((service, url))
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let asked = format!("{} {}", request.method(), request.uri());
        let answers = self.answers.lock().expect("no panic");
        let opened = |answer: &&Answer| {
            let (name, value) = answer.header;
            answer.to == asked && request.headers().get(name).is_some_and(|given| given == value)
        };
        let (status, body) = match answers.iter().find(opened) {
            Some(answer) => (answer.status, answer.body.clone()),
            None => (400, String::new()),
        };
        self.asked.lock().expect("no panic").push(asked);
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status.try_into().expect("a status");
        response
    }

    fn was_asked(&self, what: &str) -> bool {
        self.asked.lock().expect("no panic").iter().any(|asked| asked == what)
    }

    /// From now on there is a notice.
    fn now(&self, to: &str, status: u16, body: &str) {
        for answer in self.answers.lock().expect("no panic").iter_mut().filter(|answer| answer.to == to) {
            (answer.status, answer.body) = (status, body.to_owned());
        }
    }
}

const SAVING: &str = "trap 'echo saving; exit 0' TERM; while true; do sleep 0.05; done";

/// Whether the job went back with these words, nothing new was taken, and the agent ended with 0.
async fn gave_back(fake: &Fake, agent: super::host::Agent, words: &str) -> io::Result<String> {
    let report = fake.status("requeue").await;
    assert_eq!(report["error"], format!("the host is being taken away (spot notice of {words})"));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "requeue"], "{said}");
    assert!(fake.shared().log.ends_with(b"saving\n"), "what was there was sent");
    assert_eq!(fake.shared().disconnects[0]["left_running"], json!([]));
    Ok(said)
}

#[tokio::test]
async fn amazon() -> io::Result<()> {
    const ACTION: &str = "GET /latest/meta-data/spot/instance-action";
    let (service, url) = Service::start(vec![
        answer("PUT /latest/api/token", ("X-aws-ec2-metadata-token-ttl-seconds", "21600"), 200, "imds-token"),
        answer(ACTION, ("X-aws-ec2-metadata-token", "imds-token"), 404, ""),
    ])
    .await?;
    let fake = Fake::start().await?;
    // An address of this machine that is not one of those which are never asked through a proxy anyway.
    let url = url.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    // A persistent worker would leave its trainers running; this host is no place to leave them.
    let mut host = Host::with_script(SAVING)?.flags(&["--persistent", "--spot-metadata-url", &url]);
    host.variables.push(("SIMPLETUNER_SPOT_NOTICE".to_owned(), "aws".to_owned()));
    // Nobody listens there: a metadata service is never asked through a proxy.
    host.variables.push(("HTTP_PROXY".to_owned(), "http://127.0.0.1:1".to_owned()));
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    until("the first question", || service.was_asked(ACTION).then_some(())).await;
    service.now(ACTION, 200, r#"{"action": "terminate", "time": "2100-01-15T10:32:00Z"}"#);
    gave_back(&fake, agent, "aws").await?;
    Ok(())
}

#[tokio::test]
async fn google_and_a_trainer_that_takes_its_time() -> io::Result<()> {
    const PREEMPTED: &str = "GET /computeMetadata/v1/instance/preempted";
    let (service, url) = Service::start(vec![answer(PREEMPTED, ("Metadata-Flavor", "Google"), 200, "FALSE")]).await?;
    let fake = Fake::start().await?;
    let host = Host::with_script("trap '' TERM; while true; do sleep 0.05; done")?;
    // More than the half minute that Google gives.
    let host = host.flags(&["--stop-grace", "600", "--spot-notice", "gcp", "--spot-metadata-url", &url]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    service.now(PREEMPTED, 200, "TRUE");
    let order = until("the order", || {
        let text = std::fs::read_to_string(host.attempt("j_1", 1).join("stop.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    })
    .await;
    let grace = order["grace_seconds"].as_u64().unwrap_or_default();
    assert!((15..=20).contains(&grace), "{order}");
    agent.kill().await
}

#[tokio::test]
async fn azure() -> io::Result<()> {
    const EVENTS: &str = "GET /metadata/scheduledevents?api-version=2020-07-01";
    const NAME: &str = "GET /metadata/instance/compute/name?api-version=2021-02-01&format=text";
    let preempt = |name: &str| {
        json!({"DocumentIncarnation": 1, "Events": [{"EventId": "e", "EventType": "Preempt", "EventStatus": "Scheduled",
            "ResourceType": "VirtualMachine", "Resources": [name], "NotBefore": "Fri, 15 Jan 2100 10:30:00 GMT"}]})
        .to_string()
    };
    let (service, url) = Service::start(vec![
        answer(NAME, ("Metadata", "true"), 200, "gpu-1"),
        answer(EVENTS, ("Metadata", "true"), 200, &preempt("gpu-2")),
    ])
    .await?;
    let fake = Fake::start().await?;
    let host = Host::with_script(SAVING)?.flags(&["--spot-notice", "azure", "--spot-metadata-url", &url]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    until("the first question", || service.was_asked(EVENTS).then_some(())).await;
    service.now(EVENTS, 200, &preempt("gpu-1"));
    gave_back(&fake, agent, "azure").await?;
    Ok(())
}

#[tokio::test]
async fn a_file() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script(SAVING)?;
    let file = host.path().join("gone");
    let host = host.flags(&["--spot-notice", &format!("file:{}", file.display())]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.status("running").await;
    std::fs::write(&file, "")?;
    gave_back(&fake, agent, &format!("file {}", file.display())).await?;
    Ok(())
}

#[tokio::test]
async fn a_service_that_is_not_there_is_no_notice() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("sleep 1; echo done")?;
    let host = host.flags(&["--spot-notice", "gcp", "--spot-metadata-url", "http://127.0.0.1:1/"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert_eq!(said.matches("--spot-notice gcp: nobody answers").count(), 1, "{said}");
    Ok(())
}
