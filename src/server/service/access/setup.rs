//! The first admin, and the server's own secrets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use app::domain::access::Role;
use app::domain::audit::AuditAction;
use app::domain::ids::{TokenId, UserId};
use app::protocol::topic::Topic;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::login::{BrowserInfo, LoginOutcome, PendingLogin};
use super::users::insert_user;
use crate::random::Random;
use crate::service::access::AccessService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::Store;
use crate::store::access::StoredToken;
use crate::tokens;

/// The setting with the digest of the setup code.
pub(super) const SETUP_CODE_SETTING: &str = "setup_code";
const TOKEN_SIGNING_KEY_SETTING: &str = "token_signing_key";
/// Owner and name of the bootstrap token.
const BOOTSTRAP_NAMES: (&str, &str) = ("admin", "bootstrap");

impl AccessService {
    /// Returns, at start, a new setup code to print if there is no user yet.
    pub async fn issue_setup_code(self: &Arc<Self>) -> Result<Option<String>, ServiceError> {
        let code = tokens::setup_code(&*self.context.random);
        let code = self.context.change(Caller::system(), move |unit| {
            let code = code.clone();
            Box::pin(async move {
                if !unit.tx.users().await?.is_empty() {
                    return Ok(None);
                }
                unit.tx.put_setting(SETUP_CODE_SETTING, Some(&tokens::digest(&code))).await?;
                Ok(Some(code))
            })
        });
        let code = code.await?;
        self.authenticator.setup_pending.store(code.is_some(), Ordering::Relaxed);
        Ok(code)
    }

    /// Creates the first admin with the setup code, and signs them in.
    pub async fn create_first_admin(
        self: &Arc<Self>,
        caller: Caller,
        code: &str,
        name: &str,
        password: &str,
        browser: BrowserInfo,
    ) -> Result<LoginOutcome, ServiceError> {
        self.check_new_user(name, Some(password)).await?;
        let hash = self.hash_password(password).await?;
        let id = UserId::new(self.context.now(), self.context.entropy());
        let (code, name, password_hash) = (tokens::digest(code.trim()), name.to_owned(), hash.clone());
        let user = self.context.change(caller.clone(), move |unit| {
            let (id, code, name, hash) = (id.clone(), code.clone(), name.clone(), hash.clone());
            Box::pin(async move {
                let expected = unit.tx.setting(SETUP_CODE_SETTING).await?;
                let is_correct = expected.is_some_and(|expected| expected.as_bytes().ct_eq(code.as_bytes()).into());
                if !is_correct {
                    return Err(ServiceError::WrongToken);
                }
                unit.tx.put_setting(SETUP_CODE_SETTING, None).await?;
                let user = insert_user(unit, id, &name, Role::Admin).await?;
                unit.tx.put_password(&user.id, &hash).await?;
                unit.record(AuditAction::SetupCompleted, &name, &json!({})).await?;
                Ok(user)
            })
        });
        let user = user.await?;
        self.authenticator.setup_pending.store(false, Ordering::Relaxed);
        self.begin_session(caller, PendingLogin::new(user, password_hash), browser).await
    }

    /// Adds, at start, the bootstrap token of the environment for the admin, unless it exists.
    pub async fn apply_bootstrap_token(self: &Arc<Self>, token: &str) -> Result<(), ServiceError> {
        let digest = tokens::digest(token.trim());
        let ids = (
            UserId::new(self.context.now(), self.context.entropy()),
            TokenId::new(self.context.now(), self.context.entropy()),
        );
        self.context
            .change(Caller::system(), move |unit| {
                let (digest, ids) = (digest.clone(), ids.clone());
                Box::pin(async move {
                    if unit.tx.resolve_token(&digest).await?.is_some() {
                        return Ok(());
                    }
                    put_bootstrap_token(unit, ids, &digest).await
                })
            })
            .await
    }
}

async fn put_bootstrap_token(
    unit: &mut UnitOfWork<'_>,
    ids: (UserId, TokenId),
    digest: &str,
) -> Result<(), ServiceError> {
    let (owner, name) = BOOTSTRAP_NAMES;
    let user = match unit.tx.user_by_name(owner).await? {
        Some(user) => user,
        None => insert_user(unit, ids.0, owner, Role::Admin).await?,
    };
    for old in unit.tx.api_tokens(&user.id).await?.into_iter().filter(|token| token.name == name) {
        unit.tx.delete_api_token(&old.id).await?;
        unit.notify(Topic::Access(user.id.clone()));
        unit.record(AuditAction::TokenRevoked, owner, &json!({"token": old.id, "name": name})).await?;
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
    unit.tx.put_setting(SETUP_CODE_SETTING, None).await?;
    unit.record(AuditAction::TokenBootstrapped, owner, &json!({"token": token.id})).await
}

/// Loads, at start, the key from which job tokens are derived; creates it once per database. Servers that start at the
/// same time get the same key.
pub async fn load_token_signing_key(store: &dyn Store, random: &dyn Random) -> Result<Vec<u8>, ServiceError> {
    let new_key = tokens::hex(&random.bytes::<32>());
    let key = Arc::new(Mutex::new(Vec::new()));
    let key_slot = Arc::clone(&key);
    let write = store.write(Box::new(move |tx| {
        let (new_key, key_slot) = (new_key.clone(), Arc::clone(&key_slot));
        Box::pin(async move {
            let existing = tx.setting(TOKEN_SIGNING_KEY_SETTING).await?;
            if existing.is_none() {
                tx.put_setting(TOKEN_SIGNING_KEY_SETTING, Some(&new_key)).await?;
            }
            *key_slot.lock().expect("no panic while it is held") = existing.unwrap_or(new_key).into_bytes();
            Ok(())
        })
    }));
    write.await?;
    Ok(std::mem::take(&mut *key.lock().expect("no panic while it is held")))
}
