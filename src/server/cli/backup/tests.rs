//! Backups of servers that run, and what becomes of them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use app::domain::ids::JobId;
use serde_json::json;
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;

use super::*;
use crate::boot::offline::Offline;
use crate::boot::restored;
use crate::cli::Secret;
use crate::service::Core;
use crate::store::conformance::fresh_database;
use crate::store::jobs::JobFilter;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{FILE, SqliteStore};
use crate::tests::harness::{By, Server};
use crate::tokens;

const NOW: Timestamp = Timestamp(1_705_314_600_000);

fn of(directory: &Path) -> Database {
    Database { data_dir: Some(directory.to_owned()), database_url: None }
}

fn backing_up(from: &Path, to: &Path) -> BackupArgs {
    BackupArgs { database: of(from), to: to.to_owned(), without_artifacts: false }
}

fn restoring(from: &Path, to: &Path, force: bool) -> RestoreArgs {
    RestoreArgs::new(of(to), from.to_owned(), force)
}

/// What an exit says.
fn why<T: std::fmt::Debug>(outcome: Result<T, Exit>) -> String {
    format!("{:?}", outcome.expect_err("a refusal"))
}

/// A server with a job that runs, a log and a file; and the worker's token.
async fn at_work() -> (Server, String, String) {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    let token = By::Job(events.offer().await.upload_token);
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let put = async |what: &str, text: &'static str| {
        server.call(&token, "PUT", &format!("/api/workers/job/{job}/{what}"), text).await.ok(200)
    };
    put("logs?attempt=1&offset=0", "epoch 1\n").await;
    put("artifacts/sub/model.bin?attempt=1&kind=final", "weights").await;
    server.app.core.sign_audit().await.expect("signed");
    let By::Worker(agent) = key else { panic!("a worker's key") };
    (server, job, agent.token().to_owned())
}

/// A finished backup of such a server in `home`.
async fn backup_of_one(home: &TempDir, name: &str) -> (Server, PathBuf) {
    let (server, _, _) = at_work().await;
    let backup = home.path().join(name);
    back_up(&backing_up(server.directory.path(), &backup), NOW).await.expect("a backup");
    (server, backup)
}

#[tokio::test]
async fn a_server_that_writes_is_backed_up_and_goes_on_elsewhere() {
    for name in ["backup", "backup.tar"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (server, job, worker) = at_work().await;
        let note = server.directory.path().join("operator/127.0.0.1-8001.json");
        fs::create_dir(note.parent().expect("a directory")).expect("made");
        fs::write(&note, "{}").expect("written");
        let (backup, data) = (home.path().join(name), home.path().join("data"));
        let writing = async {
            for n in 0..40 {
                server.worker(&format!("more-{n}")).await;
            }
        };
        let args = backing_up(server.directory.path(), &backup);
        let (said, ()) = tokio::join!(back_up(&args, NOW), writing);
        assert!(said.expect("a backup").contains(" files, "));
        let mode = fs::metadata(&backup).expect("a backup").permissions().mode() & 0o777;
        assert_eq!(mode, if name == "backup" { 0o700 } else { 0o600 });
        let said = super::restore::restore(&restoring(&backup, &data, false)).await.expect("restored");
        assert!(said.contains("audit trail: intact") && said.contains("signed checkpoints: "), "{said}");

        let store = SqliteStore::open(&data, "c_new").await.expect("a server can start");
        let mut tx = store.read().await.expect("a reader");
        let found = tx.worker_by_token(&tokens::digest(&worker)).await.expect("readable");
        assert!(found.is_some(), "the agent's token is still valid");
        let all = JobFilter { limit: 10, ..JobFilter::default() };
        let mut original = server.app.core.read().await.expect("a reader");
        let (jobs, before) = (tx.jobs(&all).await, original.jobs(&all).await);
        assert!(before.as_ref().is_ok_and(|jobs| jobs.len() == 1) && jobs == before, "{jobs:?}");
        let file = |directory: &Path, path: &str| fs::read(directory.join(path)).expect("a file");
        for path in [format!("logs/{job}/1.log"), format!("artifacts/{job}/1/sub/model.bin"), "audit.key".to_owned()] {
            assert_eq!(file(&data, &path), file(server.directory.path(), &path), "{path}");
        }
        assert!(!data.join("operator").exists(), "what opens the server that runs is not in a backup");
        drop(tx);
        store.close().await;
    }
}

