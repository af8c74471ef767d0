//! HTTPS, on real sockets: what is served over it, certificates that change, and clients that speak something else.

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

use super::harness::{ADMIN, Answer, By, Server};
use crate::boot::connections::Connections;
use crate::boot::serve::{Patience, serve_within};
use crate::clock::{Clock, SystemClock};
use crate::tls::{Pair, Tls, self_signed};

/// Long, for handshakes that are not to be cut short.
const HANDSHAKE: Duration = Duration::from_mins(1);

/// A certificate of the server's own making.
pub(super) fn own(directory: &Path) -> Pair {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    self_signed::keep(directory, &names, SystemClock.now()).expect("a pair")
}

fn open(pair: &Pair) -> Tls {
    Tls::open(pair.clone(), &SystemClock).expect("a certificate")
}

/// A port where this is served until the test ends.
async fn serve(router: Router, tls: &Tls, handshake: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let acceptor = tls.acceptor();
    tokio::spawn(async move {
        let patience = Patience { handshake, ..Patience::default() };
        let room = Arc::new(Connections::new(100, 100, Vec::new()));
        serve_within(patience, listener, router, Some(acceptor), &room, &CancellationToken::new()).await;
    });
    address
}

/// Connects as somebody who trusts the certificate in this file and no other.
async fn connect(address: SocketAddr, trusted: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    connect_over(TcpStream::connect(address).await?, trusted).await
}

/// The same over a connection that is there.
pub(super) async fn connect_over(socket: TcpStream, trusted: &Path) -> std::io::Result<TlsStream<TcpStream>> {
    crate::tls::install_provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).expect("a certificate")).expect("a root");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

