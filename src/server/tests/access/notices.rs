//! Account notices of users.

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::http::edge::request::Peer;
use crate::tests::harness::totp::{log_in_with_password, set_cookies, user_with_totp};
use crate::tests::harness::{Actor, PASSWORD, TestServer, read_response};

/// Signs in from an address, with a browser that has these cookies; returns its new cookies.
async fn log_in(server: &TestServer, host: [u8; 4], cookies: &str) -> String {
    let request = Request::builder().method("POST").uri("/ui/login").header(header::HOST, "localhost:8001");
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request =
        request.header(header::COOKIE, cookies).header(header::USER_AGENT, "Browser/1").extension(Peer(host.into()));
    let body = Body::from(format!("name=ada&password={PASSWORD}"));
    let response = read_response(server.send(request.body(body).expect("a request")).await).await;
    assert_eq!(response.status, StatusCode::SEE_OTHER);
    set_cookies(&response)
}

async fn notices(server: &TestServer, actor: &Actor) -> Vec<Value> {
    server.get(actor, "/api/account/notices").await.expect_status(200)["notices"].as_array().expect("a list").clone()
}

fn kinds(notices: &[Value]) -> Vec<&str> {
    notices.iter().map(|notice| notice["kind"].as_str().expect("text")).collect()
}

async fn unread(server: &TestServer, actor: &Actor) -> Value {
    server.get(actor, "/api/session").await.expect_status(200)["unread_notices"].clone()
}

#[tokio::test]
async fn unfamiliar_sign_in_makes_a_notice_and_can_be_ended() {
    let server = TestServer::start().await;
    server
        .post(&Actor::Admin, "/api/admin/users", json!({"name": "ada", "role": "viewer", "password": PASSWORD}))
        .await
        .expect_status(201);
    let first = log_in(&server, [192, 0, 2, 1], "").await;
    let ada = Actor::Cookie(first.clone());
    assert_eq!((notices(&server, &ada).await, unread(&server, &ada).await), (vec![], json!(0)), "a first sign-in");
    let device = first.split("; ").find(|pair| pair.starts_with("device=")).expect("a device");
    let new_browser = log_in(&server, [192, 0, 2, 200], device).await;
    assert_eq!(notices(&server, &Actor::Cookie(new_browser)).await, Vec::<Value>::new(), "a known browser nearby");

    server.clock.advance(Millis(1));
    let thief = Actor::Cookie(log_in(&server, [198, 51, 100, 7], "").await);
    let list = notices(&server, &ada).await;
    assert_eq!(kinds(&list), ["new_browser"]);
    assert_eq!((&list[0]["host"], &list[0]["agent"]), (&json!("198.51.100.7"), &json!("Browser/1")));
    let page = server.get(&ada, "/jobs").await.text();
    assert!(page.contains("href=\"/account#notices\""), "every page has a link to the notices: {page}");
    let session = list[0]["session"].as_str().expect("a session").to_owned();
    let account = server.get(&ada, "/account").await.text();
    assert!(account.contains("Signed in with a new browser"), "{account}");
    assert!(account.contains(&format!("/ui/account/sessions/{session}/end")), "{account}");
    server.call(&ada, "POST", &format!("/ui/account/sessions/{session}/end"), "").await;
    assert_eq!(server.get(&thief, "/api/session").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(notices(&server, &ada).await[0]["session"], Value::Null, "the session has ended");

    server.clock.advance(Millis(1));
    log_in(&server, [203, 0, 113, 9], device).await;
    assert_eq!(kinds(&notices(&server, &ada).await), ["new_network", "new_browser"]);
}

#[tokio::test]
async fn sign_in_changes_make_notices_until_read() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await.browser;
    let id = server.user_id("ada").await;
    let step = Millis(1);
    for (path, body) in [
        ("/api/account/recovery-codes", json!({})),
        ("/api/account/password", json!({"old": PASSWORD, "new": PASSWORD})),
    ] {
        server.clock.advance(step);
        assert!(server.post(&ada, path, body).await.status.is_success(), "{path}");
    }
    server.clock.advance(step);
    let (_, pending) = log_in_with_password(&server, "ada", "").await;
    server.call(&Actor::Cookie(pending), "POST", "/ui/login/code", "code=000000").await;
    server.clock.advance(step);
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/users/{id}/factors"), "").await.expect_status(200);
    let list = notices(&server, &ada).await;
    let expected = ["factors_removed", "wrong_code", "password_changed", "recovery_codes_renewed", "factor_added"];
    assert_eq!(kinds(&list), expected);
    assert_eq!((&list[0]["actor"], &list[2]["actor"]), (&json!("admin/bootstrap"), &json!("ada")));
    let page = server.get(&ada, "/account").await.text();
    for sentence in [
        "All second factors removed",
        "Your password was entered with a wrong code",
        "Your password was changed",
        "by admin/bootstrap",
    ] {
        assert!(page.contains(sentence), "{sentence}: {page}");
    }
    assert_eq!(unread(&server, &ada).await, json!(5));

    // Notices after the page was rendered stay.
    let until = list[1]["at"].clone();
    server.post(&ada, "/api/account/notices/read", json!({"until": until})).await.expect_status(200);
    assert_eq!(
        (kinds(&notices(&server, &ada).await), unread(&server, &ada).await),
        (vec!["factors_removed"], json!(1))
    );
    let form = format!("until={}", list[0]["at"].as_str().expect("text"));
    server.call(&ada, "POST", "/ui/account/notices/read", form).await;
    assert_eq!(unread(&server, &ada).await, json!(0));
    assert!(!server.get(&ada, "/jobs").await.text().contains("/account#notices"));
    server
        .post(&Actor::Admin, &format!("/api/admin/users/{id}/password"), json!({"password": "given-by-an-admin"}))
        .await
        .expect_status(200);
    let ada = server.log_in("ada", "given-by-an-admin").await.expect("a session");
    assert_eq!(kinds(&notices(&server, &ada).await), ["password_reset"]);
}

#[tokio::test]
async fn notices_of_one_kind_and_browser_are_merged() {
    let server = TestServer::start().await;
    let ada = user_with_totp(&server, "ada").await;
    let (_, pending) = log_in_with_password(&server, "ada", "").await;
    for _ in 0..3 {
        server.call(&Actor::Cookie(pending.clone()), "POST", "/ui/login/code", "code=000000").await;
    }
    let list = notices(&server, &ada.browser).await;
    assert_eq!(kinds(&list).iter().filter(|kind| **kind == "wrong_code").count(), 1);
}