#[tokio::test]
async fn the_holes_of_a_log_take_no_room_in_a_backup_nor_where_it_is_put_back() {
    for name in ["backup", "backup.tar"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (server, job, _) = at_work().await;
        let log = format!("logs/{job}/1.log");
        let mut file = fs::File::options().write(true).open(server.directory.path().join(&log)).expect("there");
        // More parts than one header of an archive has room for, and a hole at the end.
        for n in 1..40 {
            std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(n * 3_000_001)).expect("a disk");
            std::io::Write::write_all(&mut file, format!("part {n}").as_bytes()).expect("a disk");
        }
        file.set_len(130_000_000).expect("a disk");
        file.sync_all().expect("a disk");
        let (backup, data) = (home.path().join(name), home.path().join("data"));
        back_up(&backing_up(server.directory.path(), &backup), NOW).await.expect("a backup");
        super::restore::restore(&restoring(&backup, &data, false)).await.expect("restored");
        let room = |path: &Path| fs::metadata(path).expect("there").blocks() * 512;
        let kept = if name == "backup" { backup.join("files").join(&log) } else { backup };
        assert!(room(&kept) < 20_000_000, "{name}: {} bytes", room(&kept));
        assert!(room(&data.join(&log)) < 20_000_000, "{name} put back: {} bytes", room(&data.join(&log)));
        let same =
            fs::read(data.join(&log)).expect("there") == fs::read(server.directory.path().join(&log)).expect("there");
        assert!(same, "{name}: byte by byte");
    }
}

#[tokio::test]
async fn no_exclusive_job_that_was_put_back_begins_before_who_may_run_it_must_have_stopped() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = at_work().await;
    let submit = json!({"config_name": "digits", "exclusive": true});
    let job = server.post(&By::Admin, "/api/queue/submit", submit).await.ok(201)["job_id"].clone();
    let (backup, data) = (home.path().join("backup"), home.path().join("data"));
    back_up(&backing_up(server.directory.path(), &backup), NOW).await.expect("a backup");
    super::restore::restore(&restoring(&backup, &data, false)).await.expect("restored");
    let id = JobId::parse(job.as_str().expect("text")).expect("an id");
    let kept = async |core: &Arc<Core>| {
        core.read().await.expect("a reader").job(&id).await.expect("readable").expect("there").kept_back
    };
    let offline = Offline::open(&data, None).await.expect("the database is free");
    let core = offline.core();
    let (until, now) = (kept(core).await, core.now());
    assert!(until.is_some_and(|until| until > now && until <= now + core.lease()), "it may have been offered since");
    restored::take_up(core, &data).await.expect("taken up");
    assert!(!data.join("restored").exists());
    offline.close().await;
    let offline = Offline::open(&data, None).await.expect("the database is free");
    let once = kept(offline.core()).await;
    restored::take_up(offline.core(), &data).await.expect("nothing to do");
    assert_eq!(kept(offline.core()).await, once, "once");
    offline.close().await;
}

#[tokio::test]
async fn what_is_damaged_missing_or_strange_is_named_and_nothing_is_restored() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_server, backup) = backup_of_one(&home, "backup").await;
    let data = home.path().join("data");
    let refused = async || why(super::restore::restore(&restoring(&backup, &data, false)).await);
    let model = fs::read_dir(backup.join("files/artifacts")).expect("jobs").next().expect("one").expect("readable");
    let model = model.path().join("1/sub/model.bin");
    fs::write(&model, "wEights").expect("written");
    let said = refused().await;
    assert!(said.contains("sub/model.bin is damaged"), "{said}");
    fs::remove_file(&model).expect("there");
    assert!(refused().await.contains("sub/model.bin is missing"));
    fs::write(&model, "weights").expect("written");
    fs::write(backup.join("files/extra"), "x").expect("written");
    assert!(refused().await.contains("files/extra does not belong"));
    fs::remove_file(backup.join("files/extra")).expect("there");
    std::os::unix::fs::symlink("/etc/passwd", backup.join("files/link")).expect("a link");
    let said = refused().await;
    assert!(said.contains("files/link"), "{said}");
    fs::remove_file(backup.join("files/link")).expect("there");
    let manifest = fs::read_to_string(backup.join("manifest.json")).expect("there");
    let known = format!("\"schema\": {}", crate::store::schema::newest(&crate::store::sqlite::MIGRATIONS));
    fs::write(backup.join("manifest.json"), manifest.replace(&known, "\"schema\": 99")).expect("written");
    assert!(refused().await.contains("newer than this program"));
    fs::remove_file(backup.join("manifest.json")).expect("there");
    assert!(refused().await.contains("not finished"));
    let left: Vec<_> = fs::read_dir(&data).expect("made").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["orchestrator.lock"], "nothing else was left");
}

#[tokio::test]
async fn a_damaged_archive_is_refused_with_the_files_name() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_server, backup) = backup_of_one(&home, "backup.tar").await;
    let mut bytes = fs::read(&backup).expect("an archive");
    let at = bytes.windows(7).position(|bytes| bytes == b"weights").expect("the file is in it");
    bytes[at] ^= 1;
    fs::write(&backup, &bytes).expect("written");
    let data = home.path().join("data");
    let said = why(super::restore::restore(&restoring(&backup, &data, false)).await);
    assert!(said.contains("sub/model.bin is damaged"), "{said}");
    fs::write(&backup, &bytes[..bytes.len() / 2]).expect("written");
    let said = why(super::restore::restore(&restoring(&backup, &data, false)).await);
    assert!(said.contains("nothing was restored") || said.contains("damaged"), "{said}");
}

