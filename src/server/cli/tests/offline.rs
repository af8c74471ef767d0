//! `simpletuner auth …` while no server runs.

use std::path::Path;

use serde_json::Value;

use super::harness::CliHarness;
use crate::args::SecretString;
use crate::boot::without_listener::ServerWithoutListener;
use crate::cli::client::Client;
use crate::store::conformance::fresh_database;
use crate::store::sqlite::SqliteStore;

#[tokio::test]
async fn directory_without_a_database_stays_empty() {
    let home = tempfile::tempdir().expect("a directory");
    let rejected = ServerWithoutListener::open(home.path(), None).await.err().expect("nothing is there");
    assert!(rejected.code() == 69 && rejected.message().contains("--data-dir"), "{rejected:?}");
    assert_eq!(home.path().read_dir().expect("readable").count(), 0);
}

#[tokio::test]
async fn database_in_use_is_rejected() {
    let home = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(home.path(), "c_1").await.expect("fresh");
    let rejected = ServerWithoutListener::open(home.path(), None).await.err().expect("it is in use");
    assert!(rejected.code() == 78 && rejected.message().contains("another simpletuner server"), "{rejected:?}");
    drop(store);
}

/// Runs a command on a database, as a user of its host.
async fn run(harness: &CliHarness, home: &Path, database: Option<&SecretString>, args: &[&str]) -> Value {
    let offline = ServerWithoutListener::open(home, database).await.expect("a database");
    let client = Client::in_process(offline.router.clone(), offline.token.clone());
    let document = harness.run_as(&client, args).await.json();
    offline.close().await;
    document
}

async fn assert_password_reset(home: &Path, database: Option<&SecretString>) {
    // Used for its output only.
    let harness = CliHarness::start().await;
    let create = ["auth", "users", "create", "ada", "--role", "admin", "--generate-password", "--json"];
    let created = run(&harness, home, database, &create).await;
    let reset = ["auth", "reset-password", "ada", "--generate-password", "--json"];
    let changed = run(&harness, home, database, &reset).await;
    assert!(changed["password"].is_string() && changed["password"] != created["password"], "{changed}");
    let list = run(&harness, home, database, &["auth", "users", "list", "--json"]).await;
    assert_eq!(list["users"][0]["id"], created["id"]);
    let check = run(&harness, home, database, &["auth", "login-check", "--json"]).await;
    assert!(check["name"].as_str().is_some_and(|name| name.starts_with("host:")), "{check}");
}

#[tokio::test]
async fn offline_commands_use_the_servers_routes() {
    let home = tempfile::tempdir().expect("a directory");
    SqliteStore::open(home.path(), "c_1").await.expect("fresh");
    assert_password_reset(home.path(), None).await;
    let home = tempfile::tempdir().expect("a directory");
    assert_password_reset(home.path(), Some(&SecretString(fresh_database().await))).await;
}
