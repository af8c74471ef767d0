//! `simpletuner auth …` with a running server.

use std::fs;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::harness::{CliHarness, mask_ids};
use crate::http::state::AuthMode;
use crate::service::access::BrowserInfo;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::Caller;
use crate::tests::harness::{Actor, PASSWORD, TestServer, totp};

#[tokio::test]
async fn users_are_added_changed_and_disabled() {
    let harness = CliHarness::start().await;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("written");
    let file = file.to_str().expect("text");
    let create = ["auth", "users", "create", "ada", "--role", "researcher"];
    harness.run(&create).await.expect_failure(2, "--password-file FILE, or --generate-password");
    harness.run(&[&create[..], &["--password-file", file]].concat()).await.expect_success();
    assert!(harness.server.log_in("ada", PASSWORD).await.is_some());
    let generated =
        harness.run(&["auth", "users", "create", "eve", "--role", "viewer", "--generate-password"]).await.single_line();
    assert!(harness.server.log_in("eve", &generated).await.is_some());
    let document =
        harness.run(&["auth", "users", "create", "ci", "--role", "lead", "--no-password", "--json"]).await.json();
    assert_eq!(document["role"], "lead");
    harness
        .run(&["auth", "users", "create", "x", "--role", "leed"])
        .await
        .expect_failure(2, "a similar value exists: 'lead'");

    assert_eq!(harness.run(&["auth", "users", "set-role", "eve", "lead", "--json"]).await.json()["role"], "lead");
    harness.run(&["auth", "users", "disable", "eve"]).await.expect_failure(2, "--yes");
    assert_eq!(harness.run(&["auth", "users", "disable", "eve", "--yes", "--json"]).await.json()["disabled"], true);
    let table = "\
NAME   ROLE        STATE     ADDED                    ID
admin  admin       active    2024-01-15 10:30:00 UTC  u_ID
ada    researcher  active    2024-01-15 10:30:00 UTC  u_ID
ci     lead        active    2024-01-15 10:30:00 UTC  u_ID
eve    lead        disabled  2024-01-15 10:30:00 UTC  u_ID
";
    let list = mask_ids(&harness.run(&["auth", "users", "list"]).await.expect_success());
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&list), sorted(table));
    assert!(harness.server.log_in("eve", &generated).await.is_none());
    assert_eq!(harness.run(&["auth", "users", "enable", "eve", "--json"]).await.json()["disabled"], false);
    assert_eq!(harness.run(&["auth", "users", "list", "-q"]).await.expect_success().lines().count(), 4);
    assert_eq!(
        harness.run(&["auth", "users", "list", "--json"]).await.json()["users"].as_array().map(Vec::len),
        Some(4)
    );
    harness.run(&["auth", "users", "disable", "bob", "-y"]).await.expect_failure(1, "user \"bob\" not found");
}