#[tokio::test]
async fn a_trail_that_was_tampered_with_is_restored_and_said_to_be_so() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = at_work().await;
    let (from, backup, data) = (server.directory.path(), home.path().join("backup"), home.path().join("data"));
    let file = format!("sqlite:{}", from.join(FILE).display());
    let mut connection = SqliteConnection::connect(&file).await.expect("a database");
    let tamper = "UPDATE audit SET actor = 'nobody' WHERE seq = 2";
    sqlx::query(tamper).execute(&mut connection).await.expect("a statement");
    back_up(&backing_up(from, &backup), NOW).await.expect("a backup");
    let exit = super::restore::restore(&restoring(&backup, &data, false)).await.expect_err("it does not hold");
    assert_eq!(exit.code(), 65);
    assert!(exit.sentence().contains("its audit trail does not hold: c_test: "), "{}", exit.sentence());
    assert!(data.join(FILE).is_file(), "it is there all the same");
}

#[tokio::test]
async fn a_server_that_runs_and_files_that_are_there_are_in_the_way() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, backup) = backup_of_one(&home, "backup").await;
    let data = server.directory.path();
    let said = why(super::restore::restore(&restoring(&backup, data, true)).await);
    assert!(said.contains("another simpletuner server"), "also with --force: {said}");
    let other = home.path().join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("mine"), "precious").expect("written");
    assert!(why(super::restore::restore(&restoring(&backup, &other, false)).await).contains("is not empty"));
    let said = super::restore::restore(&restoring(&backup, &other, true)).await.expect("restored");
    let aside = said.lines().find_map(|line| line.strip_prefix("what was there is in ")).expect("where");
    assert_eq!(fs::read_to_string(Path::new(aside).join("mine")).expect("kept"), "precious");
    assert!(other.join("orchestrator.db").is_file());
    assert!(why(back_up(&backing_up(data, &backup), NOW).await).contains("is there already"));
}

#[tokio::test]
async fn links_are_left_out_and_drafts_of_uploads_too() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (server, _, _) = at_work().await;
    let (data, backup) = (server.directory.path(), home.path().join("backup"));
    std::os::unix::fs::symlink("/etc", data.join("tls")).expect("a link");
    fs::write(data.join("artifacts/x#1"), "half").expect("written");
    let args = BackupArgs { without_artifacts: true, ..backing_up(data, &backup) };
    back_up(&args, NOW).await.expect("a backup");
    assert!(!backup.join("files/tls").exists() && !backup.join("files/artifacts").exists());
    assert!(backup.join("files/logs").is_dir());
    let left: Vec<_> = fs::read_dir(home.path()).expect("readable").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["backup"], "no draft stays");
}

#[tokio::test]
async fn postgresql_is_dumped_by_its_own_tools_and_put_back_into_an_empty_database() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (from, to, data) = (fresh_database().await, fresh_database().await, home.path().join("data"));
    let store = PostgresStore::open(&from, "c_old").await.expect("a database");
    let written = store.write(Box::new(|tx| Box::pin(async move { tx.put_setting("kept", Some("yes")).await })));
    written.await.expect("written");
    fs::create_dir(&data).expect("made");
    fs::write(data.join("audit.key"), "00\n").expect("written");
    let at = |url: &str, data: &Path| Database {
        data_dir: Some(data.to_owned()),
        database_url: Some(Secret(url.to_owned())),
    };
    let backup = home.path().join("backup.tar");
    let args = BackupArgs { database: at(&from, &data), to: backup.clone(), without_artifacts: false };
    back_up(&args, NOW).await.expect("a backup while the server runs");
    let there = home.path().join("there");
    let said = why(super::restore::restore(&RestoreArgs::new(at(&from, &there), backup.clone(), false)).await);
    assert!(said.contains("not empty"), "{said}");
    store.close().await;
    super::restore::restore(&RestoreArgs::new(at(&to, &there), backup.clone(), false)).await.expect("restored");
    assert_eq!(kept_in(&to).await.as_deref(), Some("yes"));
    assert_eq!(fs::read_to_string(there.join("audit.key")).expect("restored"), "00\n");

    // Another day's state gives way to it, and its files are kept.
    let store = PostgresStore::open(&from, "c_later").await.expect("a server can start");
    let written = store.write(Box::new(|tx| Box::pin(async move { tx.put_setting("kept", Some("no")).await })));
    written.await.expect("written");
    store.close().await;
    fs::write(data.join("audit.key"), "11\n").expect("written");
    let said = super::restore::restore(&RestoreArgs::new(at(&from, &data), backup, true)).await.expect("restored");
    assert_eq!(kept_in(&from).await.as_deref(), Some("yes"));
    assert_eq!(fs::read_to_string(data.join("audit.key")).expect("restored"), "00\n");
    let aside = said.split_once("what was there is in ").expect("a place").1.lines().next().expect("a path");
    assert_eq!(fs::read_to_string(Path::new(aside).join("audit.key")).expect("kept"), "11\n");
}

/// The setting of the test, as a server on this database finds it.
async fn kept_in(url: &str) -> Option<String> {
    let store = PostgresStore::open(url, "c_new").await.expect("a server can start");
    let kept = store.read().await.expect("a reader").setting("kept").await.expect("readable");
    store.close().await;
    kept
}
