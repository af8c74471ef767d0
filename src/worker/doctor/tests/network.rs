use std::net::SocketAddr;

use app::protocol::system::fingerprint::Fingerprint;
use serde_json::{Value, json};

use super::*;
use crate::worker::doctor::diagnostic::DiagnosticLevel;

const NOW: Timestamp = Timestamp(1_705_314_600_000);
const DAY: i64 = 86_400_000;

fn parse_url(url: &str) -> Url {
    Url::parse(url).expect("a URL")
}

fn response(status: u16, body: Value) -> ProbeResponse {
    ProbeResponse { status, body, location: None, date: Some(NOW), received_at: NOW }
}

fn certificate(until: Timestamp) -> CertificateInfo {
    CertificateInfo { names: vec!["h.example".to_owned()], issuer: "an authority".to_owned(), not_after: until }
}

fn successful_probe() -> ConnectionProbe {
    let address: SocketAddr = "192.0.2.7:8001".parse().expect("an address");
    ConnectionProbe {
        proxy: None,
        addresses: Some(Ok(vec![address])),
        connection: Some(Ok(address)),
        health: Some(Ok(response(200, json!({"status": "ok"})))),
        queue: Some(Ok(response(200, json!({"has_jobs": false})))),
        certificate: Some(certificate(NOW + Millis(90 * DAY))),
    }
}

/// The line of this check, which must be the only one.
fn line(check: &str, url: &str, trust: &ServerTrust, probe: &ConnectionProbe) -> Diagnostic {
    let lines = check_connection(&parse_url(url), trust, probe);
    let mut found = lines.iter().filter(|line| line.what == check);
    let line = found.next().unwrap_or_else(|| panic!("no line on {check}: {lines:?}")).clone();
    assert_eq!(found.next(), None, "one line on {check}");
    line
}

