//! `simpletuner auth …` with a server that runs.

use std::fs;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::desk::{Desk, masked};
use crate::http::access::Mode;
use crate::service::access::Browser;
use crate::service::refusal::Refusal;
use crate::service::unit::Caller;
use crate::tests::harness::{By, PASSWORD, Server, totp};

#[tokio::test]
async fn people_are_added_changed_and_shut_out() {
    let desk = Desk::open().await;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("written");
    let file = file.to_str().expect("text");
    let create = ["auth", "users", "create", "ada", "--role", "researcher"];
    desk.run(&create).await.refused(2, "--password-file FILE, or --generate-password");
    desk.run(&[&create[..], &["--password-file", file]].concat()).await.ok();
    assert!(desk.server.log_in("ada", PASSWORD).await.is_some());
    let made_up = desk.run(&["auth", "users", "create", "eve", "--role", "viewer", "--generate-password"]).await.line();
    assert!(desk.server.log_in("eve", &made_up).await.is_some());
    let document =
        desk.run(&["auth", "users", "create", "ci", "--role", "lead", "--no-password", "--json"]).await.json();
    assert_eq!(document["role"], "lead");
    desk.run(&["auth", "users", "create", "x", "--role", "leed"]).await.refused(2, "a similar value exists: 'lead'");

    assert_eq!(desk.run(&["auth", "users", "set-role", "eve", "lead", "--json"]).await.json()["role"], "lead");
    desk.run(&["auth", "users", "disable", "eve"]).await.refused(2, "--yes");
    assert_eq!(desk.run(&["auth", "users", "disable", "eve", "--yes", "--json"]).await.json()["disabled"], true);
    let table = "\
NAME   ROLE        STATE     ADDED                    ID
admin  admin       let in    2024-01-15 10:30:00 UTC  u_ID
ada    researcher  let in    2024-01-15 10:30:00 UTC  u_ID
ci     lead        let in    2024-01-15 10:30:00 UTC  u_ID
eve    lead        shut out  2024-01-15 10:30:00 UTC  u_ID
";
    let listed = masked(&desk.run(&["auth", "users", "list"]).await.ok());
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&listed), sorted(table));
    assert!(desk.server.log_in("eve", &made_up).await.is_none());
    assert_eq!(desk.run(&["auth", "users", "enable", "eve", "--json"]).await.json()["disabled"], false);
    assert_eq!(desk.run(&["auth", "users", "list", "-q"]).await.ok().lines().count(), 4);
    assert_eq!(desk.run(&["auth", "users", "list", "--json"]).await.json()["users"].as_array().map(Vec::len), Some(4));
    desk.run(&["auth", "users", "disable", "bob", "-y"]).await.refused(1, "there is nobody named \"bob\"");
}

#[tokio::test]
async fn a_lost_password_is_mended_on_the_host_without_a_token() {
    let desk = Desk::open().await;
    desk.server.person("ada", "researcher").await;
    let operator = desk.operator();
    let reset = ["auth", "reset-password", "ada"];
    desk.typing(&operator, &reset, &["a new password", "another password"]).await.refused(1, "two different passwords");
    let typed = desk.typing(&operator, &reset, &["a new password", "a new password"]).await;
    assert!(
        typed.err.contains("ada has a new password. Sessions ended: 1; API tokens revoked: 0.")
            && typed.ok().is_empty()
    );
    assert!(desk.server.log_in("ada", "a+new+password").await.is_some());
    assert!(desk.server.log_in("ada", PASSWORD).await.is_none());
    desk.typing(&operator, &reset, &["short", "short"]).await.refused(1, "at least 12 characters");
    let made_up =
        desk.run_by(&operator, &["auth", "users", "reset-password", "ada", "--generate-password", "-q"]).await.line();
    assert!(desk.server.log_in("ada", &made_up).await.is_some());

    let check = desk.run_by(&operator, &["auth", "login-check"]).await.ok();
    let name = nix::unistd::User::from_uid(nix::unistd::Uid::current()).expect("users").expect("this one").name;
    assert!(check.starts_with(&format!("name     host:{name}\nmay      account.manage admin.workers")), "{check}");
    let trail = desk.server.get(&By::Admin, "/api/audit?action=access.password_reset").await.ok(200);
    assert_eq!(trail["entries"][0]["actor"], format!("host:{name}"));
    assert!(!trail.to_string().contains(&made_up));
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked() {
    let desk = Desk::open().await;
    desk.server.person("ada", "researcher").await;
    let operator = desk.operator();
    desk.run_by(&operator, &["auth", "tokens", "create", "ci"]).await.refused(2, "add --user NAME");
    desk.run_by(&operator, &["auth", "tokens", "list"]).await.refused(2, "add --user NAME");
    let create =
        ["auth", "tokens", "create", "ci", "--user", "ada", "--scope", "job.view.own", "--expires-in-days", "7"];
    let made = desk.run_by(&operator, &create).await;
    let err = made.err.clone();
    let secret = made.line();
    assert!(secret.starts_with("st_") && !err.contains(&secret), "{err}");
    let ada = desk.client(&secret);
    assert_eq!(
        desk.run_by(&ada, &["auth", "login-check", "--json"]).await.json()["permissions"],
        json!(["job.view.own"])
    );
    desk.run_by(&ada, &["workers", "list"]).await.refused(77, "`admin.workers`");

    let listed = masked(&desk.run(&["auth", "tokens", "list", "--user", "ada"]).await.ok());
    let table = "\
NAME  FOR           ENDS                     USED      ID
ci    job.view.own  2024-01-22 10:30:00 UTC  just now  t_ID
";
    assert_eq!(listed, table);
    let own = desk.run(&["auth", "tokens", "create", "mine", "--json"]).await.json();
    assert!(own["secret"].as_str().is_some_and(|secret| secret.starts_with("st_")));
    let mine = desk.run(&["auth", "tokens", "list", "--json"]).await.json();
    assert!(mine["tokens"].as_array().expect("a list").iter().any(|token| token["name"] == "mine"));

    let id = desk.run(&["auth", "tokens", "list", "--user", "ada", "-q"]).await.line();
    desk.run(&["auth", "tokens", "revoke", &id]).await.refused(2, "--yes");
    assert_eq!(desk.run(&["auth", "tokens", "revoke", &id, "--yes", "-q"]).await.line(), id);
    desk.run_by(&ada, &["auth", "login-check"]).await.refused(77, "was revoked");
    desk.run(&["auth", "tokens", "create", "x", "--scope", "root"]).await.refused(2, "invalid value 'root'");
}

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let desk = Desk::open().await;
    let browser = desk.server.person("ada", "researcher").await;
    let listed = masked(&desk.run(&["auth", "sessions", "list", "--user", "ada"]).await.ok());
    assert!(listed.starts_with("HOST") && listed.contains("2024-01-15 10:30:00 UTC  just now  s_ID"), "{listed}");
    let document = desk.run(&["auth", "sessions", "list", "--user", "ada", "--json"]).await.json();
    assert_eq!(document["sessions"].as_array().map(Vec::len), Some(1));
    let id = desk.run(&["auth", "sessions", "list", "--user", "ada", "-q"]).await.line();
    assert_eq!(desk.run(&["auth", "sessions", "revoke", &id, "-q"]).await.line(), id);
    desk.server.get(&browser, "/api/session").await.problem(401, "not_authenticated");
    assert!(desk.run(&["auth", "sessions", "list"]).await.ok().starts_with("HOST"), "one's own");
}

