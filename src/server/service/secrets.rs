//! Secrets of jobs: they can be written, and are readable only for an attempt.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::ids::WorkerId;
use app::domain::job::Job;
use app::domain::secret::{MAX_VALUE_BYTES, MIN_VALUE_BYTES, is_granted, variable_name};
use app::protocol::secrets::{JobSecrets, PutSecret, SecretView, SecretsPage};
use app::protocol::topic::Topic;
use serde_json::json;

use super::access::Principal;
use super::error::{InvalidInput, ServiceError};
use super::unit_of_work::{Caller, UnitOfWork};
use crate::service::ServiceContext;
use crate::service::attempt_ref::AttemptRef;
use crate::store::secrets::StoredSecret;
use crate::store::{StoreError, Tx};

/// The owner of shared secrets.
const SHARED_OWNER: &str = "";
/// The secret that older agents get.
const HUB_TOKEN: &str = "HF_TOKEN";
/// The maximum number of secrets per user, and of shared ones.
pub const MAX_SECRETS: usize = 64;

/// Secrets that jobs use.
pub struct SecretService {
    pub(super) context: Arc<ServiceContext>,
}

impl SecretService {
    /// Lists the secrets that a user's jobs can use, without their values.
    pub async fn secrets_page(&self, principal: &Principal) -> Result<SecretsPage, ServiceError> {
        let secrets = self.context.read().await?.secrets_for(&principal.name).await?;
        Ok(SecretsPage { secrets: secrets.into_iter().map(secret_view).collect() })
    }

    /// Creates or replaces a secret.
    pub async fn put_secret(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        name: &str,
        put: PutSecret,
    ) -> Result<SecretView, ServiceError> {
        let name = variable_name(name).ok_or_else(|| InvalidInput::SecretName(name.chars().take(80).collect()))?;
        // Surrounding blanks come from copying.
        let value = put.value.trim();
        if !(MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&value.len()) || value.contains('\0') {
            let allowed = AllowedValues::Text { min: MIN_VALUE_BYTES as u64, max: MAX_VALUE_BYTES as u64 };
            return Err(InvalidInput::OutOfRange { field: "value", allowed }.into());
        }
        let owner = if put.shared { SHARED_OWNER } else { &principal.name };
        let sealed = self.context.vault.seal(&*self.context.random, owner, &name, value)?;
        let secret = Arc::new(StoredSecret {
            owner: owner.to_owned(),
            name,
            sealed,
            updated_at: self.context.now(),
            updated_by: principal.name.clone(),
            delivered_at: None,
        });
        let topic = change_topic(principal, put.shared);
        self.context
            .change(caller, move |unit| {
                let (secret, topic) = (Arc::clone(&secret), topic.clone());
                Box::pin(async move {
                    let existing = unit.tx.secrets_for(&secret.owner).await?;
                    let others =
                        existing.iter().filter(|other| other.owner == secret.owner && other.name != secret.name);
                    if others.count() >= MAX_SECRETS {
                        return Err(
                            InvalidInput::TooMuch { items: LimitedItems::Secrets, limit: MAX_SECRETS as u64 }.into()
                        );
                    }
                    unit.tx.put_secret(&secret).await?;
                    unit.notify(topic.clone());
                    let detail = json!({"owner": secret.owner, "key": secret.sealed.key_id});
                    unit.record(AuditAction::SecretSet, &secret.name, &detail).await?;
                    Ok(secret_view(StoredSecret::clone(&secret)))
                })
            })
            .await
    }

    /// Deletes a secret. Running attempts keep the values they have.
    pub async fn remove_secret(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        name: &str,
        shared: bool,
    ) -> Result<(), ServiceError> {
        let owner = if shared { SHARED_OWNER } else { &principal.name };
        let name = variable_name(name).unwrap_or_else(|| name.to_owned());
        let key = Arc::new((owner.to_owned(), name));
        let topic = change_topic(principal, shared);
        self.context
            .change(caller, move |unit| {
                let (key, topic) = (Arc::clone(&key), topic.clone());
                Box::pin(async move {
                    let (owner, name) = &*key;
                    match unit.tx.delete_secret(owner, name).await {
                        Err(StoreError::Conflict) => return Err(ServiceError::SecretNotFound(name.clone())),
                        other => other?,
                    }
                    unit.notify(topic.clone());
                    unit.record(AuditAction::SecretRemoved, name, &json!({"owner": owner})).await
                })
            })
            .await
    }

