//! Backup of running servers, and restore.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use app::domain::ids::JobId;
use serde_json::json;
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;

use super::*;
use crate::args::SecretString;
use crate::boot::restore_marker;
use crate::boot::without_listener::ServerWithoutListener;
use crate::service::Services;
use crate::store::conformance::fresh_database;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{DATABASE_FILE, SqliteStore};
use crate::tests::harness::{Actor, TestServer};
use crate::tokens;

const NOW: Timestamp = Timestamp(1_705_314_600_000);

fn database_at(directory: &Path) -> DatabaseLocationArgs {
    DatabaseLocationArgs { data_dir: Some(directory.to_owned()), database_url: None }
}

fn backup_args(from: &Path, to: &Path) -> BackupArgs {
    BackupArgs { database: database_at(from), to: to.to_owned(), without_artifacts: false }
}

fn restore_args(from: &Path, to: &Path, force: bool) -> RestoreArgs {
    RestoreArgs::new(database_at(to), from.to_owned(), force)
}

/// Returns the message of an error.
fn error_text<T: std::fmt::Debug>(outcome: Result<T, ExitError>) -> String {
    format!("{:?}", outcome.expect_err("an error"))
}

/// A server with a running job, a log and a file; returns the worker's token, too.
async fn busy_server() -> (TestServer, String, String) {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let put = async |path: &str, text: &'static str| {
        server.call(&token, "PUT", &format!("/api/workers/job/{job}/{path}"), text).await.expect_status(200)
    };
    put("logs?attempt=1&offset=0", "epoch 1\n").await;
    put("artifacts/sub/model.bin?attempt=1&kind=final", "weights").await;
    server.app.services.audit.sign_audit().await.expect("signed");
    let Actor::Worker(agent) = key else { panic!("a worker's key") };
    (server, job, agent.token().to_owned())
}

/// Creates a backup of such a server in `home`.
async fn back_up_busy_server(home: &TempDir, name: &str) -> (TestServer, PathBuf) {
    let (server, _, _) = busy_server().await;
    let backup = home.path().join(name);
    create_backup(&backup_args(server.directory.path(), &backup), NOW).await.expect("a backup");
    (server, backup)
}

#[tokio::test]
async fn running_server_is_backed_up_and_restored_elsewhere() {
    for name in ["backup", "backup.tar"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (server, job, worker) = busy_server().await;
        let operator_file = server.directory.path().join("operator/127.0.0.1-8001.json");
        fs::create_dir(operator_file.parent().expect("a directory")).expect("created");
        fs::write(&operator_file, "{}").expect("written");
        let (backup, data) = (home.path().join(name), home.path().join("data"));
        let create_workers = async {
            for n in 0..40 {
                server.create_worker(&format!("more-{n}")).await;
            }
        };
        let args = backup_args(server.directory.path(), &backup);
        let (output, ()) = tokio::join!(create_backup(&args, NOW), create_workers);
        assert!(output.expect("a backup").contains(" files, "));
        let mode = fs::metadata(&backup).expect("a backup").permissions().mode() & 0o777;
        assert_eq!(mode, if name == "backup" { 0o700 } else { 0o600 });
        let output = super::restore::restore(&restore_args(&backup, &data, false)).await.expect("restored");
        assert!(output.contains("audit log: intact") && output.contains("signed checkpoints: "), "{output}");

        let store = SqliteStore::open(&data, "c_new").await.expect("a server can start");
        let mut tx = store.read().await.expect("a reader");
        let found = tx.worker_by_token(&tokens::digest(&worker)).await.expect("readable");
        assert!(found.is_some(), "the agent's token is still valid");
        let mut original = server.app.services.context.read().await.expect("a reader");
        let (jobs, before) = (tx.index_rows_after("", 10).await, original.index_rows_after("", 10).await);
        assert!(before.as_ref().is_ok_and(|jobs| jobs.rows.len() == 1) && jobs == before, "{jobs:?}");
        let file = |directory: &Path, path: &str| fs::read(directory.join(path)).expect("a file");
        for path in [format!("logs/{job}/1.log"), format!("artifacts/{job}/1/sub/model.bin"), "audit.key".to_owned()] {
            assert_eq!(file(&data, &path), file(server.directory.path(), &path), "{path}");
        }
        assert!(!data.join("operator").exists(), "the token of the running server is not in a backup");
        drop(tx);
        store.close().await;
    }
}

