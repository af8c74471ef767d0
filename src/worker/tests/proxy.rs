//! HTTP proxies, by the variables that everybody sets: a small real one, which forwards plain requests and opens tunnels.

use std::io;
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::doctor::{assert_line, examined};
use super::fake::Fake;
use super::host::Host;
use super::tls::orchestrator;

/// A name that only the proxy knows.
const NAME: &str = "orchestrator.test";

/// It knows one server, and takes every name for that one's.
struct Proxy {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn before(server: &str) -> io::Result<Self> {
        let socket = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", socket.local_addr()?);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, server) = (Arc::clone(&asked), server.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = socket.accept().await {
                let (log, server) = (Arc::clone(&log), server.clone());
                // A connection ends as it ends.
                tokio::spawn(async move { drop(pass(client, &server, &log).await) });
            }
        });
        Ok(Self { url, asked })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }

    fn was_asked(&self, what: &str) -> bool {
        self.asked().iter().any(|line| line.starts_with(what))
    }
}

/// One connection: a tunnel, or requests one after another, whose heads are looked at and whose bodies are not.
async fn pass(mut client: TcpStream, server: &str, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let head = read_head(&mut client).await?;
    let line = head.lines().next().unwrap_or_default().to_owned();
    log.lock().expect("no panic").push(line.clone());
    let mut there = TcpStream::connect(server).await?;
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        // One request to a connection, so that each is seen.
        let (method, rest) = line.split_once(" http://").ok_or_else(|| io::Error::other(line.clone()))?;
        let path = rest.find('/').map_or("/", |at| &rest[at..]);
        let headers = head.split_once("\r\n").map_or("", |(_, headers)| headers);
        there.write_all(format!("{method} {path}\r\nConnection: close\r\n{headers}").as_bytes()).await?;
    }
    tokio::io::copy_bidirectional(&mut client, &mut there).await.map(drop)
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

/// A job that makes a file.
fn host(variables: &[(&str, &str)]) -> io::Result<Host> {
    let mut host = Host::with_script("mkdir -p ../output; echo weights >../output/model.safetensors; echo done")?;
    host.variables.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Ok(host)
}

#[tokio::test]
async fn plain_requests_go_through_it() -> io::Result<()> {
    let fake = Fake::start().await?;
    let proxy = Proxy::before(address(&fake.url)).await?;
    let host = host(&[("HTTP_PROXY", &proxy.url)])?;
    let agent = host.start_at(&format!("http://{NAME}"))?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}\n{:#?}", proxy.asked());
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert!(fake.shared().artifacts.contains_key("model.safetensors"), "{:?}", fake.shared().artifacts.keys());
    for what in [
        "POST http://orchestrator.test/api/workers/register",
        "GET http://orchestrator.test/api/workers/stream",
        "GET http://orchestrator.test/api/workers/job/j_1/bundle",
        "PUT http://orchestrator.test/api/workers/job/j_1/logs",
        "PUT http://orchestrator.test/api/workers/job/j_1/artifacts/model.safetensors",
        "POST http://orchestrator.test/api/workers/disconnect",
    ] {
        assert!(proxy.was_asked(what), "{what}: {:#?}", proxy.asked());
    }
    Ok(())
}

#[tokio::test]
async fn https_goes_through_a_tunnel() -> io::Result<()> {
    let known = orchestrator(NAME).await?;
    let port = known.fake.url.rsplit_once(':').map(|(_, port)| port.to_owned()).unwrap_or_default();
    let proxy = Proxy::before(&format!("127.0.0.1:{port}")).await?;
    let host = host(&[("https_proxy", &proxy.url), ("HTTP_PROXY", "http://127.0.0.1:1")])?;
    let ca = host.path().join("ca.pem");
    std::fs::write(&ca, &known.authority)?;
    let host = host.flags(&["--ca-file", &ca.to_string_lossy()]);
    let agent = host.start_at(&format!("https://{NAME}"))?;
    known.fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(known.fake.words(), ["starting", "running", "completed"]);
    assert!(known.fake.shared().artifacts.contains_key("model.safetensors"));
    let asked = proxy.asked();
    assert!(asked.iter().all(|line| line.starts_with("CONNECT orchestrator.test:443 ")), "{asked:?}");
    Ok(())
}

/// Registers with these variables; whether it went past the proxy.
async fn goes_past(url: &str, fake: &Fake, proxy: &Proxy, variables: &[(&str, &str)]) -> io::Result<bool> {
    let host = host(variables)?.flags(&["--persistent"]);
    let agent = host.start_at(url)?;
    fake.until("a registration", |shared| (!shared.registers.is_empty()).then_some(())).await;
    agent.signal(Signal::SIGTERM)?;
    agent.end().await?;
    Ok(proxy.asked().is_empty())
}

#[tokio::test]
async fn an_orchestrator_on_this_machine_is_never_asked_through_one() -> io::Result<()> {
    let fake = Fake::start().await?;
    let proxy = Proxy::before(address(&fake.url)).await?;
    assert!(goes_past(&fake.url, &fake, &proxy, &[("HTTP_PROXY", &proxy.url), ("ALL_PROXY", &proxy.url)]).await?);
    Ok(())
}

#[tokio::test]
async fn exceptions_are_kept() -> io::Result<()> {
    let fake = Fake::start().await?;
    let proxy = Proxy::before(address(&fake.url)).await?;
    // Another address of this machine, which is not one of those that are never asked through a proxy anyway.
    let url = fake.url.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    let with = [("HTTP_PROXY", proxy.url.as_str())];
    let except = [("HTTP_PROXY", proxy.url.as_str()), ("NO_PROXY", "example.com,::ffff:127.0.0.1,::ffff:7f00:1")];
    assert!(goes_past(&url, &fake, &proxy, &except).await?, "{:?}", proxy.asked());
    fake.shared().registers.clear();
    assert!(!goes_past(&url, &fake, &proxy, &with).await?, "without the exception it is asked");
    Ok(())
}

#[tokio::test]
async fn the_doctor_goes_the_same_way() -> io::Result<()> {
    let fake = Fake::start().await?;
    let proxy = Proxy::before(address(&fake.url)).await?;
    let url = format!("http://{NAME}");
    let report = examined(&host(&[("http_proxy", &proxy.url)])?, &url).await?;
    assert_line(&report, "ok    dns: ", &["the proxy 127.0.0.1:"]);
    assert_line(&report, "ok    token: ", &["accepts"]);
    assert!(proxy.was_asked("GET http://orchestrator.test/api/workers/queue"), "{:?}", proxy.asked());
    let report = examined(&host(&[("http_proxy", "http://127.0.0.1:1")])?, &url).await?;
    assert_line(&report, "fail  tcp: ", &["Connection refused", "that the proxy runs"]);
    Ok(())
}
