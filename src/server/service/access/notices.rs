//! What people are told of their accounts: unfamiliar logins, and changes of how they log in.

use std::sync::Arc;

use app::domain::ids::{SessionId, UserId};
use app::domain::notice::{Familiarity, NoticeKind, network_of};
use app::domain::time::Timestamp;
use app::protocol::notices::{NoticeView, NoticesPage};
use app::protocol::topic::Topic;

use super::login::Browser;
use super::{DEVICE, Person, Via};
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};
use crate::store::access::StoredUser;
use crate::store::notices::StoredNotice;
use crate::tokens;

/// How many are kept of a person.
pub const MOST: u32 = 50;

impl Core {
    /// One's own notices, the newest first.
    pub async fn notices_page(&self, person: &Person) -> Result<NoticesPage, Refusal> {
        let user = person.account()?;
        let mut tx = self.read().await?;
        let (notices, sessions) = (tx.notices(&user).await?, tx.sessions(&user).await?);
        let lives = |id: &SessionId| sessions.iter().any(|session| session.id == *id);
        let view = |notice: StoredNotice| NoticeView {
            kind: notice.kind.as_str().to_owned(),
            at: notice.at,
            host: notice.host,
            agent: notice.agent,
            actor: notice.actor,
            session: notice.session.filter(lives),
        };
        Ok(NoticesPage { notices: notices.into_iter().map(view).collect() })
    }

    /// Removes one's own notices up to the newest that was seen.
    pub async fn read_notices(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        until: Timestamp,
    ) -> Result<(), Refusal> {
        let user = person.account()?;
        self.change(caller, move |unit| {
            let user = user.clone();
            Box::pin(async move {
                unit.tx.clear_notices(&user, until).await?;
                unit.touch(Topic::Access(user));
                Ok(())
            })
        })
        .await
    }
}

/// Adds a notice.
pub(super) async fn notify(unit: &mut Unit<'_>, notice: &StoredNotice) -> Result<(), Refusal> {
    unit.tx.add_notice(notice, MOST).await?;
    unit.touch(Topic::Access(notice.user.clone()));
    Ok(())
}

/// Adds a notice about what somebody did to their own account, or an admin to theirs.
pub(super) async fn notify_of_change(
    unit: &mut Unit<'_>,
    user: &UserId,
    kind: NoticeKind,
    by: &Changer,
) -> Result<(), Refusal> {
    let session = match &by.session {
        Some(id) => unit.tx.session(id).await?,
        None => None,
    };
    let (host, agent) = session.map(|session| (session.host, session.agent)).unwrap_or_default();
    let (actor, at) = (by.actor.clone(), unit.now);
    notify(unit, &StoredNotice { user: user.clone(), kind, host, agent, actor, at, session: None }).await
}

/// Who changes an account, and in which session.
#[derive(Debug, Clone, Default)]
pub(super) struct Changer {
    actor: String,
    session: Option<SessionId>,
}

impl Changer {
    /// A person.
    pub fn of(person: &Person) -> Self {
        let session = match &person.via {
            Via::Session(session) => Some(session.clone()),
            Via::Loopback | Via::Host | Via::Token { .. } => None,
        };
        Self { actor: person.actor(), session }
    }

    /// Somebody at the login, or an admin: only the name is known.
    pub fn named(actor: &str) -> Self {
        Self { actor: actor.to_owned(), session: None }
    }
}

/// Remembers from where somebody logs in, and tells them if it looks unfamiliar.
pub(super) async fn note_login(
    unit: &mut Unit<'_>,
    user: &StoredUser,
    browser: &Browser,
    session: &SessionId,
) -> Result<(), Refusal> {
    let Ok(host) = browser.host.parse() else { return Ok(()) };
    let network = network_of(host).to_string();
    let before = unit.tx.login_networks(&user.id).await?;
    let forget = Timestamp(unit.now.0 - DEVICE.0);
    unit.tx.note_login_network(&user.id, &network, unit.now, forget).await?;
    let known = browser.device.as_deref();
    let known = known.and_then(|cookie| tokens::known_device(&unit.core.job_token_key, cookie, unit.now));
    let familiarity = Familiarity {
        person: !before.is_empty(),
        browser: known.is_some_and(|(owner, _)| owner == user.id),
        network: before.contains(&network),
    };
    let Some(kind) = familiarity.notice() else { return Ok(()) };
    let notice = StoredNotice {
        user: user.id.clone(),
        kind,
        host: browser.host.clone(),
        agent: browser.kept_agent(),
        actor: user.name.clone(),
        at: unit.now,
        session: Some(session.clone()),
    };
    notify(unit, &notice).await
}
