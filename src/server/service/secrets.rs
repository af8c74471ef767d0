//! Secrets for jobs: they go in, and come out for an attempt only.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::WorkerId;
use app::domain::job::{Job, Report};
use app::domain::secret::{LONGEST, SHORTEST, is_given, variable};
use app::protocol::secrets::{JobSecrets, PutSecret, SecretView, SecretsPage};
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::access::Person;
use super::refusal::{Invalid, Refusal};
use super::reports::Subject;
use super::unit::{Caller, Unit};
use crate::store::secrets::StoredSecret;
use crate::store::{StoreError, Tx};

/// Whose the shared ones are.
const EVERYBODY: &str = "";
/// Which of them older agents get.
const HUB_TOKEN: &str = "HF_TOKEN";
/// The most that one person, or everybody, can keep.
pub const MOST: usize = 64;

impl Core {
    /// What is kept of those that somebody's jobs are given.
    pub async fn secrets_page(&self, person: &Person) -> Result<SecretsPage, Refusal> {
        let secrets = self.read().await?.secrets_for(&person.name).await?;
        Ok(SecretsPage { secrets: secrets.into_iter().map(view).collect() })
    }

    /// Sets one, in place of an earlier one of its name.
    pub async fn put_secret(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        name: &str,
        put: PutSecret,
    ) -> Result<SecretView, Refusal> {
        let name = variable(name).ok_or_else(|| Invalid::SecretName(name.chars().take(80).collect()))?;
        // Blanks around it come from copying.
        let value = put.value.trim();
        if !(SHORTEST..=LONGEST).contains(&value.len()) || value.contains('\0') {
            return Err(Invalid::Range { field: "value", allowed: "8 to 65536 bytes of text" }.into());
        }
        let owner = if put.shared { EVERYBODY } else { &person.name };
        let sealed = self.vault.seal(&*self.random, owner, &name, value)?;
        let secret = Arc::new(StoredSecret {
            owner: owner.to_owned(),
            name,
            sealed,
            updated_at: self.now(),
            updated_by: person.name.clone(),
            given_at: None,
        });
        let whose = listeners(person, put.shared);
        self.change(caller, move |unit| {
            let (secret, whose) = (Arc::clone(&secret), whose.clone());
            Box::pin(async move {
                let there = unit.tx.secrets_for(&secret.owner).await?;
                let others = there.iter().filter(|one| one.owner == secret.owner && one.name != secret.name);
                if others.count() >= MOST {
                    return Err(Invalid::TooMuch { what: "secrets", limit: MOST as u64 }.into());
                }
                unit.tx.put_secret(&secret).await?;
                unit.touch(whose.clone());
                let detail = json!({"owner": secret.owner, "key": secret.sealed.key_id});
                unit.record(Action::SecretSet, &secret.name, &detail).await?;
                Ok(view(StoredSecret::clone(&secret)))
            })
        })
        .await
    }

    /// Removes one. Attempts that run keep what they were given.
    pub async fn remove_secret(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        name: &str,
        shared: bool,
    ) -> Result<(), Refusal> {
        let owner = if shared { EVERYBODY } else { &person.name };
        let name = variable(name).unwrap_or_else(|| name.to_owned());
        let key = Arc::new((owner.to_owned(), name));
        let whose = listeners(person, shared);
        self.change(caller, move |unit| {
            let (key, whose) = (Arc::clone(&key), whose.clone());
            Box::pin(async move {
                let (owner, name) = &*key;
                match unit.tx.delete_secret(owner, name).await {
                    Err(StoreError::Conflict) => return Err(Refusal::NoSecret(name.clone())),
                    other => other?,
                }
                unit.touch(whose.clone());
                unit.record(Action::SecretRemoved, name, &json!({"owner": owner})).await
            })
        })
        .await
    }

