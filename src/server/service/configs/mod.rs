//! Training configurations: directories of text files; each change is a revision.

pub(super) mod revisions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::allowed_values::LimitedItems;
use app::domain::audit::AuditAction;
use app::domain::config_files::{self, CONFIG_FILE};
use app::domain::executable_files::is_executable;
use app::domain::fuzzy::similar_names;
use app::domain::path_placeholders;
use app::protocol::configs::{ConfigBundle, ConfigDetail, ConfigView, ConfigsPage, file_field, truncate_path};
use app::protocol::jobs::overrides::resolve_key;
use app::protocol::topic::Topic;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::error::{InvalidField, InvalidInput, ResourceLimit, ServiceError, require_valid};
use super::names::checked_name;
use super::unit_of_work::{Caller, UnitOfWork};
use crate::service::ServiceContext;
use crate::store::Tx;
use crate::store::configs::StoredConfig;
use crate::text::is_plain_path;
use crate::tokens::hex;

/// The maximum number of files in a bundle.
pub const MAX_FILES: usize = 200;
pub const MAX_BUNDLE: usize = 8 << 20;

/// What a caller requires of the configuration that they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigPrecondition {
    Any,
    Absent,
    /// Its newest revision is one of these.
    Revisions(Vec<String>),
}

impl From<Option<Vec<String>>> for ConfigPrecondition {
    fn from(revisions: Option<Vec<String>>) -> Self {
        revisions.map_or(Self::Any, Self::Revisions)
    }
}

/// The error for an unknown configuration, with similar names.
pub async fn config_not_found(tx: &mut dyn Tx, name: &str) -> Result<ServiceError, ServiceError> {
    let all = tx.configs().await?;
    let similar =
        similar_names(name, all.iter().map(|config| config.name.as_str())).into_iter().map(str::to_owned).collect();
    Ok(ServiceError::ConfigNotFound(name.to_owned(), similar))
}

/// Configurations and their revisions.
pub struct ConfigService {
    pub(super) context: Arc<ServiceContext>,
}

impl ConfigService {
    /// Stores a configuration if it meets the precondition; returns its newest revision, which is the old one if
    /// nothing changed.
    pub async fn put_config(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        bundle: ConfigBundle,
        precondition: ConfigPrecondition,
    ) -> Result<ConfigView, ServiceError> {
        require_valid(self.invalid_config_fields(&name, &bundle))?;
        let name = checked_config_name(&name)?;
        let input = Arc::new((name, bundle, precondition));
        self.context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (name, bundle, precondition) = &*input;
                    check_precondition(unit, name, precondition).await?;
                    put_config_in(unit, name, bundle).await
                })
            })
            .await
    }

    /// Returns the invalid fields of a configuration.
    pub fn invalid_config_fields(&self, name: &str, bundle: &ConfigBundle) -> Vec<InvalidField> {
        let name = checked_config_name(name).err().map(|invalid| InvalidField::new("name", invalid));
        name.into_iter().chain(invalid_fields(bundle, self.context.policy.allow_code)).collect()
    }

    /// Deletes a configuration; jobs that use one of its revisions keep it.
    pub async fn delete_config(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        precondition: ConfigPrecondition,
    ) -> Result<(), ServiceError> {
        self.context
            .change(caller, move |unit| {
                let (name, precondition) = (name.clone(), precondition.clone());
                Box::pin(async move {
                    check_precondition(unit, &name, &precondition).await?;
                    let config = unit
                        .tx
                        .config(&name)
                        .await?
                        .ok_or_else(|| ServiceError::ConfigNotFound(name.clone(), Vec::new()))?;
                    check_may_change(unit, &config)?;
                    unit.tx.remove_config(&name).await?;
                    unit.record(AuditAction::ConfigDeleted, &name, &json!({})).await?;
                    unit.notify(Topic::Configs);
                    Ok(())
                })
            })
            .await
    }

    /// Returns the revision that the user ran last, the newest one, and who has changed the configuration since, if
    /// others have.
    pub async fn unreviewed_change(
        &self,
        by: &str,
        name: &str,
    ) -> Result<Option<(u32, u32, Option<String>)>, ServiceError> {
        let mut tx = self.context.read().await?;
        let Some(config) = tx.config(name).await? else { return Ok(None) };
        let unreviewed = unreviewed_by(&mut *tx, by, &config).await?;
        Ok(unreviewed.map(|(last, changed_by)| (last, config.revision, changed_by)))
    }

    pub async fn configs(&self) -> Result<ConfigsPage, ServiceError> {
        let configs = self.context.read().await?.configs().await?;
        Ok(ConfigsPage { configs: configs.iter().map(config_view).collect() })
    }

    pub async fn config(&self, name: &str) -> Result<ConfigDetail, ServiceError> {
        let mut tx = self.context.read().await?;
        let Some(config) = tx.config(name).await? else { return Err(config_not_found(&mut *tx, name).await?) };
        Ok(config_detail(&config))
    }
}

