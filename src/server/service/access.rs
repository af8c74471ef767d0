//! Who may come in: admin API tokens, the one-time setup code, and browser sessions.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::time::Millis;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::Core;
use super::refusal::Refusal;
use super::unit::{Caller, Unit};
use crate::store::access::StoredSession;
use crate::tokens;

/// How long a browser stays logged in.
const SESSION: Millis = Millis::seconds(7 * 24 * 3_600);
const SETUP_CODE: &str = "setup_code";
const JOB_TOKEN_KEY: &str = "job_token_key";

/// Somebody who logged in.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// The session's secret, for a cookie.
    pub cookie: String,
    /// The first admin token, if a setup code was exchanged for it.
    pub new_token: Option<String>,
}

impl Core {
    /// The name that belongs to an API token.
    pub async fn authenticate_token(&self, token: &str) -> Result<String, Refusal> {
        let name = self.recent().await?.api_token(&tokens::digest(token.trim())).await?;
        name.ok_or(Refusal::WrongToken)
    }

    /// The name that belongs to a session's cookie, if it is not over.
    pub async fn authenticate_session(&self, cookie: &str) -> Result<Option<String>, Refusal> {
        let session = self.read().await?.session(&tokens::digest(cookie)).await?;
        Ok(session.filter(|session| session.expires_at > self.now()).map(|session| session.name))
    }

    /// Opens a session for an API token, or for the setup code, which is then used up.
    pub async fn log_in(self: &Arc<Self>, caller: Caller, secret: &str) -> Result<LoggedIn, Refusal> {
        let input = Arc::new((
            secret.trim().to_owned(),
            tokens::mint("ss_", &*self.random),
            tokens::mint("st_", &*self.random),
        ));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (secret, cookie, new_token) = &*input;
                log_in(unit, secret, cookie, new_token).await
            })
        })
        .await
    }

    /// Ends a session.
    pub async fn log_out(self: &Arc<Self>, caller: Caller, cookie: &str) -> Result<(), Refusal> {
        let digest = tokens::digest(cookie);
        self.change(caller, move |unit| {
            let digest = digest.clone();
            Box::pin(async move {
                if let Some(session) = unit.tx.session(&digest).await? {
                    unit.tx.delete_session(&digest).await?;
                    unit.record(Action::LoggedOut, &session.name, &json!({})).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// At start: takes the token that the environment names as the admin's, if it is not already.
    pub async fn bootstrap_token(self: &Arc<Self>, token: &str) -> Result<(), Refusal> {
        let digest = tokens::digest(token.trim());
        self.change(Caller::system(), move |unit| {
            let digest = digest.clone();
            Box::pin(async move {
                if unit.tx.api_token(&digest).await?.is_none() {
                    unit.tx.put_api_token("admin", &digest, unit.now).await?;
                    unit.tx.put_setting(SETUP_CODE, None).await?;
                    unit.record(Action::TokenBootstrapped, "admin", &json!({})).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// At start: a setup code to print, if nobody can log in yet. Each start makes a new one.
    pub async fn setup_code(self: &Arc<Self>) -> Result<Option<String>, Refusal> {
        let code = tokens::setup_code(&*self.random);
        self.change(Caller::system(), move |unit| {
            let code = code.clone();
            Box::pin(async move {
                if unit.tx.has_api_tokens().await? {
                    return Ok(None);
                }
                unit.tx.put_setting(SETUP_CODE, Some(&tokens::digest(&code))).await?;
                Ok(Some(code))
            })
        })
        .await
    }

    /// Removes sessions that are over.
    pub async fn sweep_sessions(self: &Arc<Self>) -> Result<(), Refusal> {
        self.change(Caller::system(), |unit| Box::pin(async move { Ok(unit.tx.sweep_sessions(unit.now).await?) })).await
    }
}

async fn log_in(unit: &mut Unit<'_>, secret: &str, cookie: &str, new_token: &str) -> Result<LoggedIn, Refusal> {
    let digest = tokens::digest(secret);
    let (name, new_token) = if let Some(name) = unit.tx.api_token(&digest).await? {
        (name, None)
    } else {
        let expected = unit.tx.setting(SETUP_CODE).await?;
        let fits = expected.is_some_and(|expected| expected.as_bytes().ct_eq(digest.as_bytes()).into());
        if !fits {
            return Err(Refusal::WrongToken);
        }
        unit.tx.put_setting(SETUP_CODE, None).await?;
        unit.tx.put_api_token("admin", &tokens::digest(new_token), unit.now).await?;
        unit.record(Action::SetupCompleted, "admin", &json!({})).await?;
        ("admin".to_owned(), Some(new_token.to_owned()))
    };
    let expires_at = unit.now + SESSION;
    let session =
        StoredSession { digest: tokens::digest(cookie), name: name.clone(), created_at: unit.now, expires_at };
    unit.tx.insert_session(&session).await?;
    unit.record(Action::LoggedIn, &name, &json!({})).await?;
    Ok(LoggedIn { cookie: cookie.to_owned(), new_token })
}

/// At start: the key that job tokens are derived from, made once for each database.
pub async fn job_token_key(
    store: &dyn crate::store::Store,
    random: &dyn crate::random::Random,
) -> Result<Vec<u8>, Refusal> {
    if let Some(key) = store.read().await?.setting(JOB_TOKEN_KEY).await? {
        return Ok(key.into_bytes());
    }
    let key = tokens::hex(&random.bytes::<32>());
    let value = key.clone();
    let write = store.write(Box::new(move |tx| {
        let value = value.clone();
        Box::pin(async move { tx.put_setting(JOB_TOKEN_KEY, Some(&value)).await })
    }));
    write.await?;
    Ok(key.into_bytes())
}
