use std::net::SocketAddr;

use app::protocol::fingerprint::Fingerprint;
use serde_json::{Value, json};

use super::*;
use crate::doctor::line::Verdict;

const NOW: Timestamp = Timestamp(1_705_314_600_000);
const DAY: i64 = 86_400_000;

fn at(url: &str) -> Url {
    Url::parse(url).expect("a URL")
}

fn heard(status: u16, body: Value) -> Heard {
    Heard { status, body, location: None, date: Some(NOW), at: NOW }
}

fn certificate(until: Timestamp) -> Certificate {
    Certificate { names: vec!["h.example".to_owned()], issuer: "an authority".to_owned(), until }
}

/// All went well.
fn whole() -> Way {
    let address: SocketAddr = "192.0.2.7:8001".parse().expect("an address");
    Way {
        proxy: None,
        names: Some(Ok(vec![address])),
        connection: Some(Ok(address)),
        health: Some(Ok(heard(200, json!({"status": "ok"})))),
        queue: Some(Ok(heard(200, json!({"has_jobs": false})))),
        certificate: Some(certificate(NOW + Millis(90 * DAY))),
    }
}

/// The one line about `what`.
fn line(what: &str, url: &str, trust: &Trust, way: &Way) -> Line {
    let lines = judge(&at(url), trust, way);
    let mut found = lines.iter().filter(|line| line.what == what);
    let line = found.next().unwrap_or_else(|| panic!("no line on {what}: {lines:?}")).clone();
    assert_eq!(found.next(), None, "one line on {what}");
    line
}

