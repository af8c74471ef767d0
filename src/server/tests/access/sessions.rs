//! Lifetime of browser sessions, and how they end.

use app::domain::time::Millis;
use axum::http::StatusCode;
use serde_json::json;

use crate::tests::harness::{Actor, PASSWORD, TestServer};

/// Returns whether the caller is authenticated.
async fn is_logged_in(server: &TestServer, actor: &Actor) -> bool {
    server.get(actor, "/api/session").await.status == StatusCode::OK
}

#[tokio::test]
async fn session_ends_by_sign_out_age_and_inactivity() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "viewer").await;
    server.call(&ada, "POST", "/ui/logout", "").await;
    assert!(!is_logged_in(&server, &ada).await);

    let (busy, idle) = (
        server.log_in("ada", PASSWORD).await.expect("a session"),
        server.log_in("ada", PASSWORD).await.expect("a session"),
    );
    server.advance(Millis::from_secs(3_600)).await;
    assert!(is_logged_in(&server, &busy).await);
    server.advance(Millis::from_secs(3_600)).await;
    assert!(is_logged_in(&server, &busy).await && !is_logged_in(&server, &idle).await, "two hours without use");
    for _ in 0..22 {
        assert!(is_logged_in(&server, &busy).await);
        server.advance(Millis::from_secs(3_600)).await;
    }
    assert!(!is_logged_in(&server, &busy).await, "it ends after a day in any case");
}

#[tokio::test]
async fn session_lifetime_is_configurable_and_shown() {
    let hour = Millis::from_secs(3_600);
    let server = TestServer::start_with(|policy| {
        policy.accounts.session_idle = Millis(8 * hour.0);
        policy.accounts.session_max_age = Millis(12 * hour.0);
    })
    .await;
    let ada = server.add_user("ada", "viewer").await;
    let page = server.get(&ada, "/api/account/sessions").await.expect_status(200);
    assert_eq!((&page["idle_seconds"], &page["longest_seconds"]), (&json!(28_800), &json!(43_200)));
    let session = &page["sessions"][0];
    assert_eq!(
        (&session["idle_ends_at"], &session["expires_at"]),
        (&json!("2024-01-15T18:30:00.000Z"), &json!("2024-01-15T22:30:00.000Z"))
    );
    let html = server.get(&ada, "/account").await.text().replace('\u{a0}', " ");
    assert!(
        html.contains("A session expires after 8 h of inactivity, and at the latest 12 h after sign-in."),
        "{html}"
    );
    server.advance(Millis(7 * hour.0)).await;
    assert!(is_logged_in(&server, &ada).await);
    server.advance(Millis(5 * hour.0)).await;
    assert!(!is_logged_in(&server, &ada).await);
}

#[tokio::test]
async fn new_sign_in_ends_the_browsers_old_session() {
    let server = TestServer::start().await;
    let (ada, other_browser) =
        (server.add_user("ada", "viewer").await, server.log_in("ada", PASSWORD).await.expect("a session"));
    server.add_user("eve", "viewer").await;
    let rejected = server.call(&ada, "POST", "/ui/login", "name=eve&password=not-the-password").await;
    assert_eq!(rejected.status, StatusCode::SEE_OTHER);
    assert!(is_logged_in(&server, &ada).await, "a failed sign-in ends no session");
    let eve = server.call(&ada, "POST", "/ui/login", format!("name=eve&password={PASSWORD}")).await;
    let cookie = eve.headers["set-cookie"].to_str().expect("ascii").split(';').next().expect("a cookie").to_owned();
    assert!(is_logged_in(&server, &Actor::Cookie(cookie)).await);
    assert!(!is_logged_in(&server, &ada).await && is_logged_in(&server, &other_browser).await);
}

#[tokio::test]
async fn users_manage_their_sessions_and_admins_all() {
    let server = TestServer::start().await;
    let (ada, eve) = (server.add_user("ada", "viewer").await, server.add_user("eve", "viewer").await);
    // Sessions are listed by time.
    server.clock.advance(Millis(1));
    let second = server.log_in("ada", PASSWORD).await.expect("a session");
    let list = server.get(&ada, "/api/account/sessions").await.expect_status(200);
    let sessions = list["sessions"].as_array().expect("a list");
    let current: Vec<_> = sessions.iter().map(|session| session["current"].as_bool()).collect();
    assert_eq!(current, [Some(true), Some(false)]);
    let session_path = format!("/api/account/sessions/{}", sessions[1]["id"].as_str().expect("text"));
    server.call(&eve, "DELETE", &session_path, "").await.expect_problem(404, "session_not_found");
    assert!(is_logged_in(&server, &second).await);
    server.call(&ada, "DELETE", &session_path, "").await.expect_status(200);
    assert!(!is_logged_in(&server, &second).await && is_logged_in(&server, &ada).await);
    let detail = server
        .get(&Actor::Admin, &format!("/api/admin/users/{}", server.user_id("ada").await))
        .await
        .expect_status(200);
    let session_path = format!("/api/account/sessions/{}", detail["sessions"][0]["id"].as_str().expect("text"));
    server.call(&Actor::Admin, "DELETE", &session_path, "").await.expect_status(200);
    assert!(!is_logged_in(&server, &ada).await);
}
