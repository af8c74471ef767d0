//! `/api/admin/system` shows what operators need, and no secret.

use axum::body::Body;
use serde_json::json;

use crate::tests::harness::{ADMIN, Actor, TestServer};

#[tokio::test]
async fn system_view_shows_state_without_secrets() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let path = server.directory.path().join("logs").join(&job);
    std::fs::create_dir_all(&path).expect("writable");
    std::fs::write(path.join("1.log"), "12345").expect("writable");
    let secret = json!({"value": "hf_planted-secret"}).to_string();
    server.call(&Actor::Admin, "PUT", "/api/secrets/HF_TOKEN?shared=true", secret).await;
    let system = server.get(&Actor::Admin, "/api/admin/system").await.expect_status(200);
    let database = &system["database"];
    assert_eq!((&database["engine"], &database["schema"]), (&json!("sqlite"), &database["known_schema"]));
    assert!(database["bytes"].as_u64() > Some(10_000) && database["wal_bytes"].as_u64() > Some(0), "{database}");
    assert_eq!((&system["log_bytes"], &system["in_force"]["heartbeat_interval"]), (&json!(5), &json!(30)));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(system["servers"], json!([{"id": "c_test", "this": true, "leads": true, "version": version}]));
    assert!(system["checks"].as_array().is_some_and(|all| all.iter().any(|check| check["name"] == "migrations")));
    assert_eq!((system.get("tls"), system.get("backed_up_at")), (None, None));
    let text = system.to_string();
    let key = String::from_utf8_lossy(&server.app.services.context.token_signing_key).into_owned();
    for secret in [ADMIN, "hf_planted-secret", &format!("\"{key}\"")] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }

    let bundle = server.get(&Actor::Admin, "/api/admin/system/support").await.expect_status(200);
    assert_eq!((&bundle["system"]["version"], &bundle["overview"]["jobs"]["waiting"]), (&system["version"], &json!(1)));
    assert!(bundle["metrics"].as_array().is_some_and(|lines| lines.iter().any(|line| line == "# EOF")), "{bundle}");
    assert!(![ADMIN, "hf_planted-secret", &key].iter().any(|secret| bundle.to_string().contains(*secret)));

    std::fs::write(server.directory.path().join("backed-up-at"), "2024-01-14T10:00:00Z\n").expect("writable");
    let system = server.get(&Actor::Admin, "/api/admin/system").await.expect_status(200);
    assert_eq!(system["backed_up_at"], "2024-01-14T10:00:00.000Z");
    let lead = server.add_user("lea", "lead").await;
    server.call(&lead, "GET", "/api/admin/system", Body::empty()).await.expect_problem(403, "permission_denied");
}
