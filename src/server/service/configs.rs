//! Training configurations: directories of text files, each change a revision.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::audit::Action;
use app::domain::code::is_code;
use app::domain::config_files::{self, CONFIG};
use app::domain::config_paths;
use app::protocol::configs::{Bundle, ConfigDetail, ConfigView, ConfigsPage};
use app::protocol::overrides::written;
use app::protocol::topic::Topic;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Core;
use super::refusal::{Invalid, Limit, Refusal};
use super::unit::{Caller, Unit};
use super::workers::checked_name;
use crate::store::Tx;
use crate::store::configs::StoredConfig;
use crate::text::is_plain_path;
use crate::tokens::hex;

/// The most files in a bundle.
pub const MAX_FILES: usize = 200;
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
        check(&bundle, self.policy.allow_code)?;
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
                let config = unit.tx.config(&name).await?.ok_or_else(|| Refusal::NoConfig(name.clone()))?;
                may_change(unit, &config)?;
                unit.tx.remove_config(&name).await?;
                unit.record(Action::ConfigDeleted, &name, &json!({})).await?;
                unit.touch(Topic::Configs);
                Ok(())
            })
        })
        .await
    }

    /// The revision that somebody ran last, the newest one, and who has changed the configuration since, if others have.
    pub async fn unseen_change(&self, by: &str, name: &str) -> Result<Option<(u32, u32, Option<String>)>, Refusal> {
        let mut tx = self.read().await?;
        let Some(config) = tx.config(name).await? else { return Ok(None) };
        let unseen = unseen(&mut *tx, by, &config).await?;
        Ok(unseen.map(|(last, changed_by)| (last, config.revision, changed_by)))
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
    let current = unit.tx.config(name).await?;
    if let Some(current) = &current {
        may_change(unit, current)?;
        if current.sha256 == sha256 {
            return Ok(view(current));
        }
    }
    unit.core.need_room()?;
    need_quota(unit, bundle).await?;
    let author = Some(unit.owner().to_owned());
    let config = StoredConfig {
        name: name.to_owned(),
        revision: unit.tx.newest_revision(name).await? + 1,
        sha256,
        files: bundle.files.clone(),
        created_at: unit.now,
        owner: current.map_or_else(|| author.clone(), |current| current.owner.clone()),
        created_by: author,
    };
    let revision = config.revision;
    unit.tx.insert_config(&config).await?;
    unit.record(Action::ConfigStored, name, &json!({"revision": revision, "sha256": config.sha256})).await?;
    unit.touch(Topic::Configs);
    Ok(view(&config))
}

/// Refuses who changes a configuration that is not theirs. Whoever runs it trusts its owner.
fn may_change(unit: &Unit<'_>, config: &StoredConfig) -> Result<(), Refusal> {
    if config.owner.as_deref() == Some(unit.owner()) || unit.may(Permission::ConfigManage) {
        return Ok(());
    }
    Err(Refusal::ConfigNotYours { name: config.name.clone(), owner: config.owner.clone() })
}

/// The configuration at the revision that a submit names. Without one it is the newest, which is refused if others have
/// changed it since the submitter ran it last.
pub async fn chosen(tx: &mut dyn Tx, by: &str, name: &str, asked: Option<u32>) -> Result<Arc<StoredConfig>, Refusal> {
    let config = tx.config(name).await?.ok_or_else(|| Refusal::NoConfig(name.to_owned()))?;
    if let Some(asked) = asked.filter(|asked| *asked != config.revision) {
        let earlier = tx.config_revision(name, asked).await?;
        return earlier.ok_or_else(|| Refusal::NoConfig(format!("{name}, revision {asked}")));
    }
    let unseen = if asked.is_some() { None } else { unseen(tx, by, &config).await? };
    match unseen {
        None => Ok(config),
        Some((seen, changed_by)) => {
            Err(Refusal::ConfigChanged { name: config.name.clone(), seen, newest: config.revision, changed_by })
        }
    }
}

/// The revision that somebody ran last, and who has changed the configuration since, if others have.
pub async fn unseen(
    tx: &mut dyn Tx,
    by: &str,
    config: &StoredConfig,
) -> Result<Option<(u32, Option<String>)>, Refusal> {
    // A first revision has no change, and most people run what they ran last.
    if config.revision == 1 {
        return Ok(None);
    }
    let Some(last) = tx.last_run(&config.name, by).await?.filter(|last| *last != config.revision) else {
        return Ok(None);
    };
    let since = tx.revisions(&config.name).await?.into_iter().filter(|revision| revision.revision > last);
    let mut others = since.filter(|revision| revision.created_by.as_deref() != Some(by));
    Ok(others.next().map(|revision| (last, revision.created_by)))
}

