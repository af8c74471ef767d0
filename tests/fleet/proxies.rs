//! A server behind the proxies that `docs/OPERATIONS.md` has blocks for: people, scripts and agents come through them as if
//! they were not there.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::proxy::{Kind, Proxy, VISITOR};
use crate::harness::{ADMIN, Api, Fleet, Host, until};

/// More than any proxy keeps in memory, or takes unless it is told to; it comes in several requests.
const MIB: usize = 40;

/// Apache would stay away for a minute.
const SOON_AGAIN: Duration = Duration::from_secs(20);

/// Leaves a file of that size, whose name is hard to pass on, once it has waited at the gate.
const LARGE: &str = r#"
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
async fn nginx_stands_in_front_as_documented() {
    stands_in_front(Kind::Nginx).await;
}

#[tokio::test]
async fn haproxy_stands_in_front_as_documented() {
    stands_in_front(Kind::Haproxy).await;
}

#[tokio::test]
async fn apache_stands_in_front_as_documented() {
    stands_in_front(Kind::Apache).await;
}

async fn stands_in_front(kind: Kind) {
    let mut fleet = Fleet::start_with(&[("SIMPLETUNER_TRUSTED_PROXIES", "127.0.0.1")]).await;
    let proxy = Proxy::before(&fleet, kind).await;
    a_person_logs_in_over_https(&fleet, &proxy).await;
    news_comes_at_once(&fleet, &proxy).await;
    a_job_runs(&mut fleet, &proxy).await;
}

/// The form is taken as the server's own, the cookie is one for HTTPS, and the trail knows from where they came, whatever
/// they say themselves.
async fn a_person_logs_in_over_https(fleet: &Fleet, proxy: &Proxy) {
    let (origin, password) = (format!("Origin: {}", proxy.url()), format!("password={ADMIN}"));
    let made_up = ["--header", "X-Forwarded-For: 203.0.113.9", "--header", "X-Forwarded-Proto: http"];
    let form = ["--include", "--header", &origin, "--data-urlencode", &password, "/ui/login"];
    let (_, answer) = proxy.visit(&[&made_up[..], &form].concat()).await;
    let cookie = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("set-cookie: __host-sid="));
    assert!(cookie.is_some_and(|cookie| cookie.trim_end().ends_with("; Secure")), "{answer}");
    let trail = fleet.api.get("/api/audit?action=access.logged_in").await;
    assert_eq!(trail["entries"][0]["detail"]["host"], VISITOR, "{trail:#}");
}

/// An event passes while its stream goes on, whichever HTTP is spoken.
async fn news_comes_at_once(fleet: &Fleet, proxy: &Proxy) {
    let token = format!("Authorization: Bearer {ADMIN}");
    for (number, http) in ["--http1.1", "--http2"].into_iter().enumerate() {
        let log = fleet.path().join(format!("listener{http}.log"));
        let mut listener = proxy.listen(&[http, "--header", &token, "/api/events?topics=workers"], log);
        until("the stream's first event", async || listener.said().contains("data:").then_some(())).await;
        let before = listener.said();
        let worker = json!({"name": format!("news-{number}"), "worker_type": "persistent"});
        fleet.api.post("/api/admin/workers", &worker).await;
        until("the next one", async || listener.said()[before.len()..].contains("\"workers\"").then_some(())).await;
        assert!(listener.is_running(), "{}", listener.said());
    }
}

/// From its submit to its files, over a restart of the server.
async fn a_job_runs(fleet: &mut Fleet, proxy: &Proxy) {
    let host = reaching(fleet.host("gpu-1").await, proxy).training_with(LARGE);
    let agent = host.start();
    let api = Api::new(&proxy.url());
    let job = api.submit("digits-quick").await;
    api.until_log(&job, "at the gate\n".len() as u64).await;
    the_server_comes_back(fleet, proxy).await;
    api.until_heard_again(&host.worker).await;
    host.open_gate();
    let done = api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    assert_eq!(api.log(&job).await, host.trainer_log(&job, 1));
    let page = api.get(&format!("/api/queue/{job}/artifacts")).await;
    let artifact = &page["artifacts"][0];
    assert_eq!(artifact["size_bytes"], MIB << 20, "{page:#}\n{}", agent.said());
    let bytes = api.bytes(artifact["url"].as_str().expect("a path")).await;
    assert_eq!(bytes.len(), MIB << 20);
}

/// A proxy that has found it gone does not stay away for long.
async fn the_server_comes_back(fleet: &mut Fleet, proxy: &Proxy) {
    fleet.kill_server().await;
    until("the proxy to miss it", async || (!proxy.visit(&["--fail", "/healthz"]).await.0).then_some(())).await;
    fleet.start_server().await;
    let start = Instant::now();
    until("the proxy to find it", async || proxy.visit(&["--fail", "/healthz"]).await.0.then_some(())).await;
    assert!(start.elapsed() < SOON_AGAIN, "{} s", start.elapsed().as_secs());
}

fn reaching(host: Host, proxy: &Proxy) -> Host {
    host.reaching(&proxy.url()).with(("SIMPLETUNER_CA_FILE", proxy.authority().display().to_string()))
}
