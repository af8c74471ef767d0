//! Training configurations: directories of text files, each change a revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::audit::Action;
use app::protocol::configs::{Bundle, ConfigDetail, ConfigView, ConfigsPage};
use app::protocol::topic::Topic;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Core;
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use super::workers::checked_name;
use crate::store::configs::StoredConfig;
use crate::text::is_plain_path;
use crate::tokens::hex;

/// The most files in a bundle.
const MAX_FILES: usize = 200;
/// The largest bundle, in bytes of text.
pub const MAX_BUNDLE: usize = 8 << 20;

/// What a caller knows of the configuration that they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Whatever is there.
    Anything,
    /// That there is none.
    Nothing,
    /// That its newest revision is one of these.
    Revisions(Vec<String>),
}

impl From<Option<Vec<String>>> for Seen {
    fn from(revisions: Option<Vec<String>>) -> Self {
        revisions.map_or(Self::Anything, Self::Revisions)
    }
}

impl Core {
    /// Stores a configuration that is as the caller has `seen` it; returns its newest revision, which is the old one if
    /// nothing changed.
    pub async fn put_config(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        bundle: Bundle,
        seen: Seen,
    ) -> Result<ConfigView, Refusal> {
        let name = checked_config_name(&name)?;
        check(&bundle)?;
        let input = Arc::new((name, bundle, seen));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (name, bundle, seen) = &*input;
                as_seen(unit, name, seen).await?;
                put_in(unit, name, bundle).await
            })
        })
        .await
    }

    /// Takes a configuration off the list; jobs that pinned a revision keep it.
    pub async fn delete_config(self: &Arc<Self>, caller: Caller, name: String, seen: Seen) -> Result<(), Refusal> {
        self.change(caller, move |unit| {
            let (name, seen) = (name.clone(), seen.clone());
            Box::pin(async move {
                as_seen(unit, &name, &seen).await?;
                if unit.tx.config(&name).await?.is_none() {
                    return Err(Refusal::NoConfig(name));
                }
                unit.tx.remove_config(&name).await?;
                unit.record(Action::ConfigDeleted, &name, &json!({})).await?;
                unit.touch(Topic::Configs);
                Ok(())
            })
        })
        .await
    }

    /// The list.
    pub async fn configs(&self) -> Result<ConfigsPage, Refusal> {
        let configs = self.read().await?.configs().await?;
        Ok(ConfigsPage { configs: configs.iter().map(view).collect() })
    }

    /// One, with its files.
    pub async fn config(&self, name: &str) -> Result<ConfigDetail, Refusal> {
        let config = self.read().await?.config(name).await?.ok_or_else(|| Refusal::NoConfig(name.to_owned()))?;
        Ok(config_detail(&config))
    }
}

/// A revision with its files.
pub fn config_detail(config: &StoredConfig) -> ConfigDetail {
    ConfigDetail { config: view(config), bundle: Bundle { files: config.files.clone() } }
}

/// Refuses what is meant for something else than what is there.
async fn as_seen(unit: &mut Unit<'_>, name: &str, seen: &Seen) -> Result<(), Refusal> {
    let newest = async { unit.tx.config(name).await.map(|config| config.map(|config| config.revision.to_string())) };
    let as_seen = match seen {
        Seen::Anything => true,
        Seen::Nothing => newest.await?.is_none(),
        Seen::Revisions(seen) => newest.await?.is_some_and(|newest| seen.contains(&newest)),
    };
    if as_seen { Ok(()) } else { Err(Refusal::Changed) }
}

async fn put_in(unit: &mut Unit<'_>, name: &str, bundle: &Bundle) -> Result<ConfigView, Refusal> {
    let sha256 = hex(&Sha256::digest(bundle_bytes(&bundle.files)));
    if let Some(current) = unit.tx.config(name).await?.filter(|current| current.sha256 == sha256) {
        return Ok(view(&current));
    }
    let revision = unit.tx.newest_revision(name).await? + 1;
    let config =
        StoredConfig { name: name.to_owned(), revision, sha256, files: bundle.files.clone(), created_at: unit.now };
    unit.tx.insert_config(&config).await?;
    unit.record(Action::ConfigStored, name, &json!({"revision": revision, "sha256": config.sha256})).await?;
    unit.touch(Topic::Configs);
    Ok(view(&config))
}

/// The bytes that a worker fetches, and whose SHA-256 names the bundle.
pub fn bundle_bytes(files: &BTreeMap<String, String>) -> Vec<u8> {
    serde_json::to_vec(&Bundle { files: files.clone() }).expect("text by text")
}

/// Checks names, sizes, and that `config.json` is an object.
pub fn check(bundle: &Bundle) -> Result<(), Refusal> {
    if bundle.files.len() > MAX_FILES {
        return Err(Invalid::TooMuch { what: "files", limit: MAX_FILES as u64 }.into());
    }
    if bundle.files.values().map(String::len).sum::<usize>() > MAX_BUNDLE {
        return Err(Invalid::TooMuch { what: "bytes of configuration", limit: MAX_BUNDLE as u64 }.into());
    }
    if let Some(path) = bundle.files.keys().find(|path| !is_plain_path(path)) {
        return Err(Invalid::Path(path.chars().take(80).collect()).into());
    }
    let text = bundle.files.get("config.json").ok_or(Invalid::NoConfigJson)?;
    let broken = |error: String| Invalid::BrokenJson { file: "config.json".to_owned(), error };
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(broken("it is no object".to_owned()).into()),
        Err(error) => Err(broken(error.to_string()).into()),
    }
}

fn checked_config_name(name: &str) -> Result<String, Refusal> {
    let name = checked_name(name)?;
    // `/configs/new` is the page that makes one.
    if is_plain_path(&name) && !name.contains('/') && name != "new" {
        Ok(name)
    } else {
        Err(Invalid::Name(name).into())
    }
}

/// `num_processes` of a configuration, as `key` or `--key`.
pub fn num_processes(config: &StoredConfig) -> Option<u32> {
    let number = value(&object(config), "num_processes")?;
    number.as_u64().or_else(|| number.as_str()?.parse().ok()).and_then(|number| u32::try_from(number).ok())
}

fn object(config: &StoredConfig) -> Map<String, Value> {
    let text = config.files.get("config.json").map(String::as_str).unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

fn value(object: &Map<String, Value>, key: &str) -> Option<Value> {
    object.get(key).or_else(|| object.get(&format!("--{key}"))).cloned()
}

/// A configuration in a list.
pub fn view(config: &StoredConfig) -> ConfigView {
    let object = object(config);
    let shown = ["model_type", "model_family", "max_train_steps", "learning_rate", "train_batch_size"];
    let plain = |key: &str| {
        let text = match value(&object, key)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((key.to_owned(), text))
    };
    ConfigView {
        name: config.name.clone(),
        revision: config.revision,
        sha256: config.sha256.clone(),
        updated_at: config.created_at,
        files: config.files.keys().cloned().collect(),
        summary: shown.iter().filter_map(|key| plain(key)).collect(),
    }
}