#[tokio::test]
async fn sparse_logs_stay_sparse_in_backup_and_restore() {
    for name in ["backup", "backup.tar"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (server, job, _) = busy_server().await;
        let log = format!("logs/{job}/1.log");
        let mut file = fs::File::options().write(true).open(server.directory.path().join(&log)).expect("writable");
        // More ranges than one archive header can hold, and a hole at the end.
        for n in 1..40 {
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(n * 3_000_001)).expect("a disk");
            std::io::Write::write_all(&mut file, format!("part {n}").as_bytes()).expect("a disk");
        }
        file.set_len(130_000_000).expect("a disk");
        file.sync_all().expect("a disk");
        let (backup, data) = (home.path().join(name), home.path().join("data"));
        create_backup(&backup_args(server.directory.path(), &backup), NOW).await.expect("a backup");
        super::restore::restore(&restore_args(&backup, &data, false)).await.expect("restored");
        let disk_usage = |path: &Path| fs::metadata(path).expect("readable").blocks() * 512;
        let backed_up = if name == "backup" { backup.join("files").join(&log) } else { backup };
        assert!(disk_usage(&backed_up) < 20_000_000, "{name}: {} bytes", disk_usage(&backed_up));
        assert!(disk_usage(&data.join(&log)) < 20_000_000, "{name} restored: {} bytes", disk_usage(&data.join(&log)));
        let is_equal = fs::read(data.join(&log)).expect("readable")
            == fs::read(server.directory.path().join(&log)).expect("readable");
        assert!(is_equal, "{name}: the content differs");
    }
}

#[tokio::test]
async fn restored_exclusive_jobs_wait_until_old_attempts_have_stopped() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = busy_server().await;
    let submit = json!({"config_name": "digits", "exclusive": true});
    let job = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201)["job_id"].clone();
    let (backup, data) = (home.path().join("backup"), home.path().join("data"));
    create_backup(&backup_args(server.directory.path(), &backup), NOW).await.expect("a backup");
    super::restore::restore(&restore_args(&backup, &data, false)).await.expect("restored");
    let id = JobId::parse(job.as_str().expect("text")).expect("an id");
    let hold_until = async |services: &Arc<Services>| {
        services.context.read().await.expect("a reader").job(&id).await.expect("readable").expect("a job").hold_until
    };
    let offline = ServerWithoutListener::open(&data, None).await.expect("the database is free");
    let services = offline.services();
    let (until, now) = (hold_until(services).await, services.context.now());
    assert!(
        until.is_some_and(|until| until > now && until <= now + services.context.policy.heartbeat_timeout),
        "it may have been offered since"
    );
    restore_marker::complete_restore(services, &data).await.expect("completed");
    assert!(!data.join("restored").exists());
    offline.close().await;
    let offline = ServerWithoutListener::open(&data, None).await.expect("the database is free");
    let first_hold_until = hold_until(offline.services()).await;
    restore_marker::complete_restore(offline.services(), &data).await.expect("no restore to complete");
    assert_eq!(hold_until(offline.services()).await, first_hold_until, "a second completion changes nothing");
    offline.close().await;
}

