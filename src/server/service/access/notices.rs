//! Notices to users about their accounts: unfamiliar sign-ins, and changes of credentials.

use std::sync::Arc;

use app::domain::ids::{SessionId, UserId};
use app::domain::notice::{LoginFamiliarity, NoticeKind, login_network};
use app::domain::time::Timestamp;
use app::protocol::access::notices::{NoticeView, NoticesPage};
use app::protocol::topic::Topic;

use super::login::BrowserInfo;
use super::{AuthMethod, DEVICE_LIFETIME, Principal};
use crate::service::access::AccessService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::access::StoredUser;
use crate::store::access::notices::StoredNotice;
use crate::tokens;

/// The number of notices kept per user.
pub const MAX_NOTICES: u32 = 50;

impl AccessService {
    /// Returns the caller's notices, newest first.
    pub async fn notices_page(&self, principal: &Principal) -> Result<NoticesPage, ServiceError> {
        let user = principal.account_id()?;
        let mut tx = self.context.read().await?;
        let (notices, sessions) = (tx.notices(&user).await?, tx.sessions(&user).await?);
        let is_open = |id: &SessionId| sessions.iter().any(|session| session.id == *id);
        let view = |notice: StoredNotice| NoticeView {
            kind: notice.kind.as_str().to_owned(),
            at: notice.at,
            host: notice.host,
            agent: notice.user_agent,
            actor: notice.actor,
            session: notice.session.filter(is_open),
        };
        Ok(NoticesPage { notices: notices.into_iter().map(view).collect() })
    }

    /// Removes the caller's notices up to the newest one seen.
    pub async fn read_notices(
        self: &Arc<Self>,
        caller: Caller,
        principal: &Principal,
        until: Timestamp,
    ) -> Result<(), ServiceError> {
        let user = principal.account_id()?;
        self.context
            .change(caller, move |unit| {
                let user = user.clone();
                Box::pin(async move {
                    unit.tx.clear_notices(&user, until).await?;
                    unit.notify(Topic::Access(user));
                    Ok(())
                })
            })
            .await
    }
}

pub(super) async fn add_notice(unit: &mut UnitOfWork<'_>, notice: &StoredNotice) -> Result<(), ServiceError> {
    unit.tx.add_notice(notice, MAX_NOTICES).await?;
    unit.notify(Topic::Access(notice.user.clone()));
    Ok(())
}

/// Adds a notice for a user about a change of their account, by themselves or by an admin.
pub(super) async fn add_change_notice(
    unit: &mut UnitOfWork<'_>,
    user: &UserId,
    kind: NoticeKind,
    by: &ChangeAuthor,
) -> Result<(), ServiceError> {
    let session = match &by.session {
        Some(id) => unit.tx.session(id).await?,
        None => None,
    };
    let (host, agent) = session.map(|session| (session.host, session.user_agent)).unwrap_or_default();
    let (actor, at) = (by.actor.clone(), unit.now);
    add_notice(unit, &StoredNotice { user: user.clone(), kind, host, user_agent: agent, actor, at, session: None })
        .await
}

/// Who changes an account, and in which session.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeAuthor {
    actor: String,
    session: Option<SessionId>,
}

impl ChangeAuthor {
    pub fn from_principal(principal: &Principal) -> Self {
        let session = match &principal.via {
            AuthMethod::Session(session) => Some(session.clone()),
            AuthMethod::Loopback | AuthMethod::Host | AuthMethod::Token { .. } => None,
        };
        Self { actor: principal.actor(), session }
    }

    /// A user during the sign-in, or an admin: only the name is known.
    pub fn named(actor: &str) -> Self {
        Self { actor: actor.to_owned(), session: None }
    }
}

/// Records the origin of a sign-in, and notifies the user if it is unfamiliar.
pub(super) async fn record_login(
    unit: &mut UnitOfWork<'_>,
    user: &StoredUser,
    browser: &BrowserInfo,
    session: &SessionId,
) -> Result<(), ServiceError> {
    let Ok(host) = browser.host.parse() else { return Ok(()) };
    let network = login_network(host).to_string();
    let known_networks = unit.tx.login_networks(&user.id).await?;
    let forget_before = Timestamp(unit.now.0 - DEVICE_LIFETIME.0);
    unit.tx.record_login_network(&user.id, &network, unit.now, forget_before).await?;
    let device = browser.device.as_deref();
    let device =
        device.and_then(|cookie| tokens::verify_device_cookie(&unit.context.token_signing_key, cookie, unit.now));
    let familiarity = LoginFamiliarity {
        has_logged_in: !known_networks.is_empty(),
        is_known_browser: device.is_some_and(|(owner, _)| owner == user.id),
        is_known_network: known_networks.contains(&network),
    };
    let Some(kind) = familiarity.notice() else { return Ok(()) };
    let notice = StoredNotice {
        user: user.id.clone(),
        kind,
        host: browser.host.clone(),
        user_agent: browser.stored_user_agent(),
        actor: user.name.clone(),
        at: unit.now,
        session: Some(session.clone()),
    };
    add_notice(unit, &notice).await
}
