//! The first admin, and the server's own secrets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use app::domain::access::Role;
use app::domain::audit::Action;
use app::domain::ids::{TokenId, UserId};
use app::protocol::topic::Topic;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::login::{Browser, Login, PendingLogin};
use super::users::{check_name, new_user};
use crate::random::Random;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};
use crate::store::Store;
use crate::store::access::StoredToken;
use crate::tokens;

/// The setting that holds the setup code's digest.
pub(super) const SETUP_CODE: &str = "setup_code";
const JOB_TOKEN_KEY: &str = "job_token_key";
/// Who has the token of the environment, and what it is called.
const BOOTSTRAPPED: (&str, &str) = ("admin", "bootstrap");

impl Core {
    /// At start: a setup code to print, if nobody can log in yet. Each start makes a new one.
    pub async fn setup_code(self: &Arc<Self>) -> Result<Option<String>, Refusal> {
        let code = tokens::setup_code(&*self.random);
        let code = self.change(Caller::system(), move |unit| {
            let code = code.clone();
            Box::pin(async move {
                if !unit.tx.users().await?.is_empty() {
                    return Ok(None);
                }
                unit.tx.put_setting(SETUP_CODE, Some(&tokens::digest(&code))).await?;
                Ok(Some(code))
            })
        });
        let code = code.await?;
        self.doors.unclaimed.store(code.is_some(), Ordering::Relaxed);
        Ok(code)
    }

    /// Exchanges the setup code for the first admin, whose login begins at once.
    pub async fn set_up(
        self: &Arc<Self>,
        caller: Caller,
        code: &str,
        name: &str,
        password: &str,
        browser: Browser,
    ) -> Result<Login, Refusal> {
        check_name(name)?;
        self.check_password(name, password).await?;
        let hash = self.hashed(password).await?;
        let id = UserId::new(self.now(), self.entropy());
        let (code, name, kept) = (tokens::digest(code.trim()), name.to_owned(), hash.clone());
        let user = self.change(caller.clone(), move |unit| {
            let (id, code, name, hash) = (id.clone(), code.clone(), name.clone(), hash.clone());
            Box::pin(async move {
                let expected = unit.tx.setting(SETUP_CODE).await?;
                let fits = expected.is_some_and(|expected| expected.as_bytes().ct_eq(code.as_bytes()).into());
                if !fits {
                    return Err(Refusal::WrongToken);
                }
                unit.tx.put_setting(SETUP_CODE, None).await?;
                let user = new_user(unit, id, &name, Role::Admin).await?;
                unit.tx.put_password(&user.id, &hash).await?;
                unit.record(Action::SetupCompleted, &name, &json!({})).await?;
                Ok(user)
            })
        });
        let user = user.await?;
        self.doors.unclaimed.store(false, Ordering::Relaxed);
        self.begin_session(caller, PendingLogin::of(user, kept), browser).await
    }

    /// At start: takes the token that the environment names as the admin's, if it is not already.
    pub async fn bootstrap_token(self: &Arc<Self>, token: &str) -> Result<(), Refusal> {
        let digest = tokens::digest(token.trim());
        let ids = (UserId::new(self.now(), self.entropy()), TokenId::new(self.now(), self.entropy()));
        self.change(Caller::system(), move |unit| {
            let (digest, ids) = (digest.clone(), ids.clone());
            Box::pin(async move {
                if unit.tx.by_token(&digest).await?.is_some() {
                    return Ok(());
                }
                put_bootstrapped(unit, ids, &digest).await
            })
        })
        .await
    }
}

async fn put_bootstrapped(unit: &mut Unit<'_>, ids: (UserId, TokenId), digest: &str) -> Result<(), Refusal> {
    let (owner, name) = BOOTSTRAPPED;
    let user = match unit.tx.user_by_name(owner).await? {
        Some(user) => user,
        None => new_user(unit, ids.0, owner, Role::Admin).await?,
    };
    for old in unit.tx.api_tokens(&user.id).await?.into_iter().filter(|token| token.name == name) {
        unit.tx.delete_api_token(&old.id).await?;
        unit.touch(Topic::Access(user.id.clone()));
        unit.record(Action::TokenRevoked, owner, &json!({"token": old.id, "name": name})).await?;
    }
    let token = StoredToken {
        id: ids.1,
        user: user.id,
        name: name.to_owned(),
        scopes: None,
        created_at: unit.now,
        expires_at: None,
        used_at: None,
    };
    unit.tx.insert_api_token(&token, digest).await?;
    unit.tx.put_setting(SETUP_CODE, None).await?;
    unit.record(Action::TokenBootstrapped, owner, &json!({"token": token.id})).await
}

/// At start: the key that job tokens are derived from, made once for each database. Servers that start at once find the
/// same one.
pub async fn job_token_key(store: &dyn Store, random: &dyn Random) -> Result<Vec<u8>, Refusal> {
    let fresh = tokens::hex(&random.bytes::<32>());
    let found = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&found);
    let write = store.write(Box::new(move |tx| {
        let (fresh, note) = (fresh.clone(), Arc::clone(&note));
        Box::pin(async move {
            let kept = tx.setting(JOB_TOKEN_KEY).await?;
            if kept.is_none() {
                tx.put_setting(JOB_TOKEN_KEY, Some(&fresh)).await?;
            }
            *note.lock().expect("no panic while it is held") = kept.unwrap_or(fresh).into_bytes();
            Ok(())
        })
    }));
    write.await?;
    Ok(std::mem::take(&mut *found.lock().expect("no panic while it is held")))
}
