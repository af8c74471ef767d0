//! `simpletuner auth …` while no server runs.

use std::path::Path;

use serde_json::Value;

use super::desk::Desk;
use crate::boot::offline::Offline;
use crate::cli::Secret;
use crate::cli::client::Client;
use crate::store::conformance::fresh_database;
use crate::store::sqlite::SqliteStore;

#[tokio::test]
async fn a_directory_without_a_database_stays_empty() {
    let home = tempfile::tempdir().expect("a directory");
    let refused = Offline::open(home.path(), None).await.err().expect("nothing is there");
    assert!(refused.code() == 69 && refused.sentence().contains("--data-dir"), "{refused:?}");
    assert_eq!(home.path().read_dir().expect("readable").count(), 0);
}

#[tokio::test]
async fn a_server_that_has_the_database_keeps_it() {
    let home = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(home.path(), "c_1").await.expect("fresh");
    let refused = Offline::open(home.path(), None).await.err().expect("it is in use");
    assert!(refused.code() == 78 && refused.sentence().contains("another simpletuner server"), "{refused:?}");
    drop(store);
}

/// Runs a command on a database, as whoever is on its host.
async fn run(desk: &Desk, home: &Path, database: Option<&Secret>, args: &[&str]) -> Value {
    let offline = Offline::open(home, database).await.expect("a database");
    let client = Client::within(offline.router.clone(), offline.token.clone());
    let document = desk.run_by(&client, args).await.json();
    offline.close().await;
    document
}

async fn is_mended(home: &Path, database: Option<&Secret>) {
    // Only for its screen.
    let desk = Desk::open().await;
    let create = ["auth", "users", "create", "ada", "--role", "admin", "--generate-password", "--json"];
    let made = run(&desk, home, database, &create).await;
    let reset = ["auth", "reset-password", "ada", "--generate-password", "--json"];
    let mended = run(&desk, home, database, &reset).await;
    assert!(mended["password"].is_string() && mended["password"] != made["password"], "{mended}");
    let listed = run(&desk, home, database, &["auth", "users", "list", "--json"]).await;
    assert_eq!(listed["users"][0]["id"], made["id"]);
    let check = run(&desk, home, database, &["auth", "login-check", "--json"]).await;
    assert!(check["name"].as_str().is_some_and(|name| name.starts_with("host:")), "{check}");
}

#[tokio::test]
async fn a_database_is_mended_by_the_servers_own_routes() {
    let home = tempfile::tempdir().expect("a directory");
    SqliteStore::open(home.path(), "c_1").await.expect("fresh");
    is_mended(home.path(), None).await;
    let home = tempfile::tempdir().expect("a directory");
    is_mended(home.path(), Some(&Secret(fresh_database().await))).await;
}