    /// What an attempt is given, which is on record.
    pub async fn job_secrets(self: &Arc<Self>, caller: Caller, subject: Subject) -> Result<JobSecrets, Refusal> {
        let (core, subject) = (Arc::clone(self), Arc::new(subject));
        self.change(caller, move |unit| {
            let (core, subject) = (Arc::clone(&core), Arc::clone(&subject));
            Box::pin(async move {
                let job = unit.job(&subject.job).await?;
                let attempt = subject.attempt.unwrap_or(job.attempt);
                job.clone().reported(unit.now, &subject.worker, attempt, Report::Running)?;
                unit.answers(&job).await?;
                let given = given(unit.tx, &job).await?;
                let mut secrets = BTreeMap::new();
                for secret in &given {
                    secrets.insert(secret.name.clone(), core.unsealed(secret)?);
                    unit.tx.note_given(&secret.owner, &secret.name, unit.now).await?;
                }
                if !secrets.is_empty() {
                    let names: Vec<&String> = secrets.keys().collect();
                    let detail = json!({"attempt": attempt, "names": names});
                    unit.record(Action::SecretsGiven, job.id.as_str(), &detail).await?;
                }
                Ok(JobSecrets { secrets })
            })
        })
        .await
    }

    /// The hub's token for an older agent, which takes it from the offer.
    pub async fn hub_token(&self, tx: &mut dyn Tx, job: &Job) -> Result<Option<String>, Refusal> {
        let given = given(tx, job).await?;
        given.iter().find(|secret| secret.name == HUB_TOKEN).map(|secret| self.unsealed(secret)).transpose()
    }

    fn unsealed(&self, secret: &StoredSecret) -> Result<String, Refusal> {
        let opened = self.vault.open(&secret.owner, &secret.name, &secret.sealed);
        opened.map_err(|locked| Refusal::SecretUnreadable(secret.name.clone(), locked))
    }
}

/// Puts on record that an older agent gets the hub's token with the offer of this job.
pub async fn record_hub_token(unit: &mut Unit<'_>, job: &Job, worker: &WorkerId) -> Result<(), Refusal> {
    // The offer of a job whose secrets are gone has none.
    let given = match given(unit.tx, job).await {
        Err(Refusal::SecretGone(_)) => Vec::new(),
        other => other?,
    };
    let Some(secret) = given.iter().find(|secret| secret.name == HUB_TOKEN) else { return Ok(()) };
    unit.tx.note_given(&secret.owner, &secret.name, unit.now).await?;
    let detail = json!({"attempt": job.attempt, "names": [HUB_TOKEN], "worker": worker, "with_offer": true});
    unit.record(Action::SecretsGiven, job.id.as_str(), &detail).await
}

/// Who hears that a secret changed.
fn listeners(person: &Person, shared: bool) -> Topic {
    person.user.clone().filter(|_| !shared).map_or(Topic::Secrets, Topic::Access)
}

/// Refuses a submit that names a secret which whoever submits does not have.
pub async fn check_named(tx: &mut dyn Tx, owner: &str, wanted: Option<&[String]>) -> Result<(), Refusal> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Ok(()) };
    let there = tx.secrets_for(owner).await?;
    let is_there = |name: &&String| there.iter().any(|secret| Some(&secret.name) == variable(name).as_ref());
    match wanted.iter().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => Err(Refusal::NoSecret(name.chars().take(80).collect())),
    }
}

/// Those of these secrets that are shared; of all, if none are named.
pub async fn shared_of(tx: &mut dyn Tx, wanted: Option<&[String]>) -> Result<Vec<String>, Refusal> {
    let shared = tx.secrets_for(EVERYBODY).await?.into_iter().map(|secret| secret.name);
    Ok(shared.filter(|name| is_given(wanted, name)).collect())
}

/// The secrets of a job, one of each name: of its owner's own before a shared one.
async fn given(tx: &mut dyn Tx, job: &Job) -> Result<Vec<StoredSecret>, Refusal> {
    let wanted = job.spec.secrets.as_deref();
    let there = tx.secrets_for(&job.submitted_by).await?;
    let usable = |secret: &StoredSecret| !job.spec.shared_secrets_only || secret.owner == EVERYBODY;
    let there = there.into_iter().filter(|secret| usable(secret) && is_given(wanted, &secret.name));
    let by_name: BTreeMap<String, StoredSecret> = there.map(|secret| (secret.name.clone(), secret)).collect();
    match wanted.into_iter().flatten().find(|name| !by_name.contains_key(*name)) {
        None => Ok(by_name.into_values().collect()),
        Some(gone) => Err(Refusal::SecretGone(gone.clone())),
    }
}

fn view(secret: StoredSecret) -> SecretView {
    SecretView {
        shared: secret.owner == EVERYBODY,
        name: secret.name,
        updated_at: secret.updated_at,
        updated_by: secret.updated_by,
        given_at: secret.given_at,
    }
}
