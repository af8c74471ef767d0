//! The operator's commands on the server's host.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::harness::{TIMEOUT, TestFleet, command, processes_that_mention, program, trainers, wait_until};

/// A command that only knows the server's data directory.
pub fn local_command(fleet: &TestFleet, args: &[&str]) -> Command {
    let mut command = command("simpletuner", fleet.path());
    command.args(args).env("SIMPLETUNER_DATA_DIR", fleet.data()).stdin(Stdio::null());
    command
}

async fn run(fleet: &TestFleet, args: &[&str]) -> Output {
    local_command(fleet, args).output().await.expect("a program")
}

/// Returns the output of a command, which must succeed.
async fn stdout_of(fleet: &TestFleet, args: &[&str]) -> String {
    let output = run(fleet, args).await;
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Returns the endpoint files that the server has written for commands on its host.
fn endpoint_files(fleet: &TestFleet) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(fleet.data().join("operator")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Returns whether a password is accepted.
pub async fn can_sign_in(fleet: &TestFleet, name: &str, password: &str) -> bool {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build();
    let body = format!("name={name}&password={password}");
    let request = http.expect("a client").post(format!("{}/ui/login", fleet.api.url())).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let response = request.send().await.expect("a response");
    response
        .headers()
        .get_all("set-cookie")
        .iter()
        .any(|cookie| cookie.to_str().is_ok_and(|text| text.starts_with("sid=ss_")))
}

#[tokio::test]
async fn servers_host_needs_no_token_while_the_server_runs() {
    let mut fleet = TestFleet::start().await;
    let token = stdout_of(&fleet, &["workers", "create", "gpu-1"]).await;
    assert!(token.starts_with("wt_"), "{token}");
    let listed: Value = serde_json::from_str(&stdout_of(&fleet, &["workers", "list", "--json"]).await).expect("JSON");
    assert_eq!(listed["workers"][0]["name"], "gpu-1");

    let [endpoint_file] = &endpoint_files(&fleet)[..] else { panic!("{:?}", endpoint_files(&fleet)) };
    assert_eq!(std::fs::metadata(endpoint_file).expect("there").permissions().mode() & 0o777, 0o600);
    let text: Value = serde_json::from_str(&std::fs::read_to_string(endpoint_file).expect("readable")).expect("JSON");
    let secret = text["token"].as_str().expect("a token").to_owned();
    assert!(processes_that_mention(&secret).is_empty(), "no command line contains it");
    std::fs::set_permissions(endpoint_file, std::fs::Permissions::from_mode(0o644)).expect("changed");
    let rejected = run(&fleet, &["workers", "list"]).await;
    assert_eq!(rejected.status.code(), Some(78), "{rejected:?}");
    std::fs::set_permissions(endpoint_file, std::fs::Permissions::from_mode(0o600)).expect("changed");

    fleet.kill_server().await;
    let rejected = run(&fleet, &["workers", "list"]).await;
    assert!(String::from_utf8_lossy(&rejected.stderr).contains("cannot reach a server"), "{rejected:?}");
    assert_eq!(rejected.status.code(), Some(69));
    fleet.start_server().await;
    assert_eq!(stdout_of(&fleet, &["workers", "list", "-q"]).await.lines().count(), 1);

    let (code, output) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{output}");
    assert!(endpoint_files(&fleet).is_empty(), "the file is deleted when the server stops");
    assert!(!output.contains("ot_"), "no token is logged");
    let files = std::fs::read_dir(fleet.data()).expect("readable").flatten().filter(|entry| entry.path().is_file());
    for file in files {
        let bytes = std::fs::read(file.path()).expect("readable");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{} contains the token", file.path().display());
    }
}

#[tokio::test]
async fn lost_password_is_reset_with_and_without_a_server() {
    let mut fleet = TestFleet::start_embedded().await;
    let first = stdout_of(&fleet, &["auth", "users", "create", "ada", "--role", "admin", "--generate-password"]).await;
    assert!(can_sign_in(&fleet, "ada", &first).await);
    let running = stdout_of(&fleet, &["auth", "reset-password", "ada", "--generate-password"]).await;
    assert!(can_sign_in(&fleet, "ada", &running).await && !can_sign_in(&fleet, "ada", &first).await);

    fleet.stop_server().await;
    let output = run(&fleet, &["auth", "reset-password", "ada", "--generate-password"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("No server runs on this host"), "{output:?}");
    let stopped = String::from_utf8(output.stdout).expect("text").trim_end().to_owned();
    fleet.start_server().await;
    assert!(can_sign_in(&fleet, "ada", &stopped).await && !can_sign_in(&fleet, "ada", &running).await);

    // A killed server leaves its file behind, but not its lock.
    fleet.kill_server().await;
    let killed = stdout_of(&fleet, &["auth", "reset-password", "ada", "--generate-password", "-q"]).await;
    fleet.start_server().await;
    assert!(can_sign_in(&fleet, "ada", &killed).await);
    let audit_log = fleet.api.get("/api/audit?action=access.password_reset").await;
    let entries = audit_log["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 3, "{audit_log:#}");
    assert!(entries.iter().all(|entry| entry["actor"].as_str().is_some_and(|actor| actor.starts_with("host:"))));
    fleet.stop_server().await;
    assert!(stdout_of(&fleet, &["audit", "verify"]).await.starts_with("intact"));
}

#[tokio::test]
async fn followed_log_survives_a_restart_and_ends_with_the_job() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("trainer").await.with_python_trainer(trainers::COUNTING);
    let _agent = host.start();
    let mut follow = local_command(&fleet, &["jobs", "submit", "digits-quick", "--target", "worker", "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let mut lines = BufReader::new(follow.stderr.take().expect("a pipe")).lines();
    let job = wait_until("the job", async || {
        let jobs = fleet.api.try_get("/api/queue").await?;
        jobs["jobs"][0]["job_id"].as_str().map(str::to_owned)
    });
    let job = job.await;
    fleet.api.wait_for_log(&job, 1_000).await;
    fleet.kill_server().await;
    // A server that is back before the next request was never noticed as down.
    let notice =
        async { while !lines.next_line().await.expect("text").expect("not its end").contains("; retrying --") {} };
    tokio::time::timeout(TIMEOUT, notice).await.expect("a message about the lost connection");
    fleet.start_server().await;
    let output = follow.wait_with_output().await.expect("its end");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout) == trainers::counting_output(), "every line, once");
}

#[tokio::test]
async fn self_signed_server_is_trusted_on_its_host() {
    let fleet = TestFleet::start_with(&[("SIMPLETUNER_SSL", "true")]).await;
    let session: Value =
        serde_json::from_str(&stdout_of(&fleet, &["auth", "login-check", "--json"]).await).expect("JSON");
    assert!(session["base_url"].as_str().is_some_and(|url| url.starts_with("https://127.0.0.1")), "{session}");
    assert!(session["name"].as_str().is_some_and(|name| name.starts_with("host:")), "{session}");
    // Elsewhere, its certificate is not trusted.
    let mut without_ca = command("simpletuner", fleet.path());
    without_ca.args(["auth", "login-check", "--url", fleet.api.url()]).stdin(Stdio::null());
    let rejected = without_ca.output().await.expect("a program");
    assert!(String::from_utf8_lossy(&rejected.stderr).contains("SSL certificate verify failed"), "{rejected:?}");
    assert_eq!(rejected.status.code(), Some(69));
}

#[tokio::test]
async fn closed_output_and_interrupts_are_handled() {
    let fleet = TestFleet::start().await;
    fleet.add_host("gpu-1").await;
    for command in ["workers list", "workers list --json", "man", "completions bash", "--help"] {
        let pipe = format!("'{}' {command} | head -c 0; exit ${{PIPESTATUS[0]}}", program("simpletuner").display());
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &pipe]).env("SIMPLETUNER_DATA_DIR", fleet.data()).output().await.expect("bash");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !stderr.contains("panicked"), "{command}: {output:?}");
    }

    let job = fleet.api.submit("digits-quick").await;
    let mut follow = local_command(&fleet, &["jobs", "logs", &job, "--follow"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let pid = follow.id().and_then(|id| i32::try_from(id).ok()).expect("a running program");
    wait_until("it to listen for Ctrl-C", async || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?.trim().to_owned();
        (u64::from_str_radix(&caught, 16).ok()? & (1 << (Signal::SIGINT as u32 - 1)) != 0).then_some(())
    })
    .await;
    kill(Pid::from_raw(pid), Signal::SIGINT).expect("a running program");
    assert_eq!(follow.wait().await.expect("its end").code(), Some(130));
}

#[tokio::test]
async fn an_empty_variable_of_the_server_counts_as_unset() {
    let home = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let show_config = async |more: &[String]| -> Value {
        let mut command = command("simpletuner", home.path());
        command.args(["config", "show", "--json"]).envs(more.iter().map(|name| (name, "")));
        let output = command.output().await.expect("a program");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let unset = show_config(&[]).await;
    let settings = unset["settings"].as_array().expect("a list").iter();
    let names: Vec<String> = settings.filter_map(|setting| setting["variable"].as_str()).map(str::to_owned).collect();
    assert!(names.len() > 20 && names.iter().any(|name| name == "SIMPLETUNER_PORT"), "{names:?}");
    let empty = show_config(&names).await;
    let values = |config: &Value| -> Vec<(Value, Value, Value)> {
        let settings = config["settings"].as_array().expect("a list").iter();
        settings.map(|setting| (setting["flag"].clone(), setting["value"].clone(), setting["source"].clone())).collect()
    };
    assert_eq!(values(&empty), values(&unset));

    // A server starts with all of them, except those that this test sets, and logs as usual.
    let empty: Vec<String> = names.into_iter().chain(["SIMPLETUNER_LOG".to_owned()]).collect();
    let mut fleet = TestFleet::start_with_change(&[], move |command| {
        let variables: Vec<OsString> = command.as_std().get_envs().map(|(name, _)| name.to_owned()).collect();
        for name in empty.iter().filter(|name| !variables.iter().any(|variable| variable == name.as_str())) {
            command.env(name, "");
        }
    })
    .await;
    assert!(fleet.api.get("/api/queue").await["jobs"].is_array());
    let addresses = async || (fleet.server().output().matches("listening on ").count() == 2).then_some(());
    wait_until("the address in the log of each start", addresses).await;
}
