//! Plants secrets everywhere, then searches all output for them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::Signal;
use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

use crate::harness::{ADMIN, Program, TestFleet, command, processes_that_mention, repository, wait_until};

const PASSWORD: &str = "canary-password-0ne";
const WRONG_SECRET: &str = "canary-wrong-secret";
/// No valid name, so that it is not recorded as an attempted user name.
const TYPED_PASSWORD: &str = "Canary-typed-into-the-wrong-field";
const URL_SECRET: &str = "canary-in-an-address";
const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];
const HUB_TOKEN: &str = "canary-hub-token";
const DATABASE_PASSWORD: &str = "canary-database-password";

/// Writes its environment to a file, waits, and prints a word.
const ENVIRONMENT_RECORDER: &str = r#"
import os, pathlib, time
home = pathlib.Path(os.environ["MEET"])
(home / "environment").write_text("\n".join(f"{name}={value}" for name, value in os.environ.items()))
while not (home / "gate").exists():
    time.sleep(0.02)
print("done", flush=True)
"#;

/// The planted secrets, by name.
#[derive(Default)]
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn plant(&mut self, name: &'static str, secret: impl Into<String>) {
        let secret = secret.into();
        assert!(secret.len() >= 16, "{name} is too short to be searched for");
        self.0.push((name, secret));
    }

    /// Fails if a text contains any of them, except these.
    fn assert_not_in(&self, source: &str, text: &str, except: &[&str]) {
        for (name, secret) in self.0.iter().filter(|(name, _)| !except.contains(name)) {
            assert!(!text.contains(secret.as_str()), "{source} contains {name}: {}", line_with(text, secret));
        }
    }
}

/// Returns the line that contains the secret.
fn line_with<'t>(text: &'t str, secret: &str) -> &'t str {
    text.lines().find(|line| line.contains(secret)).unwrap_or_default()
}

/// Returns head and body of a response as text.
async fn send(http: &Client, method: Method, url: &str, headers: &[(&str, &str)], body: &str) -> (String, HeaderMap) {
    let request =
        headers.iter().fold(http.request(method, url), |request, (name, value)| request.header(*name, *value));
    let response = request.body(body.to_owned()).send().await.expect("a response");
    let (mut text, headers) = (format!("{} {:?}\n", response.status(), response.headers()), response.headers().clone());
    let _ = write!(text, "{}", String::from_utf8_lossy(&response.bytes().await.expect("a body")));
    (text, headers)
}

/// Returns all files below a directory, except these.
fn contents(directory: &Path, except: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if except.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            found.extend(contents(&path, except));
        } else if let Ok(bytes) = fs::read(&path) {
            found.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    found
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("text, not {value}"))
}

/// Successful responses, rejections and error pages, for requests with secrets in places where users put them.
async fn all_responses(http: &Client, base: &str, job: &str, worker: &str, cookie: &str) -> String {
    let (admin, wrong) = (format!("Bearer {ADMIN}"), format!("Bearer {WRONG_SECRET}"));
    let (good, bad) = ([("authorization", admin.as_str())], [("authorization", wrong.as_str())]);
    let with_cookie = [("cookie", cookie)];
    let mut responses = String::new();
    let paths = [
        "/api/session",
        "/api/queue",
        "/api/configs",
        "/api/configs/digits-quick",
        "/api/admin/workers",
        "/api/admin/users",
        "/api/account/tokens",
        "/api/account/sessions",
        "/api/audit?limit=1000",
        "/",
        "/jobs",
        "/admin/workers",
        "/admin/workers/new",
        "/account",
        "/train",
        "/login",
        "/no/such/page",
        "/api/no/such/route",
        &format!("/api/queue/{job}"),
        &format!("/api/queue/{job}/events"),
        &format!("/api/queue/{job}/logs"),
        &format!("/jobs/{job}"),
        &format!("/admin/workers/{worker}"),
        &format!("/api/admin/workers/{worker}"),
        "/readyz",
        "/healthz",
    ]
    .map(str::to_owned);
    for path in &paths {
        for headers in [&good[..], &bad[..], &with_cookie[..], &[][..]] {
            let separator = if path.contains('?') { '&' } else { '?' };
            responses +=
                &send(http, Method::GET, &format!("{base}{path}{separator}token={URL_SECRET}"), headers, "").await.0;
        }
    }
    for (path, body) in [
        ("/ui/login", format!("name=ada&password={WRONG_SECRET}")),
        ("/ui/login", format!("name={TYPED_PASSWORD}&password=x")),
        ("/ui/login", format!("password={WRONG_SECRET}")),
        ("/ui/setup", format!("code={WRONG_SECRET}&name=eve&password={WRONG_SECRET}")),
    ] {
        responses += &send(http, Method::POST, &format!("{base}{path}"), &FORM, &body).await.0;
    }
    for (name, path) in [
        ("x-worker-token", "/api/workers/register"),
        ("x-worker-token", "/api/workers/heartbeat"),
        ("x-upload-token", &*format!("/api/workers/job/{job}/status")),
        ("x-api-key", "/api/queue/submit"),
    ] {
        responses += &send(http, Method::POST, &format!("{base}{path}"), &[(name, WRONG_SECRET)], "{").await.0;
    }
    responses
}

