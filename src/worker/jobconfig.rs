//! `config.json` as the trainer gets it: the configuration as it was submitted, with this host's paths and our webhook.

use std::path::{Path, PathBuf};

use app::domain::config_files::{data_loader, may_be_file, named};
use serde_json::{Map, Value, json};

use crate::bundle::is_plain;

/// What only this host knows.
#[derive(Debug, Clone)]
pub struct Local<'a> {
    /// Where the configuration's files are; absolute.
    pub bundle: &'a Path,
    /// Where results go; absolute.
    pub output: &'a Path,
    /// The webhook listener's port.
    pub port: u16,
    /// What events must carry.
    pub webhook_secret: &'a str,
    /// Whether to go on from a checkpoint in the output directory.
    pub resume: bool,
}

/// Rewrites the configuration. `read` gives a bundle's file by its relative path.
///
/// # Errors
/// A sentence for the job's page.
pub fn rewrite(text: &str, local: &Local, read: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let parsed: Value = serde_json::from_str(text).map_err(|error| format!("config.json is no valid JSON: {error}"))?;
    let Value::Object(config) = parsed else {
        return Err("config.json must hold one JSON object".to_owned());
    };
    let mut config = Config { dashes: config.keys().any(|key| key.starts_with("--")), map: config };

    let existing = webhooks(config.get("webhook_config"), &read);
    config.find_files(local.bundle, &read);
    config.set("output_dir", path_value(local.output));
    let backend = data_backend(config.get("data_backend_config"), local.bundle, &read);
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
    serde_json::to_string_pretty(&config.map).map_err(|error| error.to_string())
}

fn path_value(path: &Path) -> Value {
    Value::from(path.to_string_lossy().into_owned())
}

/// A configuration whose keys are spelled `key`, `--key`, or both.
struct Config {
    dashes: bool,
    map: Map<String, Value>,
}

impl Config {
    fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(&format!("--{key}")).or_else(|| self.map.get(key))
    }

    /// Keeps the spelling in use.
    fn set(&mut self, key: &str, value: Value) {
        let dashed = format!("--{key}");
        if self.map.contains_key(&dashed) {
            self.map.remove(key);
            self.map.insert(dashed, value);
        } else if self.map.contains_key(key) || !self.dashes {
            self.map.insert(key.to_owned(), value);
        } else {
            self.map.insert(dashed, value);
        }
    }

    /// Points values that name a file of the configuration by the author's own path to where it is now.
    fn find_files(&mut self, bundle: &Path, read: &impl Fn(&str) -> Option<String>) {
        for value in self.map.values_mut() {
            let Some(text) = value.as_str().filter(|text| text.contains('/') && may_be_file(text)) else { continue };
            if let Some(found) = in_bundle(text, read).filter(|found| found != text) {
                *value = path_value(&bundle.join(found));
            }
        }
    }
}

/// The bundle's file that a path means.
fn in_bundle(path: &str, read: &impl Fn(&str) -> Option<String>) -> Option<String> {
    named(path, |file| is_plain(file) && read(file).is_some())
}

/// The data-loader file. None leaves the configuration as it is.
fn data_backend(value: Option<&Value>, bundle: &Path, read: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let path = match value {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_str()?),
    };
    data_loader(path, |file| is_plain(file) && read(file).is_some()).map(|found| bundle.join(found))
}

/// The webhooks that the configuration already has: an object, a list, JSON text of either, or a file with it.
fn webhooks(value: Option<&Value>, read: &impl Fn(&str) -> Option<String>) -> Result<Vec<Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => Ok(list.clone()),
        Some(Value::Object(one)) => Ok(vec![Value::Object(one.clone())]),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) if text.trim_start().starts_with(['{', '[']) => {
            let parsed =
                serde_json::from_str(text).map_err(|error| format!("webhook_config is no valid JSON: {error}"))?;
            webhooks(Some(&parsed), read)
        }
        Some(Value::String(path)) => {
            let content = in_bundle(path, read).and_then(|found| read(&found)).ok_or_else(|| {
                format!("webhook_config names the file {path:?}, which the configuration does not have: add it, or remove the key")
            })?;
            match serde_json::from_str(&content) {
                Ok(parsed @ (Value::Object(_) | Value::Array(_))) => webhooks(Some(&parsed), read),
                _ => Err(format!("the file {path:?} of webhook_config must hold a JSON object or list")),
            }
        }
        Some(_) => Err("webhook_config must be an object, a list, or the path of a file with one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(config: &Value, files: &[(&str, &str)]) -> Result<Value, String> {
        let local = Local {
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

    fn ours() -> Value {
        json!({"webhook_type": "raw", "callback_url": "http://127.0.0.1:77/events", "auth_token": "s", "log_level": "info"})
    }

    #[test]
    fn spelling_is_kept() {
        let plain = rewritten(&json!({"output_dir": "x", "lr": 1}), &[]);
        assert_eq!(plain, Ok(json!({"output_dir": "/o", "lr": 1, "webhook_config": [ours()]})));
        let dashed = rewritten(&json!({"--output_dir": "x", "output_dir": "y", "--resume": 1, "resume": 1}), &[]);
        assert_eq!(
            dashed,
            Ok(json!({"--output_dir": "/o", "--resume": 1, "resume": 1, "--webhook_config": [ours()],
                "--resume_from_checkpoint": "latest"}))
        );
    }

    #[test]
    fn webhooks_in_every_shape_are_kept() {
        let one = json!({"webhook_type": "discord"});
        let files = [("hook.json", r#"{"webhook_type": "discord"}"#)];
        for shape in
            [one.clone(), json!([one]), json!(one.to_string()), json!("hook.json"), json!("config/me/hook.json")]
        {
            let hooks =
                rewritten(&json!({"webhook_config": shape}), &files).map(|config| config["webhook_config"].clone());
            assert_eq!(hooks, Ok(json!([one, ours()])), "{shape}");
        }
        for shape in [json!(null), json!(""), json!([])] {
            let hooks =
                rewritten(&json!({"--webhook_config": shape}), &files).map(|config| config["--webhook_config"].clone());
            assert_eq!(hooks, Ok(json!([ours()])));
        }
        for shape in [json!(5), json!("{"), json!("missing.json")] {
            assert!(rewritten(&json!({"webhook_config": shape}), &files).is_err());
        }
    }

    #[test]
    fn files_of_the_configuration_are_found() {
        let files = [("multidatabackend.json", "[]"), ("lycoris.json", "{}"), ("sub/p.txt", "")];
        let got = |config: Value| rewritten(&config, &files);
        assert_eq!(
            got(json!({})).map(|config| config["data_backend_config"].clone()),
            Ok(json!("/b/multidatabackend.json"))
        );
        let config = got(json!({
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
    fn what_is_no_configuration_is_explained() {
        assert!(rewritten(&json!([1]), &[]).is_err_and(|why| why.contains("object")));
    }
}