#[tokio::test]
async fn damaged_missing_or_unknown_files_prevent_a_restore() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_server, backup) = back_up_busy_server(&home, "backup").await;
    let data = home.path().join("data");
    let restore_error = async || error_text(super::restore::restore(&restore_args(&backup, &data, false)).await);
    let model = fs::read_dir(backup.join("files/artifacts")).expect("jobs").next().expect("a job").expect("readable");
    let model = model.path().join("1/sub/model.bin");
    fs::write(&model, "wEights").expect("written");
    let output = restore_error().await;
    assert!(output.contains("sub/model.bin is damaged"), "{output}");
    fs::remove_file(&model).expect("removed");
    assert!(restore_error().await.contains("sub/model.bin is missing"));
    fs::write(&model, "weights").expect("written");
    fs::write(backup.join("files/extra"), "x").expect("written");
    assert!(restore_error().await.contains("files/extra does not belong"));
    fs::remove_file(backup.join("files/extra")).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", backup.join("files/link")).expect("a link");
    let output = restore_error().await;
    assert!(output.contains("files/link"), "{output}");
    fs::remove_file(backup.join("files/link")).expect("removed");
    let manifest = fs::read_to_string(backup.join("manifest.json")).expect("readable");
    let known =
        format!("\"schema\": {}", crate::store::system::schema::newest_version(&crate::store::sqlite::MIGRATIONS));
    fs::write(backup.join("manifest.json"), manifest.replace(&known, "\"schema\": 99")).expect("written");
    assert!(restore_error().await.contains("newer than this program"));
    fs::remove_file(backup.join("manifest.json")).expect("removed");
    assert!(restore_error().await.contains("not a complete backup"));
    let entries: Vec<_> = fs::read_dir(&data).expect("created").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(entries, ["orchestrator.lock"], "nothing else is left");
}

#[tokio::test]
async fn damaged_archive_is_rejected_with_the_file_name() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_server, backup) = back_up_busy_server(&home, "backup.tar").await;
    let mut bytes = fs::read(&backup).expect("an archive");
    let index = bytes.windows(7).position(|bytes| bytes == b"weights").expect("the file is in it");
    bytes[index] ^= 1;
    fs::write(&backup, &bytes).expect("written");
    let data = home.path().join("data");
    let output = error_text(super::restore::restore(&restore_args(&backup, &data, false)).await);
    assert!(output.contains("sub/model.bin is damaged"), "{output}");
    fs::write(&backup, &bytes[..bytes.len() / 2]).expect("written");
    let output = error_text(super::restore::restore(&restore_args(&backup, &data, false)).await);
    assert!(output.contains("nothing was restored") || output.contains("damaged"), "{output}");
}

#[tokio::test]
async fn manipulated_audit_log_is_restored_and_reported() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = busy_server().await;
    let (from, backup, data) = (server.directory.path(), home.path().join("backup"), home.path().join("data"));
    let file = format!("sqlite:{}", from.join(DATABASE_FILE).display());
    let mut connection = SqliteConnection::connect(&file).await.expect("a database");
    let tamper = "UPDATE audit SET actor = 'nobody' WHERE seq = 2";
    sqlx::query(tamper).execute(&mut connection).await.expect("a statement");
    create_backup(&backup_args(from, &backup), NOW).await.expect("a backup");
    let exit =
        super::restore::restore(&restore_args(&backup, &data, false)).await.expect_err("the audit log is invalid");
    assert_eq!(exit.code(), 65);
    assert!(exit.message().contains("its audit log is invalid: c_test: "), "{}", exit.message());
    assert!(data.join(DATABASE_FILE).is_file(), "the data is restored all the same");
}

#[tokio::test]
async fn running_server_and_existing_files_prevent_a_restore() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, backup) = back_up_busy_server(&home, "backup").await;
    let data = server.directory.path();
    let output = error_text(super::restore::restore(&restore_args(&backup, data, true)).await);
    assert!(output.contains("another simpletuner server"), "also with --force: {output}");
    let other = home.path().join("other");
    fs::create_dir(&other).expect("created");
    fs::write(other.join("mine"), "precious").expect("written");
    assert!(error_text(super::restore::restore(&restore_args(&backup, &other, false)).await).contains("is not empty"));
    let output = super::restore::restore(&restore_args(&backup, &other, true)).await.expect("restored");
    let previous = output.lines().find_map(|line| line.strip_prefix("previous files are in ")).expect("a path");
    assert_eq!(fs::read_to_string(Path::new(previous).join("mine")).expect("readable"), "precious");
    assert!(other.join("orchestrator.db").is_file());
    assert!(error_text(create_backup(&backup_args(data, &backup), NOW).await).contains("exists already"));
}