#[tokio::test]
async fn lost_password_is_reset_on_the_host_without_a_token() {
    let harness = CliHarness::start().await;
    harness.server.add_user("ada", "researcher").await;
    let operator = harness.operator();
    let reset = ["auth", "reset-password", "ada"];
    harness
        .run_with_answers(&operator, &reset, &["a new password", "another password"])
        .await
        .expect_failure(1, "the passwords differ");
    let typed = harness.run_with_answers(&operator, &reset, &["a new password", "a new password"]).await;
    assert!(
        typed.err.contains("Changed the password of ada. Sessions ended: 1; API tokens revoked: 0.")
            && typed.expect_success().is_empty()
    );
    assert!(harness.server.log_in("ada", "a+new+password").await.is_some());
    assert!(harness.server.log_in("ada", PASSWORD).await.is_none());
    harness.run_with_answers(&operator, &reset, &["short", "short"]).await.expect_failure(1, "at least 12 characters");
    let generated = harness
        .run_as(&operator, &["auth", "users", "reset-password", "ada", "--generate-password", "-q"])
        .await
        .single_line();
    assert!(harness.server.log_in("ada", &generated).await.is_some());

    let check = harness.run_as(&operator, &["auth", "login-check"]).await.expect_success();
    let name = nix::unistd::User::from_uid(nix::unistd::Uid::current()).expect("users").expect("this one").name;
    assert!(check.starts_with(&format!("name     host:{name}\nmay      account.manage admin.workers")), "{check}");
    let audit_log =
        harness.server.get(&Actor::Admin, "/api/audit?action=access.password_reset").await.expect_status(200);
    assert_eq!(audit_log["entries"][0]["actor"], format!("host:{name}"));
    assert!(!audit_log.to_string().contains(&generated));
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked() {
    let harness = CliHarness::start().await;
    harness.server.add_user("ada", "researcher").await;
    let operator = harness.operator();
    harness.run_as(&operator, &["auth", "tokens", "create", "ci"]).await.expect_failure(2, "add --user NAME");
    harness.run_as(&operator, &["auth", "tokens", "list"]).await.expect_failure(2, "add --user NAME");
    let create =
        ["auth", "tokens", "create", "ci", "--user", "ada", "--scope", "job.view.own", "--expires-in-days", "7"];
    let created = harness.run_as(&operator, &create).await;
    let err = created.err.clone();
    let secret = created.single_line();
    assert!(secret.starts_with("st_") && !err.contains(&secret), "{err}");
    let ada = harness.client(&secret);
    assert_eq!(
        harness.run_as(&ada, &["auth", "login-check", "--json"]).await.json()["permissions"],
        json!(["job.view.own"])
    );
    harness.run_as(&ada, &["workers", "list"]).await.expect_failure(77, "`fleet.view`");

    let list = mask_ids(&harness.run(&["auth", "tokens", "list", "--user", "ada"]).await.expect_success());
    let table = "\
NAME  SCOPES        EXPIRES                  USED      ID
ci    job.view.own  2024-01-22 10:30:00 UTC  just now  t_ID
";
    assert_eq!(list, table);
    let own_token = harness.run(&["auth", "tokens", "create", "mine", "--json"]).await.json();
    assert!(own_token["secret"].as_str().is_some_and(|secret| secret.starts_with("st_")));
    let own_tokens = harness.run(&["auth", "tokens", "list", "--json"]).await.json();
    assert!(own_tokens["tokens"].as_array().expect("a list").iter().any(|token| token["name"] == "mine"));

    let id = harness.run(&["auth", "tokens", "list", "--user", "ada", "-q"]).await.single_line();
    harness.run(&["auth", "tokens", "revoke", &id]).await.expect_failure(2, "--yes");
    assert_eq!(harness.run(&["auth", "tokens", "revoke", &id, "--yes", "-q"]).await.single_line(), id);
    harness.run_as(&ada, &["auth", "login-check"]).await.expect_failure(77, "was revoked");
    harness.run(&["auth", "tokens", "create", "x", "--scope", "root"]).await.expect_failure(2, "invalid value 'root'");
}

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let harness = CliHarness::start().await;
    let browser = harness.server.add_user("ada", "researcher").await;
    let list = mask_ids(&harness.run(&["auth", "sessions", "list", "--user", "ada"]).await.expect_success());
    assert!(list.starts_with("HOST") && list.contains("2024-01-15 10:30:00 UTC  just now  s_ID"), "{list}");
    let document = harness.run(&["auth", "sessions", "list", "--user", "ada", "--json"]).await.json();
    assert_eq!(document["sessions"].as_array().map(Vec::len), Some(1));
    let id = harness.run(&["auth", "sessions", "list", "--user", "ada", "-q"]).await.single_line();
    assert_eq!(harness.run(&["auth", "sessions", "revoke", &id, "-q"]).await.single_line(), id);
    harness.server.get(&browser, "/api/session").await.expect_problem(401, "not_authenticated");
    assert!(
        harness.run(&["auth", "sessions", "list"]).await.expect_success().starts_with("HOST"),
        "the sessions of the caller"
    );
}