    /// Returns the secrets of an attempt, and audits that.
    pub async fn job_secrets(
        self: &Arc<Self>,
        caller: Caller,
        attempt_ref: AttemptRef,
    ) -> Result<JobSecrets, ServiceError> {
        let attempt_ref = Arc::new(attempt_ref);
        self.context
            .change(caller, move |unit| {
                let attempt_ref = Arc::clone(&attempt_ref);
                Box::pin(async move {
                    let job = unit.job(&attempt_ref.job).await?;
                    let attempt = attempt_ref.attempt.unwrap_or(job.attempt);
                    job.check_current_attempt(&attempt_ref.worker, attempt)?;
                    unit.renew_fencing_delay(&job).await?;
                    let granted = resolve_job_secrets(unit.tx, &job).await?;
                    let mut secrets = BTreeMap::new();
                    for secret in &granted {
                        secrets.insert(secret.name.clone(), unseal(unit.context, secret)?);
                        unit.tx.record_delivery(&secret.owner, &secret.name, unit.now).await?;
                    }
                    if !secrets.is_empty() {
                        let names: Vec<&String> = secrets.keys().collect();
                        let detail = json!({"attempt": attempt, "names": names});
                        unit.record(AuditAction::SecretsDelivered, job.id.as_str(), &detail).await?;
                    }
                    Ok(JobSecrets { secrets })
                })
            })
            .await
    }
}

/// The Hugging Face token for an older agent, which takes it from the offer.
pub async fn hub_token(context: &ServiceContext, tx: &mut dyn Tx, job: &Job) -> Result<Option<String>, ServiceError> {
    let granted = resolve_job_secrets(tx, job).await?;
    granted.iter().find(|secret| secret.name == HUB_TOKEN).map(|secret| unseal(context, secret)).transpose()
}

fn unseal(context: &ServiceContext, secret: &StoredSecret) -> Result<String, ServiceError> {
    let value = context.vault.open(&secret.owner, &secret.name, &secret.sealed);
    value.map_err(|error| ServiceError::SecretUnreadable(secret.name.clone(), error))
}

/// Audits that an older agent gets the Hugging Face token with the offer of this job.
pub async fn record_hub_token(unit: &mut UnitOfWork<'_>, job: &Job, worker: &WorkerId) -> Result<(), ServiceError> {
    // The offer of a job whose secrets were deleted has none.
    let granted = match resolve_job_secrets(unit.tx, job).await {
        Err(ServiceError::SecretRemoved(_)) => Vec::new(),
        other => other?,
    };
    let Some(secret) = granted.iter().find(|secret| secret.name == HUB_TOKEN) else { return Ok(()) };
    unit.tx.record_delivery(&secret.owner, &secret.name, unit.now).await?;
    let detail = json!({"attempt": job.attempt, "names": [HUB_TOKEN], "worker": worker, "with_offer": true});
    unit.record(AuditAction::SecretsDelivered, job.id.as_str(), &detail).await
}

/// The topic to notify after a change of a secret.
fn change_topic(principal: &Principal, shared: bool) -> Topic {
    principal.user.clone().filter(|_| !shared).map_or(Topic::Secrets, Topic::Access)
}

/// Rejects a submit that names a secret which the submitter does not have.
pub async fn check_secret_names(tx: &mut dyn Tx, owner: &str, names: Option<&[String]>) -> Result<(), ServiceError> {
    let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(()) };
    let secrets = tx.secrets_for(owner).await?;
    let exists = |name: &&String| secrets.iter().any(|secret| Some(&secret.name) == variable_name(name).as_ref());
    match names.iter().find(|name| !exists(name)) {
        None => Ok(()),
        Some(name) => Err(ServiceError::SecretNotFound(name.chars().take(80).collect())),
    }
}

/// Returns which of these secrets are shared; of all, if none are named.
pub async fn shared_names(tx: &mut dyn Tx, names: Option<&[String]>) -> Result<Vec<String>, ServiceError> {
    let shared = tx.secrets_for(SHARED_OWNER).await?.into_iter().map(|secret| secret.name);
    Ok(shared.filter(|name| is_granted(names, name)).collect())
}

/// Resolves the secrets of a job, one per name: the owner's own take precedence over shared ones.
async fn resolve_job_secrets(tx: &mut dyn Tx, job: &Job) -> Result<Vec<StoredSecret>, ServiceError> {
    let names = job.spec.secrets.as_deref();
    let secrets = tx.secrets_for(&job.submitted_by).await?;
    let is_usable = |secret: &StoredSecret| !job.spec.shared_secrets_only || secret.owner == SHARED_OWNER;
    let secrets = secrets.into_iter().filter(|secret| is_usable(secret) && is_granted(names, &secret.name));
    let by_name: BTreeMap<String, StoredSecret> = secrets.map(|secret| (secret.name.clone(), secret)).collect();
    match names.into_iter().flatten().find(|name| !by_name.contains_key(*name)) {
        None => Ok(by_name.into_values().collect()),
        Some(name) => Err(ServiceError::SecretRemoved(name.clone())),
    }
}

fn secret_view(secret: StoredSecret) -> SecretView {
    SecretView {
        shared: secret.owner == SHARED_OWNER,
        name: secret.name,
        updated_at: secret.updated_at,
        updated_by: secret.updated_by,
        delivered_at: secret.delivered_at,
    }
}
