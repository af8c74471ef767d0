//! The login's second step: a code, a passkey, or setting an authenticator app up.

use std::sync::Arc;

use app::domain::factor::{AfterPassword, Ways};
use app::domain::notice::NoticeKind;
use app::domain::passkey::Origin;
use app::protocol::factors::TotpEnrolment;

use super::factors::{self, has_factor};
use super::login::{Browser, LoggedIn, PendingLogin, opened};
use super::notices::notify;
use super::passkeys;
use crate::service::Core;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::service::unit::Caller;
use crate::store::access::StoredUser;
use crate::store::notices::StoredNotice;
use crate::store::passkeys::Purpose;
use crate::tokens;

impl Core {
    /// Opens a session for whoever has given the password, with a code of the second factor.
    pub async fn log_in_with_code(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        code: &str,
        browser: Browser,
    ) -> Result<LoggedIn, Refusal> {
        let (code, who) = (code.to_owned(), pending.user.clone());
        let opened = self.open_session(caller, browser.clone(), move |unit| {
            let (pending, code) = (pending.clone(), code.clone());
            Box::pin(async move {
                let user = pending.still(unit).await?;
                factors::use_code(unit, &user, &code).await?;
                Ok(opened(user))
            })
        });
        let outcome = opened.await;
        self.note_wrong_factor(who, &browser, outcome.as_ref().err()).await?;
        outcome
    }

    /// Opens a session for whoever has given the password, with what a passkey has signed. If it was refused, another try
    /// is asked for.
    pub async fn log_in_with_passkey(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        cookie: &str,
        answer: &str,
        browser: Browser,
    ) -> Result<LoggedIn, Refusal> {
        let (who, again) = (pending.user.clone(), pending.clone());
        let tried = async {
            let shown = self.shown(Purpose::Login, &tokens::digest(cookie), &who.id, answer).await?;
            let shared = Arc::new((pending, shown));
            let opened = self.open_session(caller, browser.clone(), move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (pending, shown) = &*shared;
                    let user = pending.still(unit).await?;
                    passkeys::use_passkey(unit, &user, shown).await?;
                    Ok(opened(user))
                })
            });
            opened.await
        };
        let outcome = tried.await;
        if let Err(refusal) = &outcome {
            self.note_wrong_factor(who, &browser, Some(refusal)).await?;
            self.ask_at_login(&again, cookie, &browser).await?;
        }
        outcome
    }

    /// Asks for one of the passkeys of whoever has given the password.
    pub(super) async fn ask_at_login(
        self: &Arc<Self>,
        pending: &PendingLogin,
        cookie: &str,
        browser: &Browser,
    ) -> Result<(), Refusal> {
        let holder = tokens::digest(cookie);
        self.ask_for_passkey(&pending.user.id, Purpose::Login, &holder, browser.origin.as_ref()).await
    }

    /// By what whoever has given the password can go on.
    pub async fn ways_at_login(
        &self,
        pending: &PendingLogin,
        cookie: &str,
        origin: Option<&Origin>,
    ) -> Result<Ways, Refusal> {
        self.ways_of(&pending.user.id, Purpose::Login, &tokens::digest(cookie), origin).await
    }

    /// What an app is given that is set up at the login. Who has a second factor has to give that one.
    pub async fn enrolment_at_login(&self, pending: &PendingLogin) -> Result<TotpEnrolment, Refusal> {
        let takes = self.takes(&mut *self.read().await?, &pending.user).await?;
        if takes != AfterPassword::Enrolment {
            return Err(FactorRefusal::Exists.into());
        }
        self.enrolment_of(&pending.user.id).await
    }

    /// Opens a session for whoever has given the password and now sets up an authenticator app; also returns the recovery
    /// codes, which are shown this once.
    pub async fn log_in_by_enrolling(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        code: &str,
        browser: Browser,
    ) -> Result<(LoggedIn, Vec<String>), Refusal> {
        let codes = factors::new_codes(&*self.random);
        let shared = Arc::new((pending, code.to_owned(), factors::digests(&codes)));
        let logged_in = self.open_session(caller, browser, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (pending, code, digests) = &*shared;
                let user = pending.still(unit).await?;
                if has_factor(unit.tx, &user.id).await? {
                    return Err(FactorRefusal::Exists.into());
                }
                factors::confirm(unit, &user, code, digests).await?;
                Ok(opened(user))
            })
        });
        Ok((logged_in.await?, codes))
    }

    /// The password was right and the second factor wrong: its owner should know.
    async fn note_wrong_factor(
        self: &Arc<Self>,
        user: StoredUser,
        browser: &Browser,
        refusal: Option<&Refusal>,
    ) -> Result<(), Refusal> {
        let kind = match refusal {
            Some(Refusal::Factor(FactorRefusal::WrongCode)) => NoticeKind::WrongCode,
            Some(Refusal::Factor(FactorRefusal::WrongPasskey)) => NoticeKind::WrongPasskey,
            Some(Refusal::Factor(FactorRefusal::PasskeyCopied)) => NoticeKind::PasskeyCopied,
            _ => return Ok(()),
        };
        let notice = Arc::new(StoredNotice {
            user: user.id,
            kind,
            host: browser.host.clone(),
            agent: browser.kept_agent(),
            actor: user.name,
            at: self.now(),
            session: None,
        });
        self.change(Caller::system(), move |unit| {
            let notice = Arc::clone(&notice);
            Box::pin(async move { notify(unit, &notice).await })
        })
        .await
    }
}