#[tokio::test]
async fn no_output_contains_a_secret() {
    let settings = [("SIMPLETUNER_SSL", "true"), ("SIMPLETUNER_LOG", "trace")];
    let mut fleet = TestFleet::start_embedded_with(&settings).await;
    let base = fleet.api.url().to_owned();
    let http = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let http = http.tls_danger_accept_invalid_certs(true).build().expect("a client");
    let mut secrets = Secrets::default();
    secrets.plant("the bootstrap token", ADMIN);
    secrets.plant("a wrong secret", WRONG_SECRET);
    secrets.plant("a secret in an address", URL_SECRET);
    secrets.plant("a password in the field of the name", TYPED_PASSWORD);
    secrets.plant("the hub's token", HUB_TOKEN);

    // Users: a password, a session, an API token.
    let ada = json!({"name": "ada", "role": "admin", "password": PASSWORD});
    fleet.api.post("/api/admin/users", &ada).await;
    secrets.plant("a password", PASSWORD);
    let form = format!("name=ada&password={PASSWORD}");
    let (_, headers) = send(&http, Method::POST, &format!("{base}/ui/login"), &FORM, &form).await;
    let cookie = headers[SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a pair").to_owned();
    secrets.plant("a session", cookie.split_once('=').expect("a value").1);
    let with_cookie = [("cookie", cookie.as_str())];
    let token =
        send(&http, Method::POST, &format!("{base}/api/account/tokens"), &with_cookie, r#"{"name": "ci"}"#).await.0;
    let token: Value = serde_json::from_str(token.split_once('\n').expect("a body").1).expect("JSON");
    secrets.plant("an API token", text(&token["secret"]));
    // A second factor: the app's key and the recovery codes.
    let totp = async |path: &str, body: &str| {
        let response = send(&http, Method::POST, &format!("{base}/api/account/totp{path}"), &with_cookie, body).await.0;
        serde_json::from_str::<Value>(response.split_once('\n').expect("a body").1).expect("JSON")
    };
    let key = text(&totp("", "{}").await["secret"]).to_owned();
    let app = Secret::try_from_base32(&key).expect("base 32");
    let code = Builder::new().with_secret(app).build().expect("a key").generate_current().to_string();
    let codes = totp("/confirm", &json!({"code": code}).to_string()).await;
    secrets.plant("the key of an authenticator app", key);
    secrets.plant("a recovery code", text(&codes["recovery_codes"][0]));

    // Workers: a token and its successor, a job token, and the agent's secrets for trainers.
    let host = fleet.add_host("discreet").await.with_python_trainer(ENVIRONMENT_RECORDER);
    secrets.plant("a worker's first token", &*host.token);
    let rotated = fleet.api.post(&format!("/api/admin/workers/{}/token", host.worker), &json!({})).await;
    let host = host.with_token(text(&rotated["token"]));
    secrets.plant("a worker's token", &*host.token);
    let mut agent = command("simpletuner-worker", host.home());
    agent.env("HF_TOKEN", HUB_TOKEN).args(["--verbose", "--persistent", "--ssl-no-verify"]);
    agent.args(["--orchestrator-url", host.url(), "--worker-token", &host.token]);
    let agent = host.start_command(agent);
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    let environment = wait_until("the trainer's environment file", async || host.trainer_file("environment")).await;
    let upload = environment.lines().find_map(|line| line.strip_prefix("SIMPLETUNER_UPLOAD_TOKEN="));
    secrets.plant("a job's token", upload.expect("a job token"));
    secrets.assert_not_in("the trainer's environment", &environment, &["a job's token", "the hub's token"]);

    // A line of the certificate's key.
    let key = contents(&fleet.data().join("tls"), &[]).into_iter().find(|(_, text)| text.contains("PRIVATE KEY"));
    secrets.plant("the server's key", key.expect("a key").1.lines().nth(1).expect("a line"));

    // Running processes show nothing in the process list.
    let running = processes_that_mention(&fleet.path().to_string_lossy());
    assert!(running.len() >= 3, "server, agent and trainer at least: {running:?}");
    for (_, command_line) in &running {
        secrets.assert_not_in("the list of processes", command_line, &[]);
    }

    let responses = all_responses(&http, &base, &job, &host.worker, &cookie).await;
    // A page links to its own URL.
    secrets.assert_not_in("a response", &responses, &["a secret in an address"]);

    host.open_gate();
    fleet.api.wait_for_job(&job, "completed").await;
    secrets.assert_not_in("the agent's log", &agent.output(), &[]);
    let (_, server_log) = fleet.stop_server().await;
    assert!(server_log.contains("TRACE") || server_log.contains("DEBUG"), "the log is not verbose");
    secrets.assert_not_in("the server's log", &server_log, &[]);
    // Stored files: the key has its own file, and configurations and logs contain what users wrote.
    for (path, content) in contents(&fleet.data(), &["tls"]) {
        secrets.assert_not_in(&path, &content, &[]);
    }
    let mut export = command("simpletuner", fleet.path());
    export.args(["audit", "export", "--data-dir"]).arg(fleet.data());
    let exported = export.output().await.expect("it runs");
    assert!(exported.status.success() && !exported.stdout.is_empty(), "{exported:?}");
    secrets.assert_not_in("the export of the audit log", &String::from_utf8_lossy(&exported.stdout), &[]);
}

#[tokio::test]
async fn setup_code_is_printed_once_and_stored_nowhere() {
    let home = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let mut server = command("simpletuner", home.path());
    server.args(["server", "--port", "0", "--verbose", "--data-dir"]).arg(home.path().join("data"));
    server.env("SIMPLETUNER_LOCAL", "off").env("SIMPLETUNER_LOG", "trace");
    let mut server = Program::start(server, home.path().join("server.log"));
    let base = wait_until("the server's address", async || server.address()).await;
    let output = server.output();
    let code = output.split_once("/login?setup=").expect("a code").1;
    let code = code.split_whitespace().next().expect("a code").to_owned();
    let mut secrets = Secrets::default();
    secrets.plant("the setup code", &*code);
    secrets.plant("a password", PASSWORD);

    let http = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let mut responses = String::new();
    // With an invalid name, then successfully, then again.
    for name in ["Not%20a%20name", "ada", "eve"] {
        let form = format!("code={code}&name={name}&password={PASSWORD}");
        responses += &send(&http, Method::POST, &format!("{base}/ui/setup"), &FORM, &form).await.0;
        responses += &send(&http, Method::GET, &format!("{base}/login"), &[], "").await.0;
    }
    assert_eq!(responses.matches("sid=ss_").count(), 1, "one of them was accepted: {responses}");
    secrets.assert_not_in("a response", &responses, &[]);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.wait().await, Some(0));
    assert_eq!(server.output().matches(&code).count(), 1, "{}", server.output());
    secrets.assert_not_in("the server's log", &server.output(), &["the setup code"]);
    for (path, content) in contents(&home.path().join("data"), &[]) {
        secrets.assert_not_in(&path, &content, &[]);
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path} can be read by others");
    }
}

