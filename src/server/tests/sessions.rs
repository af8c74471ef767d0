//! How long browsers stay logged in, and who ends that.

use app::domain::time::Millis;
use axum::http::StatusCode;
use serde_json::json;

use super::harness::{By, PASSWORD, Server};

/// Whether somebody is let in at all.
async fn is_in(server: &Server, by: &By) -> bool {
    server.get(by, "/api/session").await.status == StatusCode::OK
}

#[tokio::test]
async fn a_session_ends_by_logout_by_age_and_when_nobody_uses_it() {
    let server = Server::start().await;
    let ada = server.person("ada", "viewer").await;
    server.call(&ada, "POST", "/ui/logout", "").await;
    assert!(!is_in(&server, &ada).await);

    let (busy, idle) =
        (server.log_in("ada", PASSWORD).await.expect("in"), server.log_in("ada", PASSWORD).await.expect("in"));
    server.pass(Millis::seconds(3_600)).await;
    assert!(is_in(&server, &busy).await);
    server.pass(Millis::seconds(3_600)).await;
    assert!(is_in(&server, &busy).await && !is_in(&server, &idle).await, "two hours without use");
    for _ in 0..22 {
        assert!(is_in(&server, &busy).await);
        server.pass(Millis::seconds(3_600)).await;
    }
    assert!(!is_in(&server, &busy).await, "a day in any case");
}

#[tokio::test]
async fn sessions_last_as_long_as_they_are_set_to_and_say_so() {
    let hour = Millis::seconds(3_600);
    let server = Server::start_with(|policy| {
        policy.accounts.session_idle = Millis(8 * hour.0);
        policy.accounts.session_longest = Millis(12 * hour.0);
    })
    .await;
    let ada = server.person("ada", "viewer").await;
    let page = server.get(&ada, "/api/account/sessions").await.ok(200);
    assert_eq!((&page["idle_seconds"], &page["longest_seconds"]), (&json!(28_800), &json!(43_200)));
    let session = &page["sessions"][0];
    assert_eq!(
        (&session["idle_ends_at"], &session["expires_at"]),
        (&json!("2024-01-15T18:30:00.000Z"), &json!("2024-01-15T22:30:00.000Z"))
    );
    let shown = server.get(&ada, "/account").await.text().replace('\u{a0}', " ");
    assert!(shown.contains("A session ends after 8 h without use, and 12 h after you sign in."), "{shown}");
    server.pass(Millis(7 * hour.0)).await;
    assert!(is_in(&server, &ada).await);
    server.pass(Millis(5 * hour.0)).await;
    assert!(!is_in(&server, &ada).await);
}

#[tokio::test]
async fn a_new_login_ends_the_session_that_the_browser_had() {
    let server = Server::start().await;
    let (ada, elsewhere) = (server.person("ada", "viewer").await, server.log_in("ada", PASSWORD).await.expect("in"));
    server.person("eve", "viewer").await;
    let refused = server.call(&ada, "POST", "/ui/login", "name=eve&password=not-the-password").await;
    assert_eq!(refused.status, StatusCode::SEE_OTHER);
    assert!(is_in(&server, &ada).await, "a login that fails ends nothing");
    let eve = server.call(&ada, "POST", "/ui/login", format!("name=eve&password={PASSWORD}")).await;
    let cookie = eve.headers["set-cookie"].to_str().expect("ascii").split(';').next().expect("a pair").to_owned();
    assert!(is_in(&server, &By::Cookie(cookie)).await);
    assert!(!is_in(&server, &ada).await && is_in(&server, &elsewhere).await);
}

#[tokio::test]
async fn people_see_and_end_their_sessions_and_admins_everybodys() {
    let server = Server::start().await;
    let (ada, eve) = (server.person("ada", "viewer").await, server.person("eve", "viewer").await);
    // They are listed as they came.
    server.clock.advance(Millis(1));
    let second = server.log_in("ada", PASSWORD).await.expect("in");
    let list = server.get(&ada, "/api/account/sessions").await.ok(200);
    let sessions = list["sessions"].as_array().expect("a list");
    let current: Vec<_> = sessions.iter().map(|session| session["current"].as_bool()).collect();
    assert_eq!(current, [Some(true), Some(false)]);
    let address = format!("/api/account/sessions/{}", sessions[1]["id"].as_str().expect("text"));
    server.call(&eve, "DELETE", &address, "").await.problem(404, "session_not_found");
    assert!(is_in(&server, &second).await);
    server.call(&ada, "DELETE", &address, "").await.ok(200);
    assert!(!is_in(&server, &second).await && is_in(&server, &ada).await);
    let detail = server.get(&By::Admin, &format!("/api/admin/users/{}", server.id_of("ada").await)).await.ok(200);
    let address = format!("/api/account/sessions/{}", detail["sessions"][0]["id"].as_str().expect("text"));
    server.call(&By::Admin, "DELETE", &address, "").await.ok(200);
    assert!(!is_in(&server, &ada).await);
}
