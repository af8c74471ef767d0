//! A server behind the reverse proxies documented in `docs/OPERATIONS.md`: browsers, scripts and agents work as without
//! them.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::proxy::{CLIENT_ADDRESS, ProxyKind, ReverseProxy};
use crate::harness::{ADMIN, Api, TestFleet, WorkerHost, wait_until};

/// More than any proxy buffers in memory, or accepts by default; it is sent in several requests.
const MIB: usize = 40;

/// Apache's default would be a minute.
const MAX_RECOVERY_TIME: Duration = Duration::from_secs(20);

/// Creates a file of that size, with a name that is hard to forward, after waiting at the gate.
const LARGE_FILE_TRAINER: &str = r#"
import json, os, pathlib, time
meet = pathlib.Path(os.environ["MEET"])
print("at the gate", flush=True)
while not (meet / "gate").exists():
    time.sleep(0.02)
output = pathlib.Path(json.loads(pathlib.Path(os.environ["CONFIG_PATH"]).read_text())["--output_dir"])
output.mkdir(parents=True, exist_ok=True)
with (output / "größe 100%2F+1.bin").open("wb") as file:
    for _ in range(40):
        file.write(os.urandom(1 << 20))
"#;

#[tokio::test]
async fn documented_nginx_configuration_works() {
    assert_works_behind(ProxyKind::Nginx).await;
}

#[tokio::test]
async fn documented_haproxy_configuration_works() {
    assert_works_behind(ProxyKind::Haproxy).await;
}

#[tokio::test]
async fn documented_apache_configuration_works() {
    assert_works_behind(ProxyKind::Apache).await;
}

async fn assert_works_behind(kind: ProxyKind) {
    let mut fleet = TestFleet::start_with(&[("SIMPLETUNER_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let proxy = ReverseProxy::start(&fleet, kind).await;
    assert_browser_sign_in_over_https(&fleet, &proxy).await;
    assert_live_changes(&fleet, &proxy).await;
    run_job(&mut fleet, &proxy).await;
}

/// The form passes the origin check, the cookie is for HTTPS, and the audit log has the client's address, whatever
/// headers the client sends.
async fn assert_browser_sign_in_over_https(fleet: &TestFleet, proxy: &ReverseProxy) {
    let (origin, password) = (format!("Origin: {}", proxy.url()), format!("password={ADMIN}"));
    let forged = ["--header", "X-Forwarded-For: 203.0.113.9", "--header", "X-Forwarded-Proto: http"];
    let form = ["--include", "--header", &origin, "--data-urlencode", &password, "/ui/login"];
    let (_, response) = proxy.request(&[&forged[..], &form].concat()).await;
    let cookie = response.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie: __host-sid="));
    assert!(cookie.is_some_and(|cookie| cookie.trim_end().ends_with("; Secure")), "{response}");
    let audit_log = fleet.api.get("/api/audit?action=access.logged_in").await;
    assert_eq!(audit_log["entries"][0]["detail"]["host"], CLIENT_ADDRESS, "{audit_log:#}");
}

/// Events pass through an open stream immediately, with all versions of HTTP.
async fn assert_live_changes(fleet: &TestFleet, proxy: &ReverseProxy) {
    let token = format!("Authorization: Bearer {ADMIN}");
    for (number, http) in ["--http1.1", "--http2"].into_iter().enumerate() {
        let log = fleet.path().join(format!("listener{http}.log"));
        let mut listener = proxy.request_in_background(&[http, "--header", &token, "/api/events?topics=workers"], log);
        wait_until("the stream's first event", async || listener.output().contains("data:").then_some(())).await;
        let before = listener.output();
        let worker = json!({"name": format!("news-{number}"), "worker_type": "persistent"});
        fleet.api.post("/api/admin/workers", &worker).await;
        wait_until("the next one", async || listener.output()[before.len()..].contains("\"workers\"").then_some(()))
            .await;
        assert!(listener.is_running(), "{}", listener.output());
    }
}

/// From submit to files, across a restart of the server.
async fn run_job(fleet: &mut TestFleet, proxy: &ReverseProxy) {
    let host = behind_proxy(fleet.add_host("gpu-1").await, proxy).with_python_trainer(LARGE_FILE_TRAINER);
    let agent = host.start();
    let api = Api::new(&proxy.url());
    let job = api.submit("digits-quick").await;
    api.wait_for_log(&job, "at the gate\n".len() as u64).await;
    restart_server(fleet, proxy).await;
    api.wait_for_contact(&host.worker).await;
    host.open_gate();
    let done = api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    assert_eq!(api.log(&job).await, host.trainer_log(&job, 1));
    let page = api.get(&format!("/api/queue/{job}/artifacts")).await;
    let artifact = &page["artifacts"][0];
    assert_eq!(artifact["size_bytes"], MIB << 20, "{page:#}\n{}", agent.output());
    let bytes = api.get_bytes(artifact["url"].as_str().expect("a path")).await;
    assert_eq!(bytes.len(), MIB << 20);
}

/// The proxy retries soon after the server was down.
async fn restart_server(fleet: &mut TestFleet, proxy: &ReverseProxy) {
    fleet.kill_server().await;
    wait_until("the proxy to report that the server is down", async || {
        (!proxy.request(&["--fail", "/healthz"]).await.0).then_some(())
    })
    .await;
    fleet.start_server().await;
    let start = Instant::now();
    wait_until("the proxy to reach the server", async || proxy.request(&["--fail", "/healthz"]).await.0.then_some(()))
        .await;
    assert!(start.elapsed() < MAX_RECOVERY_TIME, "{} s", start.elapsed().as_secs());
}

fn behind_proxy(host: WorkerHost, proxy: &ReverseProxy) -> WorkerHost {
    host.with_url(&proxy.url()).with_variable(("SIMPLETUNER_CA_FILE", proxy.ca_certificate().display().to_string()))
}