#[tokio::test]
async fn failed_start_prints_no_secret() {
    let home = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let mut secrets = Secrets::default();
    secrets.plant("the database's password", DATABASE_PASSWORD);
    secrets.plant("the bootstrap token", ADMIN);
    let addresses = [
        format!("postgres://simpletuner:{DATABASE_PASSWORD}@127.0.0.1:1/simpletuner"),
        format!("postgres://simpletuner:{DATABASE_PASSWORD}@[not-an-address/x"),
        format!("postgres://simpletuner:{DATABASE_PASSWORD}@127.0.0.1:no-port/simpletuner"),
    ];
    for (number, address) in addresses.iter().enumerate() {
        let mut server = command("simpletuner", home.path());
        server.args(["server", "--port", "0", "--verbose", "--configs-dir"]).arg(repository("examples/configs"));
        server.env("SIMPLETUNER_DATABASE_URL", address).env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN);
        server.env("SIMPLETUNER_LOG", "trace");
        let mut server = Program::start(server, home.path().join(format!("server-{number}.log")));
        assert_ne!(server.wait().await, Some(0), "{}", server.output());
        secrets.assert_not_in("a server that cannot start", &server.output(), &[]);
    }
    for args in [&["server", "--bootstrap-admin-token"][..], &["server", "--no-such-flag"][..]] {
        let mut server = command("simpletuner", home.path());
        server
            .args(args)
            .env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN)
            .env("SIMPLETUNER_DATABASE_URL", &addresses[0]);
        let output = server.output().await.expect("it runs");
        let output = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        secrets.assert_not_in("wrong usage", &output, &[]);
    }
    let mut help = command("simpletuner", home.path());
    help.args(["server", "--help"]).env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN);
    let help = help.env("SIMPLETUNER_DATABASE_URL", &addresses[0]).output().await.expect("it runs");
    secrets.assert_not_in("the help", &String::from_utf8_lossy(&help.stdout), &[]);
}