/// Asserts that the line's texts contain these words.
fn assert_says(line: &Diagnostic, verdict: DiagnosticLevel, words: &[&str]) {
    assert_eq!(line.verdict, verdict, "{line:?}");
    let text = line.render(false);
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn successful_probe_has_no_warnings() {
    let lines = check_connection(&parse_url("https://h.example/"), &ServerTrust::SystemRoots, &successful_probe());
    let verdicts: Vec<_> = lines.iter().map(|line| (line.what, line.verdict)).collect();
    assert_eq!(
        verdicts,
        ["dns", "tcp", "tls", "orchestrator", "clock", "token"].map(|what| (what, DiagnosticLevel::Ok))
    );
}

#[test]
fn failed_step_ends_the_report() {
    let unresolved =
        ConnectionProbe { addresses: Some(Err("Name or service not known".to_owned())), ..ConnectionProbe::default() };
    assert_says(
        &line("dns", "https://h.example/", &ServerTrust::SystemRoots, &unresolved),
        DiagnosticLevel::Fail,
        &["h.example was not found", "--orchestrator-url"],
    );
    assert_eq!(check_connection(&parse_url("https://h.example/"), &ServerTrust::SystemRoots, &unresolved).len(), 1);
    let closed = ConnectionProbe {
        connection: Some(Err("192.0.2.7:8001: Connection refused (os error 111)".to_owned())),
        health: None,
        queue: None,
        ..successful_probe()
    };
    assert_says(
        &line("tcp", "http://h.example/", &ServerTrust::SystemRoots, &closed),
        DiagnosticLevel::Fail,
        &["Connection refused", "--host 0.0.0.0"],
    );
    assert_eq!(check_connection(&parse_url("https://h.example/"), &ServerTrust::SystemRoots, &closed).len(), 2);
    let with_proxy = ConnectionProbe { proxy: Some("proxy:3128".to_owned()), ..closed };
    assert_says(
        &line("dns", "http://h.example/", &ServerTrust::SystemRoots, &with_proxy),
        DiagnosticLevel::Ok,
        &["the proxy proxy:3128"],
    );
    assert_says(
        &line("tcp", "http://h.example/", &ServerTrust::SystemRoots, &with_proxy),
        DiagnosticLevel::Fail,
        &["NO_PROXY"],
    );
}

#[test]
fn certificates_are_described() {
    let https = "https://h.example/";
    let tls = |trust: &ServerTrust, probe: &ConnectionProbe| line("tls", https, trust, probe);
    let expiring = ConnectionProbe { certificate: Some(certificate(NOW + Millis(3 * DAY))), ..successful_probe() };
    let rejected = ConnectionProbe {
        health: Some(Err(ProbeError::Untrusted("SSL certificate verify failed: it has expired".to_owned()))),
        queue: None,
        ..successful_probe()
    };
    let pinned = ServerTrust::PinnedKey(Fingerprint([7; 32]));
    assert_says(
        &tls(&ServerTrust::SystemRoots, &successful_probe()),
        DiagnosticLevel::Ok,
        &["for h.example, issued by an authority, valid until 2024-04-14"],
    );
    assert_says(&tls(&ServerTrust::SystemRoots, &expiring), DiagnosticLevel::Warn, &["until 2024-01-18", "renew"]);
    assert_says(&tls(&pinned, &expiring), DiagnosticLevel::Ok, &["its key matches the fingerprint"]);
    assert_says(
        &tls(&ServerTrust::AcceptAny, &successful_probe()),
        DiagnosticLevel::Warn,
        &["not verified", "--orchestrator-fingerprint"],
    );
    assert_says(
        &tls(&ServerTrust::SystemRoots, &rejected),
        DiagnosticLevel::Fail,
        &["SSL certificate verify failed", "the server sent a certificate for h.example"],
    );
    assert!(
        check_connection(&parse_url(https), &ServerTrust::SystemRoots, &rejected)
            .iter()
            .all(|line| line.what != "orchestrator")
    );
    assert_says(
        &line("tls", "http://h.example/", &ServerTrust::SystemRoots, &successful_probe()),
        DiagnosticLevel::Warn,
        &["unencrypted"],
    );
    assert_says(
        &line("tls", "http://127.0.0.1:1/", &ServerTrust::SystemRoots, &successful_probe()),
        DiagnosticLevel::Ok,
        &["on this machine"],
    );
}

#[test]
fn tls_is_not_reported_before_a_handshake() {
    let without_handshake = ConnectionProbe {
        health: Some(Err(ProbeError::Network("it speaks no TLS there".to_owned()))),
        queue: None,
        certificate: None,
        ..successful_probe()
    };
    for trust in [ServerTrust::SystemRoots, ServerTrust::AcceptAny, ServerTrust::PinnedKey(Fingerprint([7; 32]))] {
        let lines = check_connection(&parse_url("https://h.example/"), &trust, &without_handshake);
        let verdicts: Vec<_> = lines.iter().map(|line| (line.what, line.verdict)).collect();
        assert_eq!(
            verdicts,
            [("dns", DiagnosticLevel::Ok), ("tcp", DiagnosticLevel::Ok), ("orchestrator", DiagnosticLevel::Fail)]
        );
    }
    assert_says(
        &line("tls", "http://h.example/", &ServerTrust::SystemRoots, &without_handshake),
        DiagnosticLevel::Warn,
        &["unencrypted"],
    );
}

#[test]
fn other_servers_are_recognized() {
    let orchestrator = |health: Result<ProbeResponse, ProbeError>, queue: Option<Result<ProbeResponse, String>>| {
        line(
            "orchestrator",
            "http://h/",
            &ServerTrust::SystemRoots,
            &ConnectionProbe { health: Some(health), queue, ..successful_probe() },
        )
    };
    let redirect = ProbeResponse { location: Some("https://h/login".to_owned()), ..response(302, Value::Null) };
    let page = || response(200, Value::Null);
    assert_says(
        &orchestrator(Ok(page()), Some(Ok(page()))),
        DiagnosticLevel::Fail,
        &["is not an orchestrator", "--orchestrator-url"],
    );
    assert_says(&orchestrator(Ok(response(404, Value::Null)), None), DiagnosticLevel::Fail, &["status 404"]);
    assert_says(&orchestrator(Ok(redirect), None), DiagnosticLevel::Fail, &["redirects to https://h/login"]);
    assert_says(
        &orchestrator(Err(ProbeError::Network("it speaks no TLS".to_owned())), None),
        DiagnosticLevel::Fail,
        &["no TLS"],
    );
    // Perhaps only the agents' paths are open.
    assert_says(
        &orchestrator(Ok(response(404, Value::Null)), successful_probe().queue),
        DiagnosticLevel::Ok,
        &["http://h/"],
    );
    let rejection = response(401, json!({"code": "worker_token_invalid", "detail": "no"}));
    assert_says(&orchestrator(Ok(response(403, Value::Null)), Some(Ok(rejection))), DiagnosticLevel::Ok, &[]);
}

#[test]
fn token_responses_are_evaluated() {
    let token = |queue: Result<ProbeResponse, String>| {
        line(
            "token",
            "http://h/",
            &ServerTrust::SystemRoots,
            &ConnectionProbe { queue: Some(queue), ..successful_probe() },
        )
    };
    let problem = |status, detail: &str| response(status, json!({"code": "x", "detail": detail}));
    let cases = [
        (Ok(response(200, json!({"has_jobs": true}))), DiagnosticLevel::Ok, "accepted by"),
        (
            Ok(problem(401, "Invalid token: it may have been rotated.")),
            DiagnosticLevel::Fail,
            "token: Invalid token: it may",
        ),
        (Ok(problem(401, "token_rejected")), DiagnosticLevel::Fail, "Invalid token (token_rejected)"),
        (Ok(problem(403, "Not from this network.")), DiagnosticLevel::Fail, "Not from this network."),
        (Ok(problem(503, "busy")), DiagnosticLevel::Warn, "503: busy"),
        (Ok(problem(429, "slower")), DiagnosticLevel::Warn, "429: slower"),
        (Ok(response(404, Value::Null)), DiagnosticLevel::Fail, "404"),
        (Ok(response(200, Value::Null)), DiagnosticLevel::Fail, "200"),
        (Err("the connection broke".to_owned()), DiagnosticLevel::Fail, "broke"),
    ];
    for (queue, verdict, words) in cases {
        assert_says(&token(queue), verdict, &[words]);
    }
}

#[test]
fn small_clock_skew_is_accepted() {
    let clock = |seconds: i64| {
        let health =
            ProbeResponse { received_at: NOW + Millis::from_secs(seconds), ..response(200, json!({"status": "ok"})) };
        line(
            "clock",
            "http://h/",
            &ServerTrust::SystemRoots,
            &ConnectionProbe { health: Some(Ok(health)), ..successful_probe() },
        )
    };
    for (seconds, verdict, words) in [
        (0, DiagnosticLevel::Ok, "matches"),
        (30, DiagnosticLevel::Ok, "matches"),
        (-30, DiagnosticLevel::Ok, "matches"),
        (31, DiagnosticLevel::Warn, "31 s ahead of"),
        (-3_600, DiagnosticLevel::Warn, "3600 s behind"),
    ] {
        assert_says(&clock(seconds), verdict, &[words]);
    }
}
