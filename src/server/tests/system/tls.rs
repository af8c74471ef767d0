//! HTTPS on real sockets: responses, certificate changes, and clients with other protocols.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::domain::time::Millis;
use axum::Router;
use axum::routing::get;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::clock::{Clock, SystemClock};
use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer};
use crate::tls::{CertificatePaths, Tls, self_signed};

/// Long enough for slow handshakes.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// Creates a self-signed certificate, or finds the existing one.
pub(in crate::tests) fn self_signed_certificate(directory: &Path) -> CertificatePaths {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    self_signed::load_or_create(directory, &names, SystemClock.now()).expect("a certificate and its key")
}

pub(in crate::tests) fn open(paths: &CertificatePaths) -> Tls {
    Tls::open(paths.clone(), &SystemClock).expect("a certificate")
}

/// Serves on a port until the test ends.
pub(in crate::tests) async fn serve(router: Router, tls: &Tls, handshake: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let acceptor = tls.acceptor();
    tokio::spawn(async move {
        let timeouts = ConnectionTimeouts { handshake, ..ConnectionTimeouts::default() };
        let limiter = Arc::new(ConnectionLimiter::new(100, 100, Vec::new()));
        serve_with_timeouts(timeouts, listener, router, Some(acceptor), &limiter, &CancellationToken::new()).await;
    });
    address
}

/// Connects with trust in the certificate of this file only.
async fn connect(address: SocketAddr, trusted: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    connect_over(TcpStream::connect(address).await?, trusted, &["http/1.1"]).await
}

/// The same over an existing connection, with the names of the protocols that the client supports.
pub(in crate::tests) async fn connect_over(
    socket: TcpStream,
    trusted: &Path,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    crate::tls::install_crypto_provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).expect("a certificate")).expect("a root");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

/// Sends a request with an optional header, and reads until the server closes.
async fn send(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    request: &str,
    header: Option<&str>,
    body: &str,
) -> String {
    let header = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: localhost:8001\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n{header}\r\n{body}").as_bytes()).await.expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("a response, and the end of the connection");
    response
}