/// Converts to the API view with files.
pub fn config_detail(config: &StoredConfig) -> ConfigDetail {
    ConfigDetail { config: config_view(config), bundle: ConfigBundle { files: config.files.clone() } }
}

/// Fails if the configuration is not as the caller expects.
async fn check_precondition(
    unit: &mut UnitOfWork<'_>,
    name: &str,
    precondition: &ConfigPrecondition,
) -> Result<(), ServiceError> {
    let newest = async { unit.tx.config(name).await.map(|config| config.map(|config| config.revision.to_string())) };
    let is_met = match precondition {
        ConfigPrecondition::Any => true,
        ConfigPrecondition::Absent => newest.await?.is_none(),
        ConfigPrecondition::Revisions(revisions) => newest.await?.is_some_and(|newest| revisions.contains(&newest)),
    };
    if is_met { Ok(()) } else { Err(ServiceError::PreconditionFailed) }
}

async fn put_config_in(
    unit: &mut UnitOfWork<'_>,
    name: &str,
    bundle: &ConfigBundle,
) -> Result<ConfigView, ServiceError> {
    let sha256 = hex(&Sha256::digest(bundle_bytes(&bundle.files)));
    let current = unit.tx.config(name).await?;
    if let Some(current) = &current {
        check_may_change(unit, current)?;
        if current.sha256 == sha256 {
            return Ok(config_view(current));
        }
    }
    unit.context.check_disk_space()?;
    check_quota(unit, bundle).await?;
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
    unit.record(AuditAction::ConfigStored, name, &json!({"revision": revision, "sha256": config.sha256})).await?;
    unit.notify(Topic::Configs);
    Ok(config_view(&config))
}

/// Fails unless the caller may change this configuration: a user who runs it trusts its owner.
fn check_may_change(unit: &UnitOfWork<'_>, config: &StoredConfig) -> Result<(), ServiceError> {
    if config.owner.as_deref() == Some(unit.owner()) || unit.has_permission(Permission::ConfigManage) {
        return Ok(());
    }
    Err(ServiceError::NotConfigOwner { name: config.name.clone(), owner: config.owner.clone() })
}

/// Returns the configuration at the revision of a submit. Without one it is the newest, which is rejected if others
/// have changed it since the submitter ran it last.
pub async fn resolve_revision(
    tx: &mut dyn Tx,
    by: &str,
    name: &str,
    revision: Option<u32>,
) -> Result<Arc<StoredConfig>, ServiceError> {
    let Some(config) = tx.config(name).await? else { return Err(config_not_found(tx, name).await?) };
    if let Some(revision) = revision.filter(|revision| *revision != config.revision) {
        let earlier = tx.config_revision(name, revision).await?;
        return earlier.ok_or_else(|| ServiceError::ConfigNotFound(format!("{name}, revision {revision}"), Vec::new()));
    }
    let unreviewed = if revision.is_some() { None } else { unreviewed_by(tx, by, &config).await? };
    match unreviewed {
        None => Ok(config),
        Some((seen, changed_by)) => {
            Err(ServiceError::ConfigChanged { name: config.name.clone(), seen, newest: config.revision, changed_by })
        }
    }
}

/// Returns the revision that the user ran last, and who has changed the configuration since, if others have.
pub async fn unreviewed_by(
    tx: &mut dyn Tx,
    by: &str,
    config: &StoredConfig,
) -> Result<Option<(u32, Option<String>)>, ServiceError> {
    // A first revision has no change, and most users run what they ran last.
    if config.revision == 1 {
        return Ok(None);
    }
    let Some(last) = tx.last_run_revision(&config.name, by).await?.filter(|last| *last != config.revision) else {
        return Ok(None);
    };
    let since = tx.revisions(&config.name).await?.into_iter().filter(|revision| revision.revision > last);
    let mut others = since.filter(|revision| revision.created_by.as_deref() != Some(by));
    Ok(others.next().map(|revision| (last, revision.created_by)))
}

/// Enforces the limits per user and in total. Configurations that the server imports at its start are not limited.
async fn check_quota(unit: &mut UnitOfWork<'_>, bundle: &ConfigBundle) -> Result<(), ServiceError> {
    let limits = unit.context.policy.usage_limits;
    let new = bundle_bytes(&bundle.files).len() as u64;
    let by = unit.owner().to_owned();
    if by == Caller::system().owner {
        return Ok(());
    }
    if unit.tx.config_bytes(Some(&by)).await? + new > limits.config_bytes_per_user {
        return Err(ServiceError::LimitReached(ResourceLimit::ConfigsOfUser { max: limits.config_bytes_per_user }));
    }
    if unit.tx.config_bytes(None).await? + new > limits.config_bytes {
        return Err(ServiceError::LimitReached(ResourceLimit::Configs { max: limits.config_bytes }));
    }
    Ok(())
}

/// The bytes that a worker downloads, and whose SHA-256 names the bundle.
pub fn bundle_bytes(files: &BTreeMap<String, String>) -> Vec<u8> {
    serde_json::to_vec(&ConfigBundle { files: files.clone() }).expect("text by text")
}

