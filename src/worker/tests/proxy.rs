//! HTTP proxies from the usual variables, tested with a small proxy that forwards plain requests and opens tunnels.

use std::io;
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::doctor::{assert_line, run_doctor};
use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;
use super::tls::orchestrator;

/// A name that only the proxy can resolve.
const NAME: &str = "orchestrator.test";

/// A proxy that resolves every name to one server.
struct TestProxy {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    async fn start(server: &str) -> io::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", socket.local_addr()?);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, server) = (Arc::clone(&requests), server.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = socket.accept().await {
                let (log, server) = (Arc::clone(&log), server.clone());
                // Errors of a connection are ignored.
                tokio::spawn(async move { drop(forward(client, &server, &log).await) });
            }
        });
        Ok(Self { url, requests })
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }

    fn has_request(&self, start: &str) -> bool {
        self.requests().iter().any(|line| line.starts_with(start))
    }
}

/// One connection: a tunnel, or a sequence of requests whose heads are recorded.
async fn forward(mut client: TcpStream, server: &str, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let head = read_head(&mut client).await?;
    let line = head.lines().next().unwrap_or_default().to_owned();
    log.lock().expect("no panic").push(line.clone());
    let mut upstream = TcpStream::connect(server).await?;
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        // One request per connection, so that each is recorded.
        let (method, rest) = line.split_once(" http://").ok_or_else(|| io::Error::other(line.clone()))?;
        let path = rest.find('/').map_or("/", |index| &rest[index..]);
        let headers = head.split_once("\r\n").map_or("", |(_, headers)| headers);
        upstream.write_all(format!("{method} {path}\r\nConnection: close\r\n{headers}").as_bytes()).await?;
    }
    tokio::io::copy_bidirectional(&mut client, &mut upstream).await.map(drop)
}

async fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    String::from_utf8(head).map_err(io::Error::other)
}

fn address(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// A host whose job writes a file.
fn host(variables: &[(&str, &str)]) -> io::Result<TestHost> {
    let mut host = TestHost::with_script("mkdir -p ../output; echo weights >../output/model.safetensors; echo done")?;
    host.variables.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Ok(host)
}

#[tokio::test]
async fn http_requests_use_the_proxy() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let proxy = TestProxy::start(address(&fake.url)).await?;
    let host = host(&[("HTTP_PROXY", &proxy.url)])?;
    let agent = host.start_at(&format!("http://{NAME}"))?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}\n{:#?}", proxy.requests());
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert!(fake.state().artifacts.contains_key("model.safetensors"), "{:?}", fake.state().artifacts.keys());
    for request in [
        "POST http://orchestrator.test/api/workers/register",
        "GET http://orchestrator.test/api/workers/stream",
        "GET http://orchestrator.test/api/workers/job/j_1/bundle",
        "PUT http://orchestrator.test/api/workers/job/j_1/logs",
        "PUT http://orchestrator.test/api/workers/job/j_1/artifacts/model.safetensors",
        "POST http://orchestrator.test/api/workers/disconnect",
    ] {
        assert!(proxy.has_request(request), "{request}: {:#?}", proxy.requests());
    }
    Ok(())
}

#[tokio::test]
async fn https_uses_a_tunnel() -> io::Result<()> {
    let server = orchestrator(NAME).await?;
    let port = server.fake.url.rsplit_once(':').map(|(_, port)| port.to_owned()).unwrap_or_default();
    let proxy = TestProxy::start(&format!("127.0.0.1:{port}")).await?;
    let host = host(&[("https_proxy", &proxy.url), ("HTTP_PROXY", "http://127.0.0.1:1")])?;
    let ca = host.path().join("ca.pem");
    std::fs::write(&ca, &server.authority)?;
    let host = host.flags(&["--ca-file", &ca.to_string_lossy()]);
    let agent = host.start_at(&format!("https://{NAME}"))?;
    server.fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(server.fake.reported_statuses(), ["starting", "running", "completed"]);
    assert!(server.fake.state().artifacts.contains_key("model.safetensors"));
    let requests = proxy.requests();
    assert!(requests.iter().all(|line| line.starts_with("CONNECT orchestrator.test:443 ")), "{requests:?}");
    Ok(())
}

