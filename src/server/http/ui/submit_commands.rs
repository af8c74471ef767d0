//! A submit as shell commands for our command-line client and for curl. Neither contains a token:
//! both read it from the environment.

use app::domain::labels::Labels;
use app::domain::text::is_control_or_invisible;
use app::protocol::jobs::overrides::to_lines;
use app::protocol::jobs::submit::SubmitJob;
use app::ui::backend::SubmitCommands;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::http::access::session::ServerAddress;
use crate::text::shell_quoted;

/// Returns both commands.
pub fn submit_commands(job: &SubmitJob, at: &ServerAddress) -> SubmitCommands {
    SubmitCommands { cli: cli_command(job, at), curl: curl_command(job, at) }
}

fn cli_command(job: &SubmitJob, at: &ServerAddress) -> String {
    let SubmitJob {
        config_name,
        target,
        worker_labels: Labels(labels),
        gpu_count,
        min_vram_gb,
        accelerator_type,
        max_retries,
        retry_on_failure,
        max_runtime_seconds,
        secrets,
        exclusive,
        sandbox,
        checkpoints,
        priority,
        config_revision,
        overrides,
        dry_run: _,
    } = job;
    let default_fields = SubmitJob::new("");
    let mut words = vec!["simpletuner jobs submit".to_owned()];
    let mut say = |flag: &str, value: Option<String>| {
        // The value may look like a flag.
        let link = |value: &str| if value.starts_with('-') { "=" } else { " " };
        words.extend(value.map(|value| format!("--{flag}{}{}", link(&value), shell_quoted(&value))));
    };
    say("target", (*target != default_fields.target).then(|| target.as_str().to_owned()));
    for (key, value) in labels {
        say("label", Some(format!("{key}={value}")));
    }
    say("gpus", gpu_count.map(|count| count.to_string()));
    say("min-vram", min_vram_gb.map(|gb| gb.to_string()));
    say("accelerator", accelerator_type.clone());
    say("priority", (*priority != default_fields.priority).then(|| priority.to_string()));
    say("max-retries", (*max_retries != default_fields.max_retries).then(|| max_retries.to_string()));
    say("max-runtime", max_runtime_seconds.map(|seconds| seconds.to_string()));
    say("sandbox", (*sandbox != default_fields.sandbox).then(|| sandbox.as_str().to_owned()));
    say("checkpoints", (*checkpoints != default_fields.checkpoints).then(|| checkpoints.as_str().to_owned()));
    say("config-revision", config_revision.map(|revision| revision.to_string()));
    for line in to_lines(overrides) {
        say("set", Some(line));
    }
    for name in secrets.iter().flatten() {
        say("secret", Some(name.clone()));
    }
    say("url", Some(at.base_url.clone()));
    say("orchestrator-fingerprint", at.fingerprint.map(|fingerprint| fingerprint.to_string()));
    let flags = [("--retry-on-failure", *retry_on_failure), ("--exclusive", *exclusive)];
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| (*flag).to_owned()));
    // The name may look like a flag.
    let dashes = if config_name.starts_with('-') { "-- " } else { "" };
    words.push(format!("{dashes}{}", shell_quoted(config_name)));
    wrap_lines(&words)
}

/// Passes the token through a pipe, because other users of the host can see the arguments of a process.
fn curl_command(job: &SubmitJob, at: &ServerAddress) -> String {
    // A self-signed certificate is verified by its key.
    let pin = at
        .fingerprint
        .map(|key| format!("-k --pinnedpubkey {}", shell_quoted(&format!("sha256//{}", STANDARD.encode(key.0)))));
    let mut words = vec![
        r#"printf 'Authorization: Bearer %s' "$SIMPLETUNER_API_TOKEN" |"#.to_owned(),
        format!("curl -sS --fail-with-body -H @- {}/api/queue/submit", at.base_url),
    ];
    words.extend(pin);
    words.push("-H 'Content-Type: application/json'".to_owned());
    words.push(format!("--data-raw {}", shell_quoted(&escape_invisible(&request_body(job).to_string()))));
    wrap_lines(&words)
}

/// Returns the API's request without default values.
fn request_body(job: &SubmitJob) -> Value {
    let [job_fields, default_fields] = [job, &SubmitJob::new("")].map(|job| json!(job));
    let fields = job_fields.as_object().into_iter().flatten().filter(|(name, value)| default_fields[name] != **value);
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Escapes invisible characters in JSON.
fn escape_invisible(json: &str) -> String {
    let letter = |letter: char| {
        if is_control_or_invisible(letter) { format!("\\u{:04x}", u32::from(letter)) } else { letter.to_string() }
    };
    json.chars().map(letter).collect()
}

/// Joins words into lines of a terminal.
fn wrap_lines(words: &[String]) -> String {
    const WIDTH: usize = 72;
    let mut lines = vec![String::new()];
    for word in words {
        let line = lines.last_mut().expect("one at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + word.len() < WIDTH && !line.ends_with('|') {
            line.extend([" ", word]);
        } else {
            lines.push(format!("  {word}"));
        }
    }
    lines.join(" \\\n")
}