/// Validates a bundle: names, sizes, that `config.json` is an object, and that it has no code unless that is allowed.
pub fn invalid_fields(bundle: &ConfigBundle, allow_code: bool) -> Vec<InvalidField> {
    let too_large =
        |items, limit: usize| vec![InvalidField::new("files", InvalidInput::TooMuch { items, limit: limit as u64 })];
    if bundle.files.len() > MAX_FILES {
        return too_large(LimitedItems::Files, MAX_FILES);
    }
    if bundle.files.values().map(String::len).sum::<usize>() > MAX_BUNDLE {
        return too_large(LimitedItems::ConfigBytes, MAX_BUNDLE);
    }
    let invalid_paths = bundle.files.keys().filter_map(|path| {
        let short_path = || truncate_path(path);
        let path_error = (!is_plain_path(path)).then(|| InvalidInput::Path(short_path()));
        path_error
            .or_else(|| (!allow_code && is_executable(path)).then(|| InvalidInput::Code(short_path())))
            .map(|invalid| (path, invalid))
    });
    let invalid_paths = invalid_paths.map(|(path, invalid)| InvalidField::new(file_field(path), invalid));
    invalid_paths
        .chain(invalid_config_json(bundle).map(|invalid| InvalidField::new(file_field(CONFIG_FILE), invalid)))
        .collect()
}

fn invalid_config_json(bundle: &ConfigBundle) -> Option<InvalidInput> {
    let Some(text) = bundle.files.get(CONFIG_FILE) else { return Some(InvalidInput::ConfigJsonMissing) };
    let file = CONFIG_FILE.to_owned();
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => None,
        Ok(_) => Some(InvalidInput::NotAJsonObject { file }),
        Err(error) => Some(InvalidInput::InvalidJson { file, error: error.to_string() }),
    }
}

fn checked_config_name(name: &str) -> Result<String, InvalidInput> {
    let name = checked_name(name)?;
    // `/configs/new` is the form for a new one.
    if is_plain_path(&name) && !name.contains('/') && name != "new" { Ok(name) } else { Err(InvalidInput::Name(name)) }
}

/// `num_processes` of a configuration, as `key` or `--key`.
pub fn num_processes(config: &StoredConfig) -> Option<u32> {
    let number = config_value(&json_object(config, CONFIG_FILE), "num_processes")?;
    number.as_u64().or_else(|| number.as_str()?.parse().ok()).and_then(|number| u32::try_from(number).ok())
}

/// The path of a configuration's data-loader file.
pub fn data_loader_file(config: &StoredConfig) -> Option<String> {
    let value = config_value(&json_object(config, CONFIG_FILE), "data_backend_config");
    config_files::resolve_data_loader(value.as_ref().and_then(Value::as_str), |file| config.files.contains_key(file))
}

/// The other files that a configuration refers to.
pub fn named_files(config: &StoredConfig) -> Vec<String> {
    let loader = data_loader_file(config);
    let file = |value: &Value| {
        let text = value.as_str().filter(|text| config_files::is_file_name(text))?;
        config_files::resolve(text, |file| config.files.contains_key(file))
    };
    let mut files: Vec<String> = json_object(config, CONFIG_FILE).values().filter_map(file).collect();
    files.retain(|file| file != CONFIG_FILE && Some(file) != loader.as_ref());
    files.sort();
    files.dedup();
    files
}

/// The names of the host directories that a configuration requires.
pub fn named_paths(config: &StoredConfig) -> Vec<String> {
    let mut names = BTreeSet::new();
    let is_json = |file: &&String| Path::new(file).extension().is_some_and(|extension| extension == "json");
    for file in config.files.keys().filter(is_json) {
        if let Some(content) = json_file(config, file) {
            collect_paths("", &content, &mut names);
        }
    }
    names.into_iter().collect()
}

fn collect_paths(key: &str, value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let host_directories = path_placeholders::placeholders(key, text)
                .filter(|name| !path_placeholders::JOB_PLACEHOLDERS.contains(name));
            names.extend(host_directories.map(str::to_owned));
        }
        Value::Array(list) => list.iter().for_each(|entry| collect_paths(key, entry, names)),
        Value::Object(map) => map.iter().for_each(|(key, entry)| collect_paths(key, entry, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub fn json_file(config: &StoredConfig, name: &str) -> Option<Value> {
    serde_json::from_str(config.files.get(name)?).ok()
}

/// A configuration's file as a JSON object; empty if it is none.
pub fn json_object(config: &StoredConfig, name: &str) -> Map<String, Value> {
    match json_file(config, name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

fn config_value(object: &Map<String, Value>, key: &str) -> Option<Value> {
    object.get(&resolve_key(object, key)).cloned()
}

pub fn config_view(config: &StoredConfig) -> ConfigView {
    let object = json_object(config, CONFIG_FILE);
    let summary_keys = ["model_type", "model_family", "max_train_steps", "learning_rate", "train_batch_size"];
    let summary_entry = |key: &str| {
        let text = match config_value(&object, key)? {
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
        summary: summary_keys.iter().filter_map(|key| summary_entry(key)).collect(),
    }
}
