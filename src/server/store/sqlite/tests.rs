//! What is specific to SQLite: its lock, what survives a crash, and how it is compiled.

use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};

use super::SqliteStore;
use crate::store::Store;

#[tokio::test]
async fn second_server_on_a_directory_is_rejected() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let first = SqliteStore::open(directory.path(), "c_1").await.expect("fresh");
    let second = SqliteStore::open(directory.path(), "c_2").await.err().expect("the directory is locked");
    assert!(second.to_string().contains("another simpletuner server"), "{second}");
    first.close().await;
    drop(first);
    SqliteStore::open(directory.path(), "c_3").await.expect("free again");
}

#[tokio::test]
async fn acknowledged_writes_survive_a_crash() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = Arc::new(SqliteStore::open(directory.path(), "c_1").await.expect("fresh"));
    let work = store.write(Box::new(|tx| Box::pin(async move { tx.put_setting("key", Some("kept")).await })));
    work.await.expect("written");
    // A copy of the files while the store is open is what a crash leaves behind.
    let copy = tempfile::tempdir().expect("a temporary directory");
    for name in ["orchestrator.db", "orchestrator.db-wal"] {
        std::fs::copy(directory.path().join(name), copy.path().join(name)).expect("the file is there");
    }
    let recovered = SqliteStore::open(copy.path(), "c_2").await.expect("recoverable");
    let value = recovered.read().await.expect("a reader").setting("key").await;
    assert_eq!(value, Ok(Some("kept".to_owned())));
}

#[tokio::test]
async fn error_names_an_unwritable_directory() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = SqliteStore::open(&file.path().join("below"), "c_1").await.err().expect("a file is no directory");
    assert!(error.to_string().contains("cannot write to the data directory"), "{error}");
}

/// Set by `LIBSQLITE3_FLAGS` in `.cargo/config.toml`.
#[tokio::test]
async fn sqlite_is_compiled_without_locks_that_connections_share() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.expect("a database");
    let options: Vec<String> =
        sqlx::query_scalar("PRAGMA compile_options").fetch_all(&mut connection).await.expect("its options");
    let has = |option: &str| options.iter().any(|known| known == option);
    assert!(has("DEFAULT_MEMSTATUS=0") && !has("ENABLE_MEMORY_MANAGEMENT"), "{options:?}");
}
