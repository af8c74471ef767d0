//! A submit as shell commands for our command-line client and for curl. Neither contains a token:
//! both read it from the environment.

use app::domain::text::is_control_or_invisible;
use app::protocol::jobs::SubmitJob;
use app::ui::backend::SubmitCommands;
use app::ui::submit_form::SUBMIT_FIELDS;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::http::edge::server_address::ServerAddress;
use crate::text::shell_quoted;

/// Returns both commands.
pub fn submit_commands(job: &SubmitJob, address: &ServerAddress) -> SubmitCommands {
    SubmitCommands { cli: cli_command(job, address), curl: curl_command(job, address) }
}

fn cli_command(job: &SubmitJob, address: &ServerAddress) -> String {
    let mut words = vec!["simpletuner jobs submit".to_owned()];
    let mut add_flag = |flag: &str, value: &str| {
        // The value may look like a flag.
        let separator = if value.starts_with('-') { "=" } else { " " };
        words.push(format!("--{flag}{separator}{}", shell_quoted(value)));
    };
    let changed = || SUBMIT_FIELDS.iter().filter_map(|field| Some((field, field.changed_values(job)?)));
    for (field, values) in changed().filter(|(field, _)| !field.is_switch()) {
        for value in values {
            add_flag(field.server.flag, &value);
        }
    }
    if let Some(revision) = job.config_revision {
        add_flag("config-revision", &revision.to_string());
    }
    add_flag("url", &address.base_url);
    if let Some(fingerprint) = address.fingerprint {
        add_flag("orchestrator-fingerprint", &fingerprint.to_string());
    }
    words.extend(changed().filter(|(field, _)| field.is_switch()).map(|(field, _)| format!("--{}", field.server.flag)));
    // The name may look like a flag.
    let dashes = if job.config_name.starts_with('-') { "-- " } else { "" };
    words.push(format!("{dashes}{}", shell_quoted(&job.config_name)));
    wrap_lines(&words)
}

/// Passes the token through a pipe, because other users of the host can see the arguments of a process.
fn curl_command(job: &SubmitJob, address: &ServerAddress) -> String {
    // A self-signed certificate is verified by its key.
    let pin = address
        .fingerprint
        .map(|key| format!("-k --pinnedpubkey {}", shell_quoted(&format!("sha256//{}", STANDARD.encode(key.0)))));
    let mut words = vec![
        r#"printf 'Authorization: Bearer %s' "$SIMPLETUNER_API_TOKEN" |"#.to_owned(),
        format!("curl -sS --fail-with-body -H @- {}/api/queue/submit", address.base_url),
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