/// Refuses what would be more than a person may have, or all may. What the server imports at its start is its operator's.
async fn need_quota(unit: &mut Unit<'_>, bundle: &Bundle) -> Result<(), Refusal> {
    let bounds = unit.core.policy.bounds;
    let new = bundle_bytes(&bundle.files).len() as u64;
    let by = unit.owner().to_owned();
    if by == Caller::system().owner {
        return Ok(());
    }
    if unit.tx.config_bytes(Some(&by)).await? + new > bounds.config_bytes_per_user {
        return Err(Refusal::OverLimit(Limit::ConfigsOfPerson { most: bounds.config_bytes_per_user }));
    }
    if unit.tx.config_bytes(None).await? + new > bounds.config_bytes {
        return Err(Refusal::OverLimit(Limit::Configs { most: bounds.config_bytes }));
    }
    Ok(())
}

/// The bytes that a worker fetches, and whose SHA-256 names the bundle.
pub fn bundle_bytes(files: &BTreeMap<String, String>) -> Vec<u8> {
    serde_json::to_vec(&Bundle { files: files.clone() }).expect("text by text")
}

/// Checks names, sizes, that `config.json` is an object, and that there is no code unless that is allowed.
pub fn check(bundle: &Bundle, allow_code: bool) -> Result<(), Refusal> {
    if bundle.files.len() > MAX_FILES {
        return Err(Invalid::TooMuch { what: "files", limit: MAX_FILES as u64 }.into());
    }
    if bundle.files.values().map(String::len).sum::<usize>() > MAX_BUNDLE {
        return Err(Invalid::TooMuch { what: "bytes of configuration", limit: MAX_BUNDLE as u64 }.into());
    }
    if let Some(path) = bundle.files.keys().find(|path| !is_plain_path(path)) {
        return Err(Invalid::Path(path.chars().take(80).collect()).into());
    }
    if let Some(path) = bundle.files.keys().find(|path| !allow_code && is_code(path)) {
        return Err(Invalid::Code(path.chars().take(80).collect()).into());
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
    let number = value(&object(config, CONFIG), "num_processes")?;
    number.as_u64().or_else(|| number.as_str()?.parse().ok()).and_then(|number| u32::try_from(number).ok())
}

/// The data-loader file of a configuration.
pub fn data_loader_of(config: &StoredConfig) -> Option<String> {
    let value = value(&object(config, CONFIG), "data_backend_config");
    config_files::data_loader(value.as_ref().and_then(Value::as_str), |file| config.files.contains_key(file))
}

/// The other files that a configuration names.
pub fn named_files(config: &StoredConfig) -> Vec<String> {
    let loader = data_loader_of(config);
    let file = |value: &Value| {
        let text = value.as_str().filter(|text| config_files::may_be_file(text))?;
        config_files::named(text, |file| config.files.contains_key(file))
    };
    let mut files: Vec<String> = object(config, CONFIG).values().filter_map(file).collect();
    files.retain(|file| file != CONFIG && Some(file) != loader.as_ref());
    files.sort();
    files.dedup();
    files
}

/// The names of the host's directories that a configuration needs.
pub fn named_paths(config: &StoredConfig) -> Vec<String> {
    let mut names = BTreeSet::new();
    let is_json = |file: &&String| Path::new(file).extension().is_some_and(|extension| extension == "json");
    for file in config.files.keys().filter(is_json) {
        if let Some(content) = json_file(config, file) {
            gather_paths("", &content, &mut names);
        }
    }
    names.into_iter().collect()
}

fn gather_paths(key: &str, value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let of_the_host = config_paths::named(key, text).filter(|name| !config_paths::OF_THE_JOB.contains(name));
            names.extend(of_the_host.map(str::to_owned));
        }
        Value::Array(list) => list.iter().for_each(|entry| gather_paths(key, entry, names)),
        Value::Object(map) => map.iter().for_each(|(key, entry)| gather_paths(key, entry, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A file of a configuration as JSON.
pub fn json_file(config: &StoredConfig, name: &str) -> Option<Value> {
    serde_json::from_str(config.files.get(name)?).ok()
}

/// A file of a configuration as an object of JSON; empty if it is none.
pub fn object(config: &StoredConfig, name: &str) -> Map<String, Value> {
    match json_file(config, name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn value(object: &Map<String, Value>, key: &str) -> Option<Value> {
    object.get(&written(object, key)).cloned()
}

/// A configuration in a list.
pub fn view(config: &StoredConfig) -> ConfigView {
    let object = object(config, CONFIG);
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
        owner: config.owner.clone(),
        files: config.files.keys().cloned().collect(),
        summary: shown.iter().filter_map(|key| plain(key)).collect(),
    }
}