#[tokio::test]
async fn links_and_partial_uploads_are_excluded() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = busy_server().await;
    let (data, backup) = (server.directory.path(), home.path().join("backup"));
    std::os::unix::fs::symlink("/etc", data.join("tls")).expect("a link");
    fs::write(data.join("artifacts/x#1"), "half").expect("written");
    let args = BackupArgs { without_artifacts: true, ..backup_args(data, &backup) };
    create_backup(&args, NOW).await.expect("a backup");
    assert!(!backup.join("files/tls").exists() && !backup.join("files/artifacts").exists());
    assert!(backup.join("files/logs").is_dir());
    let entries: Vec<_> =
        fs::read_dir(home.path()).expect("readable").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(entries, ["backup"], "no draft is left");
}

#[tokio::test]
async fn postgresql_is_dumped_and_restored_into_an_empty_database() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (from, new_database, data) = (fresh_database().await, fresh_database().await, home.path().join("data"));
    let store = PostgresStore::open(&from, "c_old").await.expect("a database");
    let result = store.write(Box::new(|tx| Box::pin(async move { tx.put_setting("kept", Some("yes")).await })));
    result.await.expect("written");
    fs::create_dir(&data).expect("created");
    fs::write(data.join("audit.key"), "00\n").expect("written");
    let location = |url: &str, data: &Path| DatabaseLocationArgs {
        data_dir: Some(data.to_owned()),
        database_url: Some(SecretString(url.to_owned())),
    };
    let backup = home.path().join("backup.tar");
    let args = BackupArgs { database: location(&from, &data), to: backup.clone(), without_artifacts: false };
    create_backup(&args, NOW).await.expect("a backup while the server runs");
    let target = home.path().join("there");
    let output =
        error_text(super::restore::restore(&RestoreArgs::new(location(&from, &target), backup.clone(), false)).await);
    assert!(output.contains("not empty"), "{output}");
    store.close().await;
    super::restore::restore(&RestoreArgs::new(location(&new_database, &target), backup.clone(), false))
        .await
        .expect("restored");
    assert_eq!(stored_setting(&new_database).await.as_deref(), Some("yes"));
    assert_eq!(fs::read_to_string(target.join("audit.key")).expect("restored"), "00\n");

    // The restore replaces the state of a later day and keeps its files.
    let store = PostgresStore::open(&from, "c_later").await.expect("a server can start");
    let result = store.write(Box::new(|tx| Box::pin(async move { tx.put_setting("kept", Some("no")).await })));
    result.await.expect("written");
    store.close().await;
    fs::write(data.join("audit.key"), "11\n").expect("written");
    let output =
        super::restore::restore(&RestoreArgs::new(location(&from, &data), backup, true)).await.expect("restored");
    assert_eq!(stored_setting(&from).await.as_deref(), Some("yes"));
    assert_eq!(fs::read_to_string(data.join("audit.key")).expect("restored"), "00\n");
    let previous = output.split_once("previous files are in ").expect("a path").1.lines().next().expect("a path");
    assert_eq!(fs::read_to_string(Path::new(previous).join("audit.key")).expect("readable"), "11\n");
}

/// Returns the test's setting from this database.
async fn stored_setting(url: &str) -> Option<String> {
    let store = PostgresStore::open(url, "c_new").await.expect("a server can start");
    let value = store.read().await.expect("a reader").setting("kept").await.expect("readable");
    store.close().await;
    value
}