/// What it says, found and advice together, has these words.
fn assert_says(line: &Line, verdict: Verdict, words: &[&str]) {
    assert_eq!(line.verdict, verdict, "{line:?}");
    let text = line.text(false);
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn where_nothing_is_wrong_nothing_is_said_to_be() {
    let lines = judge(&at("https://h.example/"), &Trust::System, &whole());
    let said: Vec<_> = lines.iter().map(|line| (line.what, line.verdict)).collect();
    assert_eq!(said, ["dns", "tcp", "tls", "orchestrator", "clock", "token"].map(|what| (what, Verdict::Ok)));
}

#[test]
fn each_step_ends_the_way() {
    let nobody = Way { names: Some(Err("Name or service not known".to_owned())), ..Way::default() };
    assert_says(
        &line("dns", "https://h.example/", &Trust::System, &nobody),
        Verdict::Fail,
        &["h.example is not known", "--orchestrator-url"],
    );
    assert_eq!(judge(&at("https://h.example/"), &Trust::System, &nobody).len(), 1);
    let closed = Way {
        connection: Some(Err("192.0.2.7:8001: Connection refused (os error 111)".to_owned())),
        health: None,
        queue: None,
        ..whole()
    };
    assert_says(
        &line("tcp", "http://h.example/", &Trust::System, &closed),
        Verdict::Fail,
        &["Connection refused", "--host 0.0.0.0"],
    );
    assert_eq!(judge(&at("https://h.example/"), &Trust::System, &closed).len(), 2);
    let by_proxy = Way { proxy: Some("proxy:3128".to_owned()), ..closed };
    assert_says(&line("dns", "http://h.example/", &Trust::System, &by_proxy), Verdict::Ok, &["the proxy proxy:3128"]);
    assert_says(&line("tcp", "http://h.example/", &Trust::System, &by_proxy), Verdict::Fail, &["NO_PROXY"]);
}

#[test]
fn certificates_are_named() {
    let https = "https://h.example/";
    let tls = |trust: &Trust, way: &Way| line("tls", https, trust, way);
    let soon = Way { certificate: Some(certificate(NOW + Millis(3 * DAY))), ..whole() };
    let refused = Way {
        health: Some(Err(Unheard::Untrusted("SSL certificate verify failed: it has expired".to_owned()))),
        queue: None,
        ..whole()
    };
    let pinned = Trust::Pinned(Fingerprint([7; 32]));
    assert_says(
        &tls(&Trust::System, &whole()),
        Verdict::Ok,
        &["for h.example, signed by an authority, until 2024-04-14"],
    );
    assert_says(&tls(&Trust::System, &soon), Verdict::Warn, &["until 2024-01-18", "renew"]);
    assert_says(&tls(&pinned, &soon), Verdict::Ok, &["it has the key of the fingerprint"]);
    assert_says(&tls(&Trust::Anything, &whole()), Verdict::Warn, &["not verified", "--orchestrator-fingerprint"]);
    assert_says(
        &tls(&Trust::System, &refused),
        Verdict::Fail,
        &["SSL certificate verify failed", "it shows a certificate for h.example"],
    );
    assert!(judge(&at(https), &Trust::System, &refused).iter().all(|line| line.what != "orchestrator"));
    assert_says(&line("tls", "http://h.example/", &Trust::System, &whole()), Verdict::Warn, &["unencrypted"]);
    assert_says(&line("tls", "http://127.0.0.1:1/", &Trust::System, &whole()), Verdict::Ok, &["on this machine"]);
}

#[test]
fn nothing_is_said_of_tls_that_never_began() {
    let plain = Way {
        health: Some(Err(Unheard::Network("it speaks no TLS there".to_owned()))),
        queue: None,
        certificate: None,
        ..whole()
    };
    for trust in [Trust::System, Trust::Anything, Trust::Pinned(Fingerprint([7; 32]))] {
        let lines = judge(&at("https://h.example/"), &trust, &plain);
        let said: Vec<_> = lines.iter().map(|line| (line.what, line.verdict)).collect();
        assert_eq!(said, [("dns", Verdict::Ok), ("tcp", Verdict::Ok), ("orchestrator", Verdict::Fail)]);
    }
    assert_says(&line("tls", "http://h.example/", &Trust::System, &plain), Verdict::Warn, &["unencrypted"]);
}

#[test]
fn what_answers_may_be_something_else() {
    let orchestrator = |health: Result<Heard, Unheard>, queue: Option<Result<Heard, String>>| {
        line("orchestrator", "http://h/", &Trust::System, &Way { health: Some(health), queue, ..whole() })
    };
    let elsewhere = Heard { location: Some("https://h/login".to_owned()), ..heard(302, Value::Null) };
    let page = || heard(200, Value::Null);
    assert_says(&orchestrator(Ok(page()), Some(Ok(page()))), Verdict::Fail, &["is none", "--orchestrator-url"]);
    assert_says(&orchestrator(Ok(heard(404, Value::Null)), None), Verdict::Fail, &["status 404"]);
    assert_says(&orchestrator(Ok(elsewhere), None), Verdict::Fail, &["redirects to https://h/login"]);
    assert_says(&orchestrator(Err(Unheard::Network("it speaks no TLS".to_owned())), None), Verdict::Fail, &["no TLS"]);
    // Only the agents' own paths may be open.
    assert_says(&orchestrator(Ok(heard(404, Value::Null)), whole().queue), Verdict::Ok, &["http://h/"]);
    let refusal = heard(401, json!({"code": "worker_token_refused", "detail": "no"}));
    assert_says(&orchestrator(Ok(heard(403, Value::Null)), Some(Ok(refusal))), Verdict::Ok, &[]);
}

#[test]
fn tokens_are_accepted_or_not() {
    let token = |queue: Result<Heard, String>| {
        line("token", "http://h/", &Trust::System, &Way { queue: Some(queue), ..whole() })
    };
    let problem = |status, detail: &str| heard(status, json!({"code": "x", "detail": detail}));
    let cases = [
        (Ok(heard(200, json!({"has_jobs": true}))), Verdict::Ok, "accepts"),
        (Ok(problem(401, "Invalid token: it may have been rotated.")), Verdict::Fail, "token: Invalid token: it may"),
        (Ok(problem(401, "token_refused")), Verdict::Fail, "Invalid token (token_refused)"),
        (Ok(problem(403, "Not from this network.")), Verdict::Fail, "Not from this network."),
        (Ok(problem(503, "busy")), Verdict::Warn, "503: busy"),
        (Ok(problem(429, "slower")), Verdict::Warn, "429: slower"),
        (Ok(heard(404, Value::Null)), Verdict::Fail, "404"),
        (Ok(heard(200, Value::Null)), Verdict::Fail, "200"),
        (Err("the connection broke".to_owned()), Verdict::Fail, "broke"),
    ];
    for (queue, verdict, words) in cases {
        assert_says(&token(queue), verdict, &[words]);
    }
}

#[test]
fn clocks_may_differ_a_little() {
    let clock = |seconds: i64| {
        let health = Heard { at: NOW + Millis::seconds(seconds), ..heard(200, json!({"status": "ok"})) };
        line("clock", "http://h/", &Trust::System, &Way { health: Some(Ok(health)), ..whole() })
    };
    for (seconds, verdict, words) in [
        (0, Verdict::Ok, "agrees"),
        (30, Verdict::Ok, "agrees"),
        (-30, Verdict::Ok, "agrees"),
        (31, Verdict::Warn, "31 s ahead of"),
        (-3_600, Verdict::Warn, "3600 s behind"),
    ] {
        assert_says(&clock(seconds), verdict, &[words]);
    }
}
