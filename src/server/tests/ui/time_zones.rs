//! Pages use the time zone in a cookie; the API always uses UTC.

use app::domain::time::Millis;
use axum::http::header;
use serde_json::json;

use super::pages::page;
use crate::tests::harness::{Actor, TestServer};

/// Returns the cookies of an admin's browser, with these added.
async fn browser(server: &TestServer, cookies: &str) -> String {
    let Actor::Cookie(session) = server.log_in("ada", crate::tests::harness::PASSWORD).await.expect("a login") else {
        panic!("a browser")
    };
    format!("{session}; {cookies}")
}

#[tokio::test]
async fn times_use_the_zone_of_a_valid_cookie_unless_utc_is_chosen() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    let (id, _) = server.create_worker("gpu-1").await;
    let drain = json!({"reason": "disk", "deadline_seconds": 3_600}).to_string();
    server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/drain"), drain).await.expect_status(200);
    let (worker, events) = (format!("/admin/workers/{id}"), format!("/admin/workers/{id}/events"));
    for (cookies, now, deadline) in [
        ("time_zone=Asia/Kolkata", "15 Jan 2024, 16:00:00 UTC+05:30", "15 Jan 2024, 17:00:00 UTC+05:30"),
        ("time_zone=America/New_York; zone=local", "05:30:00 UTC\u{2212}05:00", "06:30:00 UTC\u{2212}05:00"),
        ("time_zone=Asia/Kolkata; zone=utc", "10:30:00 UTC", "11:30:00 UTC"),
        ("theme=dark", "10:30:00 UTC", "11:30:00 UTC"),
        ("time_zone=asia/kolkata", "10:30:00 UTC", "11:30:00 UTC"),
        ("time_zone=<script>alert(1)</script>", "10:30:00 UTC", "11:30:00 UTC"),
        ("time_zone=../../etc/localtime", "10:30:00 UTC", "11:30:00 UTC"),
    ] {
        let browser = browser(&server, cookies).await;
        for (path, texts) in [
            ("/admin/audit", &[now][..]),
            ("/account", &[now]),
            ("/admin/system", &[now]),
            (&worker, &[now, deadline]),
            (&events, &[now, deadline]),
        ] {
            let html = page(&server, &browser, path).await;
            for text in texts {
                assert!(html.contains(text), "{cookies}: {path} says {text}: {html}");
            }
            let is_local = |text: &str| text.contains("UTC+") || text.contains("UTC\u{2212}");
            assert_eq!(is_local(&html), is_local(now), "{cookies}: {path}");
            assert!(!html.contains("<script>alert"), "{path}");
        }
    }
    let response =
        server.get(&Actor::Cookie(browser(&server, "time_zone=Asia/Kolkata").await), &format!("/api{worker}")).await;
    assert_eq!(response.expect_status(200)["drain_deadline"], "2024-01-15T11:30:00.000Z");
}

#[tokio::test]
async fn each_page_asks_the_browser_for_its_zone() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    let browser = browser(&server, "").await;
    for (cookies, path) in [("", "/login"), (&browser, "/"), (&browser, "/usage")] {
        let html = page(&server, cookies, path).await;
        let (before, script) = html.split_once("resolvedOptions().timeZone").expect("a script");
        assert!(before.ends_with("Intl.DateTimeFormat().") && script.contains("time_zone=${zone}"), "{path}: {html}");
        let (_, tag) = before.rsplit_once("<script").expect("a script");
        assert!(tag.starts_with(" nonce=\""), "{path}: {tag}");
    }
}

#[tokio::test]
async fn filters_use_local_time_and_urls_use_utc() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    server.put_config("digits").await;
    server.submit("digits").await;
    let browser = browser(&server, "time_zone=Asia/Kolkata").await;
    let path = "/admin/audit";
    let html = page(&server, &browser, path).await;
    assert!(html.contains("(Asia/Kolkata)") && !html.contains("(UTC)"), "{html}");
    assert!(html.contains(r#"name="time_zone" value="Asia/Kolkata""#), "{html}");
    let form_path = format!("{path}?since=2024-01-15T16%3A00&until=&time_zone=Asia%2FKolkata");
    let response = server.get(&Actor::Cookie(browser.clone()), &form_path).await;
    let location = response.headers[header::LOCATION].to_str().expect("ascii");
    assert_eq!((response.status.as_u16(), location), (303, &*format!("{path}?since=2024-01-15T10%3A30%3A00.000Z")));
    let html = page(&server, &browser, location).await;
    assert!(html.contains(r#"value="2024-01-15T16:00""#), "{html}");
    assert!(html.contains("<tbody"), "the entry is listed: {html}");
    let later = format!("{path}?since=2024-01-15T16%3A01&time_zone=Asia%2FKolkata");
    let response = server.get(&Actor::Cookie(browser.clone()), &later).await;
    let later = page(&server, &browser, response.headers[header::LOCATION].to_str().expect("ascii")).await;
    assert!(!later.contains("<tbody"), "{later}");
    // In UTC the page shows the same time.
    let html = page(&server, &format!("{browser}; zone=utc"), location).await;
    assert!(html.contains("(UTC)") && html.contains(r#"value="2024-01-15T10:30""#), "{html}");
    let jobs = page(&server, &browser, "/jobs?since=2024-01-15T10%3A30%3A00.000Z").await;
    assert!(jobs.contains("15 Jan 2024, 16:00:00 UTC+05:30"), "the chip: {jobs}");
}

#[tokio::test]
async fn usage_is_grouped_by_local_days() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    server.put_config("digits").await;
    let (_, key) = server.create_worker("gpu-1").await;
    let gpus = json!([{"index": 0, "uuid": "GPU-0", "name": "A100", "vram_gb": 80}]);
    let body = json!({"name": "gpu-1", "protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let _events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    for status in ["starting", "running"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    // Until 19:30 UTC, an hour after midnight in Kolkata.
    for _ in 0..9 * 60 {
        server.clock.advance(Millis::from_secs(60));
        server.heartbeat(&key, json!([{"job_id": job, "attempt": 1, "state": "running"}])).await;
    }
    for (cookies, days, zone) in [
        ("time_zone=Asia/Kolkata", &[("2024-01-15", "8.0"), ("2024-01-16", "1.0")][..], "Asia/Kolkata"),
        ("theme=dark", &[("2024-01-15", "9.0")], "UTC"),
    ] {
        let html = page(&server, &browser(&server, cookies).await, "/usage?from=2024-01-15").await;
        let html = html.replace("<!>", "");
        for (day, hours) in days {
            let row = format!(r#"<th scope="row">{day}</th><td class="num">{hours}</td>"#);
            assert!(html.contains(&row), "{zone}: {row}: {html}");
        }
        assert_eq!(html.contains("2024-01-16"), days.len() == 2, "{zone}: {html}");
        assert!(html.contains(&format!("by hour ({zone}).")), "{zone}: {html}");
        assert!(html.contains(&format!("<span>{zone}</span>")), "{zone}: {html}");
    }
}