#[tokio::test]
async fn first_admin_invalidates_the_setup_code() {
    let harness = CliHarness::with_server(TestServer::start_as(AuthMode::SingleUser).await).await;
    let services = &harness.server.app.services;
    let setup = services.access.issue_setup_code().await.expect("a database").expect("no users yet");
    let operator = harness.operator();
    let create = |name: &'static str, role: &'static str| {
        ["auth", "users", "create", name, "--role", role, "--generate-password"]
    };
    harness.run_as(&operator, &create("vic", "viewer")).await.single_line();
    assert!(services.access.authenticator.setup_pending.load(Ordering::Relaxed), "a viewer is no admin");
    harness.run_as(&operator, &create("ada", "admin")).await.single_line();
    assert!(!services.access.authenticator.setup_pending.load(Ordering::Relaxed));
    let result =
        services.access.create_first_admin(Caller::system(), &setup, "eve", PASSWORD, BrowserInfo::default()).await;
    assert_eq!(result.err(), Some(ServiceError::WrongToken));
}

#[tokio::test]
async fn operator_token_is_valid_until_the_next_start() {
    let harness = CliHarness::start().await;
    let operator = harness.operator();
    harness
        .run_as(&operator, &["auth", "tokens", "revoke", "t_none", "-y"])
        .await
        .expect_failure(1, "You have no API token t_none");
    let token = harness.server.app.services.access.issue_operator_token();
    harness.run_as(&operator, &["auth", "login-check"]).await.expect_failure(77, "rejects this token");
    harness.server.get(&Actor::Token(token.clone()), "/api/session").await.expect_status(200);
    assert!(harness.server.log_in("", &token).await.is_none(), "it does not sign in a browser");
    let key = Actor::worker(token.clone());
    harness
        .server
        .post(&key, "/api/workers/register", json!({"name": "x"}))
        .await
        .expect_problem(401, "worker_token_invalid");
    let changed = json!({"old": PASSWORD, "new": "another password"});
    harness
        .server
        .post(&Actor::Token(token), "/api/account/password", changed)
        .await
        .expect_problem(409, "user_required");
}

#[tokio::test]
async fn a_lost_second_factor_is_removed_on_the_host() {
    let harness = CliHarness::start().await;
    totp::user_with_totp(&harness.server, "ada").await;
    assert!(harness.server.log_in("ada", PASSWORD).await.is_none());
    let operator = harness.operator();
    let remove = ["auth", "users", "remove-factors", "ada"];
    harness.run_as(&operator, &remove).await.expect_failure(2, "--yes");
    harness.run_as(&operator, &[&remove[..], &["--yes"]].concat()).await.expect_success();
    assert!(harness.server.log_in("ada", PASSWORD).await.is_some());
    harness
        .run_as(&operator, &[&remove[..], &["--yes"]].concat())
        .await
        .expect_failure(1, "No second factor is set up");
}

#[tokio::test]
async fn token_expiry_is_printed() {
    let harness = CliHarness::start().await;
    harness.server.add_user("ada", "viewer").await;
    let create = async |name: &str, more: &[&str]| {
        let args = [&["auth", "tokens", "create", name, "--user", "ada"], more].concat();
        harness.run(&args).await.err
    };
    assert!(create("usual", &[]).await.contains("It expires on 2024-04-14 10:30:00 UTC."));
    assert!(create("short", &["--expires-in-days", "1"]).await.contains("It expires on 2024-01-16 10:30:00 UTC."));
    assert!(create("ever", &["--never-expires"]).await.contains("It never expires."));
    let worker = harness.run(&["workers", "create", "gpu-1"]).await;
    assert!(worker.err.contains("It expires on 2024-02-14 10:30:00 UTC if no agent registers"), "{}", worker.err);
}
