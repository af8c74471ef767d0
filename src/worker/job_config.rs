//! Rewrites `config.json` for the trainer: the submitted configuration with this host's paths and the agent's webhook.

use std::path::{Path, PathBuf};

use app::domain::config_files::{is_file_name, resolve, resolve_data_loader};
use serde_json::{Map, Value, json};

use crate::worker::bundle::is_safe_relative_path;

/// Values that only this host knows.
#[derive(Debug, Clone)]
pub struct HostContext<'a> {
    /// Directory of the configuration's files; absolute.
    pub bundle: &'a Path,
    /// Output directory; absolute.
    pub output: &'a Path,
    /// Port of the webhook listener.
    pub port: u16,
    /// Secret that events must carry.
    pub webhook_secret: &'a str,
    /// Whether to resume from a checkpoint in the output directory.
    pub resume: bool,
}

/// Rewrites the configuration. `read` returns a bundle's file by its relative path.
///
/// # Errors
/// A message for the job's page.
pub fn rewrite(text: &str, local: &HostContext, read: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let parsed: Value =
        serde_json::from_str(text).map_err(|error| format!("config.json is not valid JSON: {error}"))?;
    let Value::Object(config) = parsed else {
        return Err("config.json must contain one JSON object".to_owned());
    };
    let mut config = JobConfig { uses_dashes: config.keys().any(|key| key.starts_with("--")), values: config };

    let existing = existing_webhooks(config.get("webhook_config"), &read);
    config.resolve_bundle_paths(local.bundle, &read);
    config.set("output_dir", path_value(local.output));
    let backend = resolve_data_backend(config.get("data_backend_config"), local.bundle, &read);
    if let Some(path) = backend {
        config.set("data_backend_config", path_value(&path));
    }
    let mut hooks = existing?;
    hooks.push(json!({
        "webhook_type": "raw",
        "callback_url": format!("http://127.0.0.1:{}/events", local.port),
        "auth_token": local.webhook_secret,
        "log_level": "info",
    }));
    config.set("webhook_config", Value::Array(hooks));
    if local.resume {
        config.set("resume_from_checkpoint", Value::from("latest"));
    }
    serde_json::to_string_pretty(&config.values).map_err(|error| error.to_string())
}

fn path_value(path: &Path) -> Value {
    Value::from(path.to_string_lossy().into_owned())
}

/// A configuration whose keys are spelled `key`, `--key`, or both.
struct JobConfig {
    uses_dashes: bool,
    values: Map<String, Value>,
}

impl JobConfig {
    fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(&format!("--{key}")).or_else(|| self.values.get(key))
    }

    /// Sets a value under the spelling in use.
    fn set(&mut self, key: &str, value: Value) {
        let dashed = format!("--{key}");
        if self.values.contains_key(&dashed) {
            self.values.remove(key);
            self.values.insert(dashed, value);
        } else if self.values.contains_key(key) || !self.uses_dashes {
            self.values.insert(key.to_owned(), value);
        } else {
            self.values.insert(dashed, value);
        }
    }

    /// Changes values that name a file of the configuration by its path on the author's machine to its path here.
    fn resolve_bundle_paths(&mut self, bundle: &Path, read: &impl Fn(&str) -> Option<String>) {
        for value in self.values.values_mut() {
            let Some(text) = value.as_str().filter(|text| text.contains('/') && is_file_name(text)) else { continue };
            if let Some(found) = bundle_path(text, read).filter(|found| found != text) {
                *value = path_value(&bundle.join(found));
            }
        }
    }
}

/// The bundle's file that a path means.
fn bundle_path(path: &str, read: &impl Fn(&str) -> Option<String>) -> Option<String> {
    resolve(path, |file| is_safe_relative_path(file) && read(file).is_some())
}

/// Sets the data-loader file. Without one the configuration is unchanged.
fn resolve_data_backend(
    value: Option<&Value>,
    bundle: &Path,
    read: &impl Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let path = match value {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_str()?),
    };
    resolve_data_loader(path, |file| is_safe_relative_path(file) && read(file).is_some())
        .map(|found| bundle.join(found))
}