#[tokio::test]
async fn the_first_admin_from_the_host_ends_the_setup_code() {
    let desk = Desk::with(Server::start_as(Mode::SingleUser).await).await;
    let core = &desk.server.app.core;
    let setup = core.setup_code().await.expect("a database").expect("nobody can log in yet");
    let operator = desk.operator();
    let make = |name: &'static str, role: &'static str| {
        ["auth", "users", "create", name, "--role", role, "--generate-password"]
    };
    desk.run_by(&operator, &make("vic", "viewer")).await.line();
    assert!(core.doors.unclaimed.load(Ordering::Relaxed), "a viewer is no admin");
    desk.run_by(&operator, &make("ada", "admin")).await.line();
    assert!(!core.doors.unclaimed.load(Ordering::Relaxed));
    let taken = core.set_up(Caller::system(), &setup, "eve", PASSWORD, Browser::default()).await;
    assert_eq!(taken.err(), Some(Refusal::WrongToken));
}

#[tokio::test]
async fn the_operators_token_opens_what_is_for_people_until_the_next_start() {
    let desk = Desk::open().await;
    let operator = desk.operator();
    desk.run_by(&operator, &["auth", "tokens", "revoke", "t_none", "-y"])
        .await
        .refused(1, "There is no API token t_none");
    let token = desk.server.app.core.operator_token();
    desk.run_by(&operator, &["auth", "login-check"]).await.refused(77, "opens nothing there");
    desk.server.get(&By::Token(token.clone()), "/api/session").await.ok(200);
    assert!(desk.server.log_in("", &token).await.is_none(), "no browser is opened by it");
    let key = By::worker(token.clone());
    desk.server.post(&key, "/api/workers/register", json!({"name": "x"})).await.problem(401, "worker_token_refused");
    let changed = json!({"old": PASSWORD, "new": "another password"});
    desk.server.post(&By::Token(token), "/api/account/password", changed).await.problem(409, "no_person");
}

#[tokio::test]
async fn a_lost_second_factor_is_removed_on_the_host() {
    let desk = Desk::open().await;
    totp::enrolled(&desk.server, "ada").await;
    assert!(desk.server.log_in("ada", PASSWORD).await.is_none());
    let operator = desk.operator();
    let remove = ["auth", "users", "remove-factors", "ada"];
    desk.run_by(&operator, &remove).await.refused(2, "--yes");
    desk.run_by(&operator, &[&remove[..], &["--yes"]].concat()).await.ok();
    assert!(desk.server.log_in("ada", PASSWORD).await.is_some());
    desk.run_by(&operator, &[&remove[..], &["--yes"]].concat()).await.refused(1, "No second factor is set up");
}

#[tokio::test]
async fn a_token_says_when_it_expires() {
    let desk = Desk::open().await;
    desk.server.person("ada", "viewer").await;
    let create = async |name: &str, more: &[&str]| {
        let args = [&["auth", "tokens", "create", name, "--user", "ada"], more].concat();
        desk.run(&args).await.err
    };
    assert!(create("usual", &[]).await.contains("It expires on 2024-04-14 10:30:00 UTC."));
    assert!(create("short", &["--expires-in-days", "1"]).await.contains("It expires on 2024-01-16 10:30:00 UTC."));
    assert!(create("ever", &["--never-expires"]).await.contains("It never expires."));
    let worker = desk.run(&["workers", "create", "gpu-1"]).await;
    assert!(worker.err.contains("It expires on 2024-02-14 10:30:00 UTC if no agent registers"), "{}", worker.err);
}