/// Registers with these variables; returns whether the proxy was bypassed.
async fn bypasses_proxy(
    url: &str,
    fake: &FakeOrchestrator,
    proxy: &TestProxy,
    variables: &[(&str, &str)],
) -> io::Result<bool> {
    let host = host(variables)?.flags(&["--persistent"]);
    let agent = host.start_at(url)?;
    fake.wait_until("a registration", |shared| (!shared.registrations.is_empty()).then_some(())).await;
    agent.signal(Signal::SIGTERM)?;
    agent.wait_for_exit().await?;
    Ok(proxy.requests().is_empty())
}

#[tokio::test]
async fn local_orchestrator_bypasses_the_proxy() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let proxy = TestProxy::start(address(&fake.url)).await?;
    assert!(bypasses_proxy(&fake.url, &fake, &proxy, &[("HTTP_PROXY", &proxy.url), ("ALL_PROXY", &proxy.url)]).await?);
    Ok(())
}

#[tokio::test]
async fn no_proxy_exceptions_apply() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let proxy = TestProxy::start(address(&fake.url)).await?;
    // Another address of this machine, which does not bypass proxies by default.
    let url = fake.url.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    let with_proxy = [("HTTP_PROXY", proxy.url.as_str())];
    let with_exception =
        [("HTTP_PROXY", proxy.url.as_str()), ("NO_PROXY", "example.com,::ffff:127.0.0.1,::ffff:7f00:1")];
    assert!(bypasses_proxy(&url, &fake, &proxy, &with_exception).await?, "{:?}", proxy.requests());
    fake.state().registrations.clear();
    assert!(!bypasses_proxy(&url, &fake, &proxy, &with_proxy).await?, "without the exception the proxy is used");
    Ok(())
}

#[tokio::test]
async fn doctor_uses_the_proxy() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let proxy = TestProxy::start(address(&fake.url)).await?;
    let url = format!("http://{NAME}");
    let report = run_doctor(&host(&[("http_proxy", &proxy.url)])?, &url).await?;
    assert_line(&report, "ok    dns: ", &["the proxy 127.0.0.1:"]);
    assert_line(&report, "ok    token: ", &["accepted"]);
    assert!(proxy.has_request("GET http://orchestrator.test/api/workers/queue"), "{:?}", proxy.requests());
    let report = run_doctor(&host(&[("http_proxy", "http://127.0.0.1:1")])?, &url).await?;
    assert_line(&report, "fail  tcp: ", &["Connection refused", "that the proxy runs"]);
    Ok(())
}

/// Reports its progress through the proxy that its environment sets for the address, as most Python programs do.
const PROGRESS_TRAINER: &str = r#"
import json, os, urllib.request
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
event = {"type": "training.status", "progress": {"current": 7, "total": 9, "metrics": {"loss": 0.5}}}
headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
print(urllib.request.getproxies().get("http"))
urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
"#;

#[tokio::test]
async fn trainer_webhook_bypasses_the_proxy() -> io::Result<()> {
    for variable in ["HTTP_PROXY", "http_proxy"] {
        let fake = FakeOrchestrator::start().await?;
        let proxy = TestProxy::start(address(&fake.url)).await?;
        let mut host = TestHost::with_python(PROGRESS_TRAINER)?;
        host.variables.push((variable.to_owned(), proxy.url.clone()));
        let agent = host.start(&fake)?;
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        let (code, output) = agent.wait_for_exit().await?;
        assert_eq!(
            (code, fake.reported_statuses()),
            (Some(0), ["starting", "running", "completed"].map(str::to_owned).into()),
            "{output}"
        );
        let shared = fake.state();
        assert_eq!(String::from_utf8_lossy(&shared.log).trim(), proxy.url, "the trainer's environment has the proxy");
        assert_eq!(shared.points.iter().map(|point| &point["step"]).collect::<Vec<_>>(), [&json!(7)]);
        assert_eq!(proxy.requests(), [""; 0]);
    }
    Ok(())
}
