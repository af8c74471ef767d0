//! A server that cannot start prints the reason in one sentence and sets an exit code.

use std::path::Path;

use crate::harness::{Program, TestFleet, command};

const USAGE: i32 = 2;
const UNAVAILABLE: i32 = 69;
const CONFIG: i32 = 78;

/// Starts a server that must fail.
async fn assert_does_not_start(home: &Path, args: &[&str], code: i32, expected_text: &str) {
    let log = home.join(format!("bad-start-{code}-{}.log", args.len()));
    let mut command = command("simpletuner", home);
    command.arg("server").args(args).env("SIMPLETUNER_LOG", "off");
    let mut server = Program::start(command, log);
    let exit_code = server.wait().await;
    let output = server.output();
    assert_eq!(exit_code, Some(code), "{args:?}: {output}");
    assert!(
        output.contains(expected_text) && !output.contains("panicked"),
        "{args:?} should name {expected_text:?}: {output}"
    );
    assert_eq!(output.trim().lines().count(), 1, "{args:?}: more than one line: {output}");
}

#[tokio::test]
async fn a_port_or_a_data_directory_in_use() {
    let fleet = TestFleet::start_embedded().await;
    let port = fleet.port().to_string();
    let (unused_dir, used_dir) = (fleet.path().join("own"), fleet.data());
    let (unused_dir, used_dir) = (unused_dir.to_string_lossy(), used_dir.to_string_lossy());
    assert_does_not_start(fleet.path(), &["--port", &port, "--data-dir", &unused_dir], UNAVAILABLE, &port).await;
    assert_does_not_start(fleet.path(), &["--port", "0", "--data-dir", &used_dir], CONFIG, &used_dir).await;
    fleet.api.get("/readyz").await;
}

#[tokio::test]
async fn unusable_directories() {
    let dir = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    // Not even root can create a directory below a file.
    let (below, valid, missing) = (file.join("data"), dir.path().join("data"), dir.path().join("missing"));
    let (below, valid, missing) = (below.to_string_lossy(), valid.to_string_lossy(), missing.to_string_lossy());
    assert_does_not_start(dir.path(), &["--port", "0", "--data-dir", &below], CONFIG, &below).await;
    let args = ["--port", "0", "--data-dir", &valid, "--configs-dir", &missing];
    assert_does_not_start(dir.path(), &args, CONFIG, &missing).await;
}

#[tokio::test]
async fn unreachable_database() {
    let dir = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let data = dir.path().join("data");
    let data = data.to_string_lossy();
    let unreachable = ["--port", "0", "--data-dir", &data, "--database-url", "postgres://simpletuner@127.0.0.1:1/x"];
    assert_does_not_start(dir.path(), &unreachable, CONFIG, "127.0.0.1:1").await;
    let unsupported = ["--port", "0", "--data-dir", &data, "--database-url", "mysql://127.0.0.1/x", "--local", "off"];
    assert_does_not_start(dir.path(), &unsupported, CONFIG, "postgres://").await;
}

#[tokio::test]
async fn jobs_as_the_servers_own_user() {
    for local in ["auto", "on"] {
        let dir = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
        let data = dir.path().join("data");
        let args = ["--port", "0", "--data-dir", &data.to_string_lossy(), "--local", local];
        assert_does_not_start(dir.path(), &args, CONFIG, "--local-shares-user").await;
    }
}

#[tokio::test]
async fn unusable_certificates() {
    let dir = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let (data, cert) = (dir.path().join("data"), dir.path().join("cert.pem"));
    let (data, cert) = (data.to_string_lossy(), cert.to_string_lossy());
    let base_args = ["--port", "0", "--data-dir", &data, "--local", "off"];
    let with_args = |more: &[&'static str]| [&base_args[..], more].concat();
    assert_does_not_start(dir.path(), &with_args(&["--ssl-cert", "c.pem", "--ssl-key", "k.pem"]), USAGE, "add --ssl")
        .await;
    assert_does_not_start(dir.path(), &with_args(&["--ssl", "--ssl-cert", "c.pem"]), USAGE, "--ssl-key").await;
    let missing = [&base_args[..], &["--ssl", "--ssl-cert", &cert, "--ssl-key", &cert]].concat();
    assert_does_not_start(dir.path(), &missing, CONFIG, &cert).await;
}

#[tokio::test]
async fn single_user_on_every_network() {
    let dir = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let data = dir.path().join("data");
    let args = ["--port", "0", "--data-dir", &data.to_string_lossy(), "--single-user", "--host", "0.0.0.0"];
    assert_does_not_start(dir.path(), &args, USAGE, "--single-user").await;
}
