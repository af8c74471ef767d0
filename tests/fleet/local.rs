//! The orchestrator's own host as a worker.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{TestFleet, wait_until};

/// A trainer that runs until a gate file exists in its home, which is the server's.
const AT_THE_GATE: &str = r#"sh -c 'until test -e "$HOME/gate"; do sleep 0.05; done'"#;

/// Returns the worker of this host.
async fn local_worker(fleet: &TestFleet) -> String {
    wait_until("the local worker", async || {
        let workers = fleet.api.try_get("/api/admin/workers?status=idle").await?;
        let local = workers["workers"].as_array()?.iter().find(|worker| worker["local"] == true)?.clone();
        Some(local["id"].as_str()?.to_owned())
    })
    .await
}

#[tokio::test]
async fn local_job_survives_a_server_restart() {
    let mut fleet = TestFleet::start_with(&[
        ("SIMPLETUNER_LOCAL", "on"),
        ("SIMPLETUNER_LOCAL_SHARES_USER", "true"),
        ("SIMPLETUNER_SANDBOX_MIN", "none"),
        ("SIMPLETUNER_TRAINER", AT_THE_GATE),
    ])
    .await;
    let local = local_worker(&fleet).await;
    let job = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "local"})).await;
    fleet.api.wait_for_job(&job, "running").await;
    let remote = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "worker"})).await;
    let explanation = fleet.api.get(&format!("/api/queue/{remote}/explain")).await;
    assert_eq!(
        (&explanation["verdict"], &explanation["workers"][0]["blockers"][0]["code"]),
        (&"unsatisfiable".into(), &"wrong_target".into())
    );

    let (code, output) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{output}");
    fleet.start_server().await;
    fleet.api.wait_for_contact(&local).await;
    fleet.kill_server().await;
    fleet.start_server().await;
    fleet.api.wait_for_contact(&local).await;
    std::fs::write(fleet.path().join("gate"), "").expect("a gate");
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&1.into(), &local.into()), "{done:#}");
    assert_eq!(fleet.api.job(&remote).await["status"], "queued");
}

/// Tries to read all files that the test names, and the server's process.
const FILE_READER: &str = r#"sh -c '
dir=${CONFIG_PATH%/*}
echo "runs as $(id -u)"
while read -r file; do
    if cat "$file" >/dev/null 2>&1; then echo "reached $file"; else echo "blocked $file"; fi
    if echo x 2>/dev/null >>"$file"; then echo "reached $file to write"; fi
done <"$dir/targets.txt"
read -r server <"$dir/server.txt"
for part in environ mem maps fd/3 root/etc/hostname; do
    if head -c 1 "/proc/$server/$part" >/dev/null 2>&1; then echo "reached /proc of the server: $part"; fi
done
if kill -0 "$server" 2>/dev/null; then echo "reached the server with a signal"; fi
echo tried'"#;

/// Lists the server's files, and those beside its data directory. The log is the output that the test captures.
fn files_of_the_server(fleet: &TestFleet) -> Vec<PathBuf> {
    fn below(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable")) {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() && entry.file_name() != "local-agent" {
                below(&entry.path(), found);
            } else if kind.is_file() && entry.file_name() != "server.log" {
                found.push(entry.path());
            }
        }
    }
    let mut found = Vec::new();
    below(fleet.path(), &mut found);
    found
}

/// Returns what a trainer on the server's own host could read of the server.
async fn reached_by_a_local_trainer(settings: &[(&'static str, &str)]) -> (String, Vec<String>) {
    let local = [("SIMPLETUNER_LOCAL", "on"), ("SIMPLETUNER_TRAINER", FILE_READER)];
    let mut fleet = TestFleet::start_embedded_with(&[&local, settings].concat()).await;
    local_worker(&fleet).await;
    // The key is stored beside the data.
    fleet.api.put("/api/secrets/HF_TOKEN", &json!({"value": "hf_0123456789", "shared": true})).await;
    let files = files_of_the_server(&fleet);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    for expected in ["/operator/", ".db", ".key", "audit"] {
        assert!(names.iter().any(|name| name.contains(expected)), "no file {expected} to try: {names:#?}");
    }
    let server = fleet.server().pid();
    let files = json!({"files": {
        "config.json": "{}", "targets.txt": names.join("\n") + "\n", "server.txt": format!("{server}\n"),
    }});
    fleet.api.put("/api/configs/thief", &files).await;
    let job = fleet.api.submit_with(&json!({"config_name": "thief", "target": "local"})).await;
    fleet.api.wait_for_job(&job, "completed").await;
    let log = fleet.api.log(&job).await;
    // Its agent stops with it.
    fleet.stop_server().await;
    assert!(log.ends_with("tried\n") && log.matches("blocked ").count() == names.len(), "{log}");
    let user = log.lines().next().unwrap_or_default().to_owned();
    (user, log.lines().filter(|line| line.starts_with("reached")).map(str::to_owned).collect())
}

#[tokio::test]
async fn local_trainer_of_the_servers_user_cannot_access_the_server() {
    for level in ["files", "full"] {
        let settings = [("SIMPLETUNER_LOCAL_SHARES_USER", "true"), ("SIMPLETUNER_SANDBOX_MIN", level)];
        let (_, reached) = reached_by_a_local_trainer(&settings).await;
        assert_eq!(reached, [""; 0], "at level {level}");
    }
}

/// Even without a sandbox.
#[tokio::test]
async fn local_trainer_of_another_user_cannot_access_the_server() {
    if !nix::unistd::geteuid().is_root() {
        return; // only root can become another user
    }
    let nobody = nix::unistd::User::from_name("nobody").expect("readable").expect("every Linux has one");
    let work = tempfile::TempDir::with_prefix("simpletuner-local-").expect("a temporary directory");
    std::os::unix::fs::chown(work.path(), Some(nobody.uid.as_raw()), None).expect("root can");
    for level in ["none", "full"] {
        let work_dir = work.path().join(level).display().to_string();
        let settings = [
            ("SIMPLETUNER_LOCAL_USER", "nobody"),
            ("SIMPLETUNER_LOCAL_WORK_DIR", &work_dir),
            ("SIMPLETUNER_SANDBOX_MIN", level),
        ];
        let (user, reached) = reached_by_a_local_trainer(&settings).await;
        assert_eq!((user, reached), (format!("runs as {}", nobody.uid), Vec::new()), "at level {level}");
    }
}