async fn get_root(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> String {
    send(stream, "GET /", None, "").await
}

fn hello_router() -> Router {
    Router::new().route("/", get(async || "hello"))
}

#[tokio::test]
async fn all_routes_work_over_https() {
    let directory = TempDir::new().expect("a directory");
    let paths = self_signed_certificate(directory.path());
    let tls = open(&paths);
    let server = TestServer::start_with_tls(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, HANDSHAKE).await;
    let call = async |request: &str, header: &str, body: &str| {
        let mut stream = connect(address, &paths.chain).await.expect("a handshake");
        send(&mut stream, request, Some(header), body).await
    };
    let admin = format!("authorization: Bearer {ADMIN}");

    let session = call("GET /api/session", &admin, "").await;
    assert!(!session.to_lowercase().contains("strict-transport-security"), "it would lock users out: {session}");
    let session: Value = serde_json::from_str(session.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let fingerprint = tls.fingerprint().to_string();
    assert_eq!(session["base_url"], "https://localhost:8001");
    assert_eq!(session["fingerprint"], fingerprint);

    let body = json!({"name": "gpu-1"}).to_string();
    let created = call("POST /api/admin/workers", &admin, &body).await;
    let command =
        format!(" --orchestrator-url https://localhost:8001 --orchestrator-fingerprint {fingerprint} --name gpu-1");
    assert!(created.contains(&command), "{created}");

    let form = "content-type: application/x-www-form-urlencoded";
    let login = call("POST /ui/login", form, &format!("password={ADMIN}")).await;
    let cookie = login.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert!(cookie.starts_with("__Host-sid=") && cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
    let value = cookie.split(';').next().expect("a cookie");
    let accepted = call("GET /api/session", &format!("cookie: {value}"), "").await;
    assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
    let renamed = value.replace("__Host-", "");
    let planted = call("GET /api/session", &format!("cookie: {renamed}"), "").await;
    assert!(planted.starts_with("HTTP/1.1 401"), "a cookie without the prefix is rejected: {planted}");
    let sign_out = call("POST /ui/logout", &format!("cookie: {value}"), "").await;
    assert!(sign_out.contains("set-cookie: __Host-sid=; Path=/; Max-Age=0;"), "{sign_out}");
}

#[tokio::test]
async fn new_worker_page_shows_the_fingerprint() {
    let directory = TempDir::new().expect("a directory");
    let tls = open(&self_signed_certificate(directory.path()));
    let server = TestServer::start_with_tls(tls.clone()).await;
    let login = server.call(&Actor::Unauthenticated, "POST", "/ui/login", format!("password={ADMIN}")).await;
    let cookie = |response: &TestResponse, name: &str| {
        let cookies = response.headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
        cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with(name)).map(str::to_owned)
    };
    let session = cookie(&login, "__Host-sid=").expect("a session");
    let created = server.call(&Actor::Cookie(session.clone()), "POST", "/ui/workers", "name=gpu-1").await;
    let page = created.headers["location"].to_str().expect("ascii").to_owned();
    let flash = cookie(&created, "flash=").expect("a flash cookie");
    let html = server.get(&Actor::Cookie(format!("{session}; {flash}")), &page).await.text();
    for text in ["--orchestrator-fingerprint ", "SIMPLETUNER_ORCHESTRATOR_FINGERPRINT=", "<code class=\"break-all\">"] {
        assert!(html.contains(&format!("{text}{}", tls.fingerprint())), "{text}: {html}");
    }
}

#[tokio::test]
async fn agents_without_verification_are_marked() {
    const MARK: &str = "TLS not verified";
    let server = TestServer::start().await;
    for (name, verified, marked) in
        [("careless", Some(false), true), ("careful", Some(true), false), ("plain", None, false)]
    {
        let (id, key) = server.create_worker(name).await;
        let mut body = json!({"name": name, "accelerator_type": "cpu"});
        if let Some(verified) = verified {
            body["tls_verify"] = verified.into();
        }
        server.post(&key, "/api/workers/register", body).await.expect_status(200);
        let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
        assert_eq!(view["tls_verify"], json!(verified), "{name}");
        let page = server.get(&Actor::Admin, &format!("/admin/workers/{id}")).await.text().replace("<!>", "");
        assert_eq!(page.contains(MARK), marked, "{name}");
        // Over plain HTTP the agent reports nothing, and the page shows no verification.
        let row = ">Server certificate<";
        assert_eq!(
            (page.contains(row), page.contains(">Verified<")),
            (verified.is_some(), verified == Some(true)),
            "{name}"
        );
    }
    let list = server.get(&Actor::Admin, "/admin/workers").await.text();
    assert_eq!(list.matches(&format!("<span>{MARK}")).count(), 1, "{list}");
}

#[tokio::test]
async fn hsts_is_sent_with_a_ca_signed_certificate() {
    let directory = TempDir::new().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let (authority_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).expect("a root");
    let names = vec!["localhost".to_owned()];
    let mut params = CertificateParams::new(names).expect("parameters");
    params.distinguished_name.push(rcgen::DnType::CommonName, "tuner");
    let signed = params.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).expect("a certificate");
    std::fs::write(file("root.pem"), root.pem()).expect("written");
    std::fs::write(file("cert.pem"), signed.pem()).expect("written");
    std::fs::write(file("key.pem"), key.serialize_pem()).expect("written");

    let tls = open(&CertificatePaths { chain: file("cert.pem"), key: file("key.pem") });
    assert_eq!(tls.pin(), None, "agents verify it with its authority");
    let server = TestServer::start_with_tls(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, HANDSHAKE).await;
    let mut stream = connect(address, &file("root.pem")).await.expect("a handshake");
    let health = send(&mut stream, "GET /healthz", None, "").await;
    assert!(health.contains("strict-transport-security: max-age=31536000"), "{health}");
}

#[tokio::test]
async fn new_certificate_applies_to_new_connections() {
    let directory = TempDir::new().expect("a directory");
    let (paths, next) = (
        self_signed_certificate(&directory.path().join("now")),
        self_signed_certificate(&directory.path().join("next")),
    );
    let first = directory.path().join("first.pem");
    std::fs::copy(&paths.chain, &first).expect("a copy");
    let tls = open(&paths);
    let old = tls.fingerprint();
    let address = serve(hello_router(), &tls, HANDSHAKE).await;
    let watch_task = tokio::spawn(tls.clone().watch_files(Arc::new(SystemClock), Duration::from_millis(2)));
    let mut before = connect(address, &first).await.expect("a handshake");

    // Half-written: the key does not belong to the certificate.
    std::fs::copy(&next.key, &paths.key).expect("a copy");
    let mut between = connect(address, &first).await.expect("the old certificate is in use");
    assert!(get_root(&mut between).await.ends_with("hello"));

    std::fs::copy(&next.chain, &paths.chain).expect("a copy");
    tls.key_changed(old).await;
    let mut after = connect(address, &next.chain).await.expect("a handshake");
    assert!(get_root(&mut after).await.ends_with("hello"));
    assert!(connect(address, &first).await.is_err(), "the old certificate is no longer in use");
    assert!(get_root(&mut before).await.ends_with("hello"), "open connections stay");
    watch_task.abort();
}

#[tokio::test]
async fn certificate_is_created_once() {
    let directory = TempDir::new().expect("a directory");
    let paths = self_signed_certificate(directory.path());
    let (first, chain) = (open(&paths).fingerprint(), std::fs::read(&paths.chain).expect("a file"));
    let again = self_signed_certificate(directory.path());
    assert_eq!((open(&again).fingerprint(), std::fs::read(&again.chain).expect("a file")), (first, chain));
    let later = SystemClock.now() + Millis::from_secs(390 * 24 * 3_600);
    let renewed = self_signed::load_or_create(directory.path(), &["localhost".to_owned()], later)
        .expect("a certificate and its key");
    assert_eq!(open(&renewed).fingerprint(), first, "agents verify it by its key, which stays");
}

#[tokio::test]
async fn stalled_handshake_is_closed_and_does_not_block_others() {
    let directory = TempDir::new().expect("a directory");
    let paths = self_signed_certificate(directory.path());
    let tls = open(&paths);
    let address = serve(hello_router(), &tls, Duration::from_millis(300)).await;
    let mut silent = TcpStream::connect(address).await.expect("connected");
    let mut partial = TcpStream::connect(address).await.expect("connected");
    partial.write_all(&[0x16, 3, 1]).await.expect("sent");
    let mut other = connect(address, &paths.chain).await.expect("a handshake");
    assert!(get_root(&mut other).await.ends_with("hello"));
    for stalled in [&mut silent, &mut partial] {
        let read_result = stalled.read_to_end(&mut Vec::new()).await;
        assert!(read_result.is_ok_and(|bytes| bytes == 0), "closed");
    }
}

/// The first message of a client whose newest TLS version is this one, with cipher suites of 1.2 and older.
fn client_hello(version: [u8; 2]) -> Vec<u8> {
    let mut hello = version.to_vec();
    hello.extend([7; 32]); // random
    hello.push(0); // no session
    hello.extend([0, 4, 0xc0, 0x2b, 0xc0, 0x09]); // ECDHE and ECDSA with AES-128: GCM, and CBC with SHA-1
    hello.extend([1, 0]); // no compression
    // The curve P-256, uncompressed points, and ECDSA or RSA with SHA-256.
    let extensions = [0, 10, 0, 4, 0, 2, 0, 23, 0, 11, 0, 2, 1, 0, 0, 13, 0, 6, 0, 4, 4, 3, 4, 1];
    hello.extend([0, u8::try_from(extensions.len()).expect("short")]);
    hello.extend(extensions);
    let length = |bytes: usize| u16::try_from(bytes).expect("short").to_be_bytes();
    let mut record = vec![0x16, 3, 1];
    record.extend(length(hello.len() + 4));
    record.extend([1, 0]);
    record.extend(length(hello.len()));
    record.extend(hello);
    record
}

#[tokio::test]
async fn versions_before_tls_1_2_are_rejected() {
    const ALERT: u8 = 0x15;
    const HANDSHAKE_RECORD: u8 = 0x16;
    const PROTOCOL_VERSION: [u8; 2] = [2, 70];
    let directory = TempDir::new().expect("a directory");
    let tls = open(&self_signed_certificate(directory.path()));
    let address = serve(hello_router(), &tls, HANDSHAKE).await;
    for version in [[3, 0], [3, 1], [3, 2]] {
        let mut old = TcpStream::connect(address).await.expect("connected");
        old.write_all(&client_hello(version)).await.expect("sent");
        let mut response = Vec::new();
        let _ = old.read_to_end(&mut response).await;
        assert_eq!((response.first(), response.get(5..7)), (Some(&ALERT), Some(&PROTOCOL_VERSION[..])), "{version:?}");
    }
    let mut new = TcpStream::connect(address).await.expect("connected");
    new.write_all(&client_hello([3, 3])).await.expect("sent");
    let mut kind = [0];
    new.read_exact(&mut kind).await.expect("a response");
    assert_eq!(kind, [HANDSHAKE_RECORD], "the same message with TLS 1.2 is accepted");
}

#[tokio::test]
async fn plain_http_gets_an_error_on_the_tls_port() {
    let directory = TempDir::new().expect("a directory");
    let tls = open(&self_signed_certificate(directory.path()));
    let address = serve(hello_router(), &tls, HANDSHAKE).await;
    let mut plain = TcpStream::connect(address).await.expect("connected");
    let response = get_root(&mut plain).await;
    assert!(response.starts_with("HTTP/1.1 400") && response.contains("write https://"), "{response}");
    let body: Value = serde_json::from_str(response.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!(body["code"], "tls_required");

    let mut junk = TcpStream::connect(address).await.expect("connected");
    junk.write_all(b"\x16\x03\x01\x00\x05junk!").await.expect("sent");
    // The server may send an alert, and closes in any case.
    let _ = junk.read_to_end(&mut Vec::new()).await;
}