/// Sends a request, perhaps with one more header, and reads until the server closes.
async fn ask(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    request: &str,
    header: Option<&str>,
    body: &str,
) -> String {
    let header = header.map(|header| format!("{header}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!("{request} HTTP/1.1\r\nhost: localhost:8001\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n{header}\r\n{body}").as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer, and an end");
    answer
}

async fn get_root(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> String {
    ask(stream, "GET /", None, "").await
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

#[tokio::test]
async fn the_whole_server_answers_over_https() {
    let directory = TempDir::new().expect("a directory");
    let pair = own(directory.path());
    let tls = open(&pair);
    let server = Server::start_over(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, HANDSHAKE).await;
    let call = async |request: &str, header: &str, body: &str| {
        let mut stream = connect(address, &pair.chain).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        ask(&mut stream, request, Some(header), body).await
    };
    let admin = format!("authorization: Bearer {ADMIN}");

    let session = call("GET /api/session", &admin, "").await;
    assert!(!session.to_lowercase().contains("strict-transport-security"), "it would lock people out: {session}");
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
    let value = cookie.split(';').next().expect("a pair");
    let known = call("GET /api/session", &format!("cookie: {value}"), "").await;
    assert!(known.starts_with("HTTP/1.1 200"), "{known}");
    let renamed = value.replace("__Host-", "");
    let planted = call("GET /api/session", &format!("cookie: {renamed}"), "").await;
    assert!(planted.starts_with("HTTP/1.1 401"), "a plain connection could have planted it: {planted}");
    let gone = call("POST /ui/logout", &format!("cookie: {value}"), "").await;
    assert!(gone.contains("set-cookie: __Host-sid=; Path=/; Max-Age=0;"), "{gone}");
}

#[tokio::test]
async fn a_new_workers_page_shows_the_fingerprint() {
    let directory = TempDir::new().expect("a directory");
    let tls = open(&own(directory.path()));
    let server = Server::start_over(tls.clone()).await;
    let login = server.call(&By::Nobody, "POST", "/ui/login", format!("password={ADMIN}")).await;
    let cookie = |answer: &Answer, name: &str| {
        let cookies = answer.headers.get_all("set-cookie").iter().filter_map(|cookie| cookie.to_str().ok());
        cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with(name)).map(str::to_owned)
    };
    let session = cookie(&login, "__Host-sid=").expect("a session");
    let made = server.call(&By::Cookie(session.clone()), "POST", "/ui/workers", "name=gpu-1").await;
    let page = made.headers["location"].to_str().expect("ascii").to_owned();
    let flash = cookie(&made, "flash=").expect("a word for the next page");
    let shown = server.get(&By::Cookie(format!("{session}; {flash}")), &page).await.text();
    for text in ["--orchestrator-fingerprint ", "SIMPLETUNER_ORCHESTRATOR_FINGERPRINT=", "<code class=\"break-all\">"] {
        assert!(shown.contains(&format!("{text}{}", tls.fingerprint())), "{text}: {shown}");
    }
}

#[tokio::test]
async fn agents_that_verify_nothing_are_marked() {
    const MARK: &str = "TLS not verified";
    let server = Server::start().await;
    for (name, told, marked) in
        [("careless", Some(false), true), ("careful", Some(true), false), ("older", None, false)]
    {
        let (id, key) = server.worker(name).await;
        let mut body = json!({"name": name, "accelerator_type": "cpu"});
        if let Some(told) = told {
            body["tls_verify"] = told.into();
        }
        server.post(&key, "/api/workers/register", body).await.ok(200);
        let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
        assert_eq!(view["tls_verify"], json!(told), "{name}");
        let page = server.get(&By::Admin, &format!("/admin/workers/{id}")).await.text();
        assert_eq!(page.contains(MARK), marked, "{name}");
    }
    let list = server.get(&By::Admin, "/admin/workers").await.text();
    assert_eq!(list.matches(&format!("<span>{MARK}")).count(), 1, "{list}");
}

#[tokio::test]
async fn browsers_are_told_to_insist_on_a_certificate_that_an_authority_has_signed() {
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

    let tls = open(&Pair { chain: file("cert.pem"), key: file("key.pem") });
    assert_eq!(tls.to_pin(), None, "agents know its authority");
    let server = Server::start_over(tls.clone()).await;
    let address = serve(server.router.clone(), &tls, HANDSHAKE).await;
    let mut stream = connect(address, &file("root.pem")).await.expect("a handshake");
    let health = ask(&mut stream, "GET /healthz", None, "").await;
    assert!(health.contains("strict-transport-security: max-age=31536000"), "{health}");
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections() {
    let directory = TempDir::new().expect("a directory");
    let (pair, next) = (own(&directory.path().join("now")), own(&directory.path().join("next")));
    let first = directory.path().join("first.pem");
    std::fs::copy(&pair.chain, &first).expect("a copy");
    let tls = open(&pair);
    let old = tls.fingerprint();
    let address = serve(hello(), &tls, HANDSHAKE).await;
    let following = tokio::spawn(tls.clone().follow(Arc::new(SystemClock), Duration::from_millis(2)));
    let mut before = connect(address, &first).await.expect("a handshake");

    // Half of it is written: a key that is not this certificate's.
    std::fs::copy(&next.key, &pair.key).expect("a copy");
    let mut between = connect(address, &first).await.expect("the old one stays");
    assert!(get_root(&mut between).await.ends_with("hello"));

    std::fs::copy(&next.chain, &pair.chain).expect("a copy");
    tls.another_key(old).await;
    let mut after = connect(address, &next.chain).await.expect("a handshake");
    assert!(get_root(&mut after).await.ends_with("hello"));
    assert!(connect(address, &first).await.is_err(), "the old one is no longer shown");
    assert!(get_root(&mut before).await.ends_with("hello"), "what was open stays");
    following.abort();
}

#[tokio::test]
async fn the_certificate_is_made_once() {
    let directory = TempDir::new().expect("a directory");
    let pair = own(directory.path());
    let (first, chain) = (open(&pair).fingerprint(), std::fs::read(&pair.chain).expect("a file"));
    let again = own(directory.path());
    assert_eq!((open(&again).fingerprint(), std::fs::read(&again.chain).expect("a file")), (first, chain));
    let later = SystemClock.now() + Millis::seconds(390 * 24 * 3_600);
    let renewed = self_signed::keep(directory.path(), &["localhost".to_owned()], later).expect("a pair");
    assert_eq!(open(&renewed).fingerprint(), first, "agents know it by its key, which stays");
}

#[tokio::test]
async fn a_handshake_that_stalls_is_ended_and_holds_up_nobody() {
    let directory = TempDir::new().expect("a directory");
    let pair = own(directory.path());
    let tls = open(&pair);
    let address = serve(hello(), &tls, Duration::from_millis(300)).await;
    let mut silent = TcpStream::connect(address).await.expect("connected");
    let mut half = TcpStream::connect(address).await.expect("connected");
    half.write_all(&[0x16, 3, 1]).await.expect("sent");
    let mut other = connect(address, &pair.chain).await.expect("a handshake");
    assert!(get_root(&mut other).await.ends_with("hello"));
    for stalled in [&mut silent, &mut half] {
        let ended = stalled.read_to_end(&mut Vec::new()).await;
        assert!(ended.is_ok_and(|bytes| bytes == 0), "closed");
    }
}

/// The first message of a client that speaks no newer TLS than this, with cipher suites of 1.2 and of older versions.
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
async fn versions_before_tls_1_2_are_refused() {
    const ALERT: u8 = 0x15;
    const HANDSHAKE_RECORD: u8 = 0x16;
    const PROTOCOL_VERSION: [u8; 2] = [2, 70];
    let directory = TempDir::new().expect("a directory");
    let tls = open(&own(directory.path()));
    let address = serve(hello(), &tls, HANDSHAKE).await;
    for version in [[3, 0], [3, 1], [3, 2]] {
        let mut old = TcpStream::connect(address).await.expect("connected");
        old.write_all(&client_hello(version)).await.expect("sent");
        let mut answer = Vec::new();
        let _ = old.read_to_end(&mut answer).await;
        assert_eq!((answer.first(), answer.get(5..7)), (Some(&ALERT), Some(&PROTOCOL_VERSION[..])), "{version:?}");
    }
    let mut new = TcpStream::connect(address).await.expect("connected");
    new.write_all(&client_hello([3, 3])).await.expect("sent");
    let mut kind = [0];
    new.read_exact(&mut kind).await.expect("an answer");
    assert_eq!(kind, [HANDSHAKE_RECORD], "the same message is fine for TLS 1.2");
}

#[tokio::test]
async fn plain_http_is_told_to_speak_tls() {
    let directory = TempDir::new().expect("a directory");
    let tls = open(&own(directory.path()));
    let address = serve(hello(), &tls, HANDSHAKE).await;
    let mut plain = TcpStream::connect(address).await.expect("connected");
    let answer = get_root(&mut plain).await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("write https://"), "{answer}");
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!(body["code"], "speak_tls");

    let mut junk = TcpStream::connect(address).await.expect("connected");
    junk.write_all(b"\x16\x03\x01\x00\x05junk!").await.expect("sent");
    // An alert, or nothing; in any case the end.
    let _ = junk.read_to_end(&mut Vec::new()).await;
}
