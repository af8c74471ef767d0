//! The operator's commands, as they are typed on the server's host.

use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::harness::{Fleet, PATIENCE, command, processes_that_mention, program, trainers, until};

/// A command with nothing but the server's data directory.
pub fn typed(fleet: &Fleet, args: &[&str]) -> Command {
    let mut command = command("simpletuner", fleet.path());
    command.args(args).env("SIMPLETUNER_DATA_DIR", fleet.data()).stdin(Stdio::null());
    command
}

async fn run(fleet: &Fleet, args: &[&str]) -> Output {
    typed(fleet, args).output().await.expect("a program")
}

/// What a command prints, which must end well.
async fn printed(fleet: &Fleet, args: &[&str]) -> String {
    let output = run(fleet, args).await;
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// What the server has left for whoever is on its host.
fn notes(fleet: &Fleet) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(fleet.data().join("operator")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Whether somebody gets in with a password.
pub async fn logs_in(fleet: &Fleet, name: &str, password: &str) -> bool {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    let body = format!("name={name}&password={password}");
    let request = http.expect("a client").post(format!("{}/ui/login", fleet.api.url())).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.send().await.expect("an answer");
    answer
        .headers()
        .get_all("set-cookie")
        .iter()
        .any(|cookie| cookie.to_str().is_ok_and(|text| text.starts_with("sid=ss_")))
}

#[tokio::test]
async fn the_servers_host_needs_no_token_as_long_as_the_server_runs() {
    let mut fleet = Fleet::start().await;
    let token = printed(&fleet, &["workers", "create", "gpu-1"]).await;
    assert!(token.starts_with("wt_"), "{token}");
    let listed: Value = serde_json::from_str(&printed(&fleet, &["workers", "list", "--json"]).await).expect("JSON");
    assert_eq!(listed["workers"][0]["name"], "gpu-1");

    let [note] = &notes(&fleet)[..] else { panic!("{:?}", notes(&fleet)) };
    assert_eq!(std::fs::metadata(note).expect("there").permissions().mode() & 0o777, 0o600);
    let text: Value = serde_json::from_str(&std::fs::read_to_string(note).expect("readable")).expect("JSON");
    let secret = text["token"].as_str().expect("a token").to_owned();
    assert!(processes_that_mention(&secret).is_empty(), "it is in nobody's command line");
    std::fs::set_permissions(note, std::fs::Permissions::from_mode(0o644)).expect("changed");
    let refused = run(&fleet, &["workers", "list"]).await;
    assert_eq!(refused.status.code(), Some(78), "{refused:?}");
    std::fs::set_permissions(note, std::fs::Permissions::from_mode(0o600)).expect("changed");

    fleet.kill_server().await;
    let refused = run(&fleet, &["workers", "list"]).await;
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot reach a server"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(69));
    fleet.start_server().await;
    assert_eq!(printed(&fleet, &["workers", "list", "-q"]).await.lines().count(), 1);

    let (code, said) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{said}");
    assert!(notes(&fleet).is_empty(), "it goes with the server");
    assert!(!said.contains("ot_"), "no token is logged");
    let files = std::fs::read_dir(fleet.data()).expect("readable").flatten().filter(|entry| entry.path().is_file());
    for file in files {
        let bytes = std::fs::read(file.path()).expect("readable");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} holds the token", file.path().display());
    }
}

#[tokio::test]
async fn a_lost_password_is_mended_with_and_without_a_server() {
    let mut fleet = Fleet::start_embedded().await;
    let first = printed(&fleet, &["auth", "users", "create", "ada", "--role", "admin", "--generate-password"]).await;
    assert!(logs_in(&fleet, "ada", &first).await);
    let running = printed(&fleet, &["auth", "reset-password", "ada", "--generate-password"]).await;
    assert!(logs_in(&fleet, "ada", &running).await && !logs_in(&fleet, "ada", &first).await);

    fleet.stop_server().await;
    let output = run(&fleet, &["auth", "reset-password", "ada", "--generate-password"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("No server runs here"), "{output:?}");
    let stopped = String::from_utf8(output.stdout).expect("text").trim_end().to_owned();
    fleet.start_server().await;
    assert!(logs_in(&fleet, "ada", &stopped).await && !logs_in(&fleet, "ada", &running).await);

    // A server that was killed leaves its file behind, and its lock goes with it.
    fleet.kill_server().await;
    let killed = printed(&fleet, &["auth", "reset-password", "ada", "--generate-password", "-q"]).await;
    fleet.start_server().await;
    assert!(logs_in(&fleet, "ada", &killed).await);
    let trail = fleet.api.get("/api/audit?action=access.password_reset").await;
    let entries = trail["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 3, "{trail:#}");
    assert!(entries.iter().all(|entry| entry["actor"].as_str().is_some_and(|actor| actor.starts_with("host:"))));
    fleet.stop_server().await;
    assert!(printed(&fleet, &["audit", "verify"]).await.starts_with("intact"));
}

#[tokio::test]
async fn a_followed_log_goes_on_through_a_restart_and_its_end_is_the_jobs() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("trainer").await.training_with(trainers::COUNTING);
    let _agent = host.start();
    let mut follow = typed(&fleet, &["jobs", "submit", "digits-quick", "--target", "worker", "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let mut lines = BufReader::new(follow.stderr.take().expect("a pipe")).lines();
    let job = until("the job", async || {
        let jobs = fleet.api.try_get("/api/queue").await?;
        jobs["jobs"][0]["job_id"].as_str().map(str::to_owned)
    });
    let job = job.await;
    fleet.api.until_log(&job, 1_000).await;
    fleet.kill_server().await;
    // One that is back before anybody asks was never away.
    let told = async {
        while !lines.next_line().await.expect("text").expect("not its end").contains("going on when it answers") {}
    };
    tokio::time::timeout(PATIENCE, told).await.expect("a word about it");
    fleet.start_server().await;
    let output = follow.wait_with_output().await.expect("its end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout) == trainers::counted(), "every line, once");
}

#[tokio::test]
async fn a_server_with_a_key_of_its_own_is_known_on_its_host() {
    let fleet = Fleet::start_with(&[("SIMPLETUNER_SSL", "true")]).await;
    let session: Value =
        serde_json::from_str(&printed(&fleet, &["auth", "login-check", "--json"]).await).expect("JSON");
    assert!(session["base_url"].as_str().is_some_and(|url| url.starts_with("https://127.0.0.1")), "{session}");
    assert!(session["name"].as_str().is_some_and(|name| name.starts_with("host:")), "{session}");
    // Somewhere else nobody vouches for it.
    let mut stranger = command("simpletuner", fleet.path());
    stranger.args(["auth", "login-check", "--url", fleet.api.url()]).stdin(Stdio::null());
    let refused = stranger.output().await.expect("a program");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("SSL certificate verify failed"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(69));
}

#[tokio::test]
async fn readers_and_operators_may_leave_at_any_time() {
    let fleet = Fleet::start().await;
    fleet.host("gpu-1").await;
    for command in ["workers list", "workers list --json", "man", "completions bash", "--help"] {
        let pipe = format!("'{}' {command} | head -c 0; exit ${{PIPESTATUS[0]}}", program("simpletuner").display());
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &pipe]).env("SIMPLETUNER_DATA_DIR", fleet.data()).output().await.expect("bash");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !said.contains("panicked"), "{command}: {output:?}");
    }

    let job = fleet.api.submit("digits-quick").await;
    let mut follow = typed(&fleet, &["jobs", "logs", &job, "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let pid = follow.id().and_then(|id| i32::try_from(id).ok()).expect("a running program");
    until("it to listen for Ctrl-C", async || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_owned();
        (u64::from_str_radix(&caught, 16).ok()? & (1 << (Signal::SIGINT as u32 - 1)) != 0).then_some(())
    })
    .await;
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("a running program");
    assert_eq!(follow.wait().await.expect("its end").code(), Some(130));
}
