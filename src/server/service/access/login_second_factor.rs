//! The second step of a sign-in: a code, a passkey, or the setup of an authenticator app.

use std::sync::Arc;

use app::domain::notice::NoticeKind;
use app::domain::passkey::PasskeyOrigin;
use app::domain::second_factor::{AvailableFactors, NextLoginStep};
use app::protocol::access::factors::TotpEnrollment;

use super::factors::{self, has_factor};
use super::login::{BrowserInfo, NewSession, PendingLogin, resolved_user};
use super::notices::add_notice;
use super::passkeys;
use crate::service::access::AccessService;
use crate::service::error::{FactorError, ServiceError};
use crate::service::unit_of_work::Caller;
use crate::store::access::StoredUser;
use crate::store::access::notices::StoredNotice;
use crate::store::access::passkeys::ChallengePurpose;
use crate::tokens;

impl AccessService {
    /// Creates a session for a pending sign-in and a code of the second factor.
    pub async fn log_in_with_code(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        code: &str,
        browser: BrowserInfo,
    ) -> Result<NewSession, ServiceError> {
        let (code, user) = (code.to_owned(), pending.user.clone());
        let session = self.open_session(caller, browser.clone(), move |unit| {
            let (pending, code) = (pending.clone(), code.clone());
            Box::pin(async move {
                let user = pending.reload_user(unit).await?;
                factors::use_code(unit, &user, &code).await?;
                Ok(resolved_user(user))
            })
        });
        let outcome = session.await;
        self.record_wrong_factor(user, &browser, outcome.as_ref().err()).await?;
        outcome
    }

    /// Creates a session for a pending sign-in and a passkey's signature. After a rejected one, another challenge is
    /// required.
    pub async fn log_in_with_passkey(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        cookie: &str,
        response: &str,
        browser: BrowserInfo,
    ) -> Result<NewSession, ServiceError> {
        let (user, retried_login) = (pending.user.clone(), pending.clone());
        let attempt = async {
            let verified =
                self.verify_passkey(ChallengePurpose::Login, &tokens::digest(cookie), &user.id, response).await?;
            let shared = Arc::new((pending, verified));
            let session = self.open_session(caller, browser.clone(), move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (pending, verified) = &*shared;
                    let user = pending.reload_user(unit).await?;
                    passkeys::use_passkey(unit, &user, verified).await?;
                    Ok(resolved_user(user))
                })
            });
            session.await
        };
        let outcome = attempt.await;
        if let Err(error) = &outcome {
            self.record_wrong_factor(user, &browser, Some(error)).await?;
            self.request_login_passkey(&retried_login, cookie, &browser).await?;
        }
        outcome
    }

    /// Creates a passkey challenge for a pending sign-in.
    pub(super) async fn request_login_passkey(
        self: &Arc<Self>,
        pending: &PendingLogin,
        cookie: &str,
        browser: &BrowserInfo,
    ) -> Result<(), ServiceError> {
        let holder = tokens::digest(cookie);
        self.request_passkey(&pending.user.id, ChallengePurpose::Login, &holder, browser.origin.as_ref()).await
    }

    /// Returns the second factors that a pending sign-in can use.
    pub async fn login_factors(
        &self,
        pending: &PendingLogin,
        cookie: &str,
        origin: Option<&PasskeyOrigin>,
    ) -> Result<AvailableFactors, ServiceError> {
        self.available_factors(&pending.user.id, ChallengePurpose::Login, &tokens::digest(cookie), origin).await
    }

    /// Returns what an authenticator app needs for its setup during the sign-in. Users with a second factor must use
    /// that one.
    pub async fn login_enrollment(&self, pending: &PendingLogin) -> Result<TotpEnrollment, ServiceError> {
        let next_step = self.required_step(&mut *self.context.read().await?, &pending.user).await?;
        if next_step != NextLoginStep::Enrollment {
            return Err(FactorError::AlreadyExists.into());
        }
        self.totp_enrollment(&pending.user.id).await
    }

    /// Creates a session for a pending sign-in that sets up an authenticator app; also returns the recovery codes,
    /// which are shown once.
    pub async fn log_in_with_enrollment(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        code: &str,
        browser: BrowserInfo,
    ) -> Result<(NewSession, Vec<String>), ServiceError> {
        let codes = factors::generate_codes(&*self.context.random);
        let shared = Arc::new((pending, code.to_owned(), factors::code_digests(&codes)));
        let session = self.open_session(caller, browser, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (pending, code, digests) = &*shared;
                let user = pending.reload_user(unit).await?;
                if has_factor(unit.tx, &user.id).await? {
                    return Err(FactorError::AlreadyExists.into());
                }
                factors::confirm_first_code(unit, &user, code, digests).await?;
                Ok(resolved_user(user))
            })
        });
        Ok((session.await?, codes))
    }

    /// Tells the account's owner that the password was correct and the second factor wrong.
    async fn record_wrong_factor(
        self: &Arc<Self>,
        user: StoredUser,
        browser: &BrowserInfo,
        error: Option<&ServiceError>,
    ) -> Result<(), ServiceError> {
        let kind = match error {
            Some(ServiceError::Factor(FactorError::WrongCode)) => NoticeKind::WrongCode,
            Some(ServiceError::Factor(FactorError::WrongPasskey)) => NoticeKind::WrongPasskey,
            Some(ServiceError::Factor(FactorError::PasskeyCopied)) => NoticeKind::PasskeyCopied,
            _ => return Ok(()),
        };
        let notice = Arc::new(StoredNotice {
            user: user.id,
            kind,
            host: browser.host.clone(),
            user_agent: browser.stored_user_agent(),
            actor: user.name,
            at: self.context.now(),
            session: None,
        });
        self.context
            .change(Caller::system(), move |unit| {
                let notice = Arc::clone(&notice);
                Box::pin(async move { add_notice(unit, &notice).await })
            })
            .await
    }
}
