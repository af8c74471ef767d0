//! The methods to start a new worker's agent: complete texts with this server's address and our files. They pass the
//! token in a file or environment variable, never in an address or on a command line.

use app::protocol::workers::CreatedWorker;
use app::ui::flash::{StartMethod, StartMethodKind};

use crate::http::edge::server_address::ServerAddress;

const SYSTEMD_UNIT: &str = include_str!("../../../../deploy/systemd/simpletuner-worker.service");
const COMMON_SCRIPT: &str = include_str!("../../../../deploy/start/common.sh");
const RUNPOD_SCRIPT: &str = include_str!("../../../../deploy/start/runpod.sh");
const VAST_SCRIPT: &str = include_str!("../../../../deploy/start/vast.sh");

/// Returns all methods.
pub fn start_methods(created: &CreatedWorker, persistent: bool, address: &ServerAddress) -> Vec<StartMethod> {
    let token = &created.token;
    let method = |kind, text: String| StartMethod { kind, text };
    let settings = agent_settings(persistent, address);
    vec![
        method(StartMethodKind::Shell, created.connection_command.clone()),
        method(StartMethodKind::Systemd, systemd_script(token, &settings)),
        method(StartMethodKind::Docker, docker_script(token, persistent, address)),
        method(StartMethodKind::Runpod, cloud_script(RUNPOD_SCRIPT, &settings)),
        method(StartMethodKind::Vast, cloud_script(VAST_SCRIPT, &settings)),
        method(StartMethodKind::Environment, format!("{}\nSIMPLETUNER_WORKER_TOKEN={token}", settings.join("\n"))),
    ]
}

/// Returns the agent's settings without its token. No value contains spaces or quotes.
fn agent_settings(persistent: bool, address: &ServerAddress) -> Vec<String> {
    let mut lines = vec![format!("SIMPLETUNER_ORCHESTRATOR_URL={}", address.base_url)];
    lines.extend(address.fingerprint.map(|key| format!("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT={key}")));
    lines.push(format!("SIMPLETUNER_WORKER_PERSISTENT={persistent}"));
    lines
}

/// Returns a shell command that writes a file, without its text on a command line.
fn heredoc(path: &str, text: &str) -> String {
    format!("cat >{path} <<'END'\n{}\nEND", text.trim_end())
}

fn systemd_script(token: &str, settings: &[String]) -> String {
    let steps = [
        "# As root, in the directory that has the program simpletuner-worker.".to_owned(),
        "install -m 755 simpletuner-worker /usr/local/bin/".to_owned(),
        "id simpletuner >/dev/null 2>&1 || useradd --system --create-home --groups video,render simpletuner".to_owned(),
        "install -d -m 755 /etc/simpletuner".to_owned(),
        "install -m 600 /dev/null /etc/simpletuner/worker-token".to_owned(),
        heredoc("/etc/simpletuner/worker-token", token),
        heredoc("/etc/simpletuner/worker.env", &settings.join("\n")),
        heredoc("/etc/systemd/system/simpletuner-worker.service", SYSTEMD_UNIT),
        "systemctl daemon-reload && systemctl enable --now simpletuner-worker".to_owned(),
        "systemctl status simpletuner-worker".to_owned(),
    ];
    steps.join("\n")
}

fn docker_script(token: &str, persistent: bool, address: &ServerAddress) -> String {
    let pin = address
        .fingerprint
        .map(|key| format!("  -e SIMPLETUNER_ORCHESTRATOR_FINGERPRINT={key} \\\n"))
        .unwrap_or_default();
    let (restart, flag) = if persistent { ("unless-stopped", " --persistent") } else { ("no", "") };
    let file = heredoc("worker-token", token);
    let url = &address.base_url;
    format!(
        "# The image comes from deploy/docker/Dockerfile.worker, on one of yours that can train.\n\
         install -m 600 /dev/null worker-token\n\
         {file}\n\
         docker run -d --restart {restart} --gpus all --shm-size 8g --stop-timeout 60 \\\n  \
           -e SIMPLETUNER_ORCHESTRATOR_URL={url} \\\n\
         {pin}  \
           -e SIMPLETUNER_WORKER_TOKEN_FILE=/run/secrets/worker-token \\\n  \
           -v \"$PWD/worker-token:/run/secrets/worker-token:ro\" \\\n  \
           -v simpletuner-worker:/var/lib/simpletuner-worker simpletuner-worker{flag}"
    )
}

/// Returns a start script that needs no other file. The provider stores the token as a secret.
fn cloud_script(script: &str, settings: &[String]) -> String {
    let exports = settings.iter().map(|line| format!("export {line}")).collect::<Vec<_>>().join("\n");
    let common = COMMON_SCRIPT.trim_start_matches("# shellcheck shell=sh\n");
    let body = script.replace(". \"$(dirname \"$0\")/common.sh\"\n", &format!("\n{exports}\n\n{common}"));
    body.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use app::domain::ids::WorkerId;
    use app::domain::time::Timestamp;

    use super::*;

    fn all_methods(persistent: bool) -> Vec<StartMethod> {
        let fingerprint = format!("sha256:{}", "ab".repeat(32)).parse().ok();
        let address = ServerAddress { base_url: "https://gpu.example:8001".to_owned(), fingerprint };
        let created = CreatedWorker {
            worker_id: WorkerId::new(Timestamp(1), [1; 10]),
            token: "wt_secret".to_owned(),
            name: "it's".to_owned(),
            token_unused_ends_at: None,
            connection_command: "SIMPLETUNER_WORKER_TOKEN=wt_secret simpletuner worker".to_owned(),
        };
        start_methods(&created, persistent, &address)
    }

    #[test]
    fn every_shell_reads_them() {
        for method in all_methods(true).into_iter().chain(all_methods(false)) {
            let is_cloud = matches!(method.kind, StartMethodKind::Runpod | StartMethodKind::Vast);
            for shell in if is_cloud { ["sh", "bash"] } else { ["bash", "bash"] } {
                let mut child = Command::new(shell).arg("-n").stdin(Stdio::piped()).spawn().expect("a shell");
                child
                    .stdin
                    .take()
                    .expect("a pipe")
                    .write_all(method.text.as_bytes())
                    .expect("the shell reads its input");
                assert!(
                    child.wait().expect("the shell exits").success(),
                    "{shell} {:?}:\n{}",
                    method.kind,
                    method.text
                );
            }
        }
    }

    #[test]
    fn each_names_the_server_and_no_token_is_an_argument() {
        for method in all_methods(true) {
            if method.kind != StartMethodKind::Shell {
                assert!(
                    method.text.contains("https://gpu.example:8001") && method.text.contains("sha256:abab"),
                    "{}",
                    method.text
                );
            }
            // The token is alone on its line, as the content of a file, or a variable.
            for line in method.text.lines().filter(|line| line.contains("wt_secret")) {
                assert!(line == "wt_secret" || line.starts_with("SIMPLETUNER_WORKER_TOKEN=wt_secret"), "{line}");
            }
            assert!(!method.text.contains("dirname"), "it needs no other file");
        }
    }

    #[test]
    fn printed_unit_is_the_shipped_one() {
        let systemd = &all_methods(true)[1].text;
        assert!(systemd.contains(SYSTEMD_UNIT.trim_end()) && !SYSTEMD_UNIT.contains("\nEND\n"));
        assert!(all_methods(false)[1].text.contains("SIMPLETUNER_WORKER_PERSISTENT=false"));
    }
}