/// The webhooks in the configuration: an object, a list, JSON text of either, or a file with it.
fn existing_webhooks(value: Option<&Value>, read: &impl Fn(&str) -> Option<String>) -> Result<Vec<Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.clone()),
        Some(Value::Object(hook)) => Ok(vec![Value::Object(hook.clone())]),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) if text.trim_start().starts_with(['{', '[']) => {
            let parsed =
                serde_json::from_str(text).map_err(|error| format!("webhook_config is not valid JSON: {error}"))?;
            existing_webhooks(Some(&parsed), read)
        }
        Some(Value::String(path)) => {
            let content = bundle_path(path, read).and_then(|found| read(&found)).ok_or_else(|| {
                format!(
                    "webhook_config names the file {path:?}, which the configuration does not contain: add it, \
                    or remove the key"
                )
            })?;
            match serde_json::from_str(&content) {
                Ok(parsed @ (Value::Object(_) | Value::Array(_))) => existing_webhooks(Some(&parsed), read),
                _ => Err(format!("the file {path:?} of webhook_config must contain a JSON object or list")),
            }
        }
        Some(_) => Err("webhook_config must be an object, a list, or the path of a file with one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(config: &Value, files: &[(&str, &str)]) -> Result<Value, String> {
        let local = HostContext {
            bundle: Path::new("/b"),
            output: Path::new("/o"),
            port: 77,
            webhook_secret: "s",
            resume: config.get("resume").is_some(),
        };
        let read = |name: &str| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned());
        let text = rewrite(&config.to_string(), &local, read)?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    fn agent_webhook() -> Value {
        json!({"webhook_type": "raw", "callback_url": "http://127.0.0.1:77/events", "auth_token": "s", "log_level": "info"})
    }

    #[test]
    fn key_spelling_is_preserved() {
        let plain = rewritten(&json!({"output_dir": "x", "lr": 1}), &[]);
        assert_eq!(plain, Ok(json!({"output_dir": "/o", "lr": 1, "webhook_config": [agent_webhook()]})));
        let dashed = rewritten(&json!({"--output_dir": "x", "output_dir": "y", "--resume": 1, "resume": 1}), &[]);
        assert_eq!(
            dashed,
            Ok(json!({"--output_dir": "/o", "--resume": 1, "resume": 1, "--webhook_config": [agent_webhook()],
                "--resume_from_checkpoint": "latest"}))
        );
    }

    #[test]
    fn existing_webhooks_of_any_form_are_preserved() {
        let existing = json!({"webhook_type": "discord"});
        let files = [("hook.json", r#"{"webhook_type": "discord"}"#)];
        for value in [
            existing.clone(),
            json!([existing]),
            json!(existing.to_string()),
            json!("hook.json"),
            json!("config/me/hook.json"),
        ] {
            let hooks =
                rewritten(&json!({"webhook_config": value}), &files).map(|config| config["webhook_config"].clone());
            assert_eq!(hooks, Ok(json!([existing, agent_webhook()])), "{value}");
        }
        for value in [json!(null), json!(""), json!([])] {
            let hooks =
                rewritten(&json!({"--webhook_config": value}), &files).map(|config| config["--webhook_config"].clone());
            assert_eq!(hooks, Ok(json!([agent_webhook()])));
        }
        for value in [json!(5), json!("{"), json!("missing.json")] {
            assert!(rewritten(&json!({"webhook_config": value}), &files).is_err());
        }
    }

    #[test]
    fn bundle_paths_are_resolved() {
        let files = [("multidatabackend.json", "[]"), ("lycoris.json", "{}"), ("sub/p.txt", "")];
        let rewrite_config = |config: Value| rewritten(&config, &files);
        assert_eq!(
            rewrite_config(json!({})).map(|config| config["data_backend_config"].clone()),
            Ok(json!("/b/multidatabackend.json"))
        );
        let config = rewrite_config(json!({
            "data_backend_config": "config/mine/multidatabackend.json",
            "lycoris_config": "/home/me/lycoris.json",
            "user_prompt_library": "config/sub/p.txt",
            "model": "org/name",
            "other": "elsewhere/x.json",
        }));
        let config = config.unwrap_or_default();
        assert_eq!(config["data_backend_config"], "/b/multidatabackend.json");
        assert_eq!(config["lycoris_config"], "/b/lycoris.json");
        assert_eq!(config["user_prompt_library"], "/b/sub/p.txt");
        assert_eq!((&config["model"], &config["other"]), (&json!("org/name"), &json!("elsewhere/x.json")));
        let missing = rewritten(&json!({"data_backend_config": "/data/x.json"}), &[]);
        assert_eq!(missing.map(|config| config["data_backend_config"].clone()), Ok(json!("/data/x.json")));
    }

    #[test]
    fn invalid_configuration_is_explained() {
        assert!(rewritten(&json!([1]), &[]).is_err_and(|error| error.contains("object")));
    }
}
