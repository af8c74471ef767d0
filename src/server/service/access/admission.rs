//! Whether what somebody came with still opens what it opened, for streams that outlive their request.

use std::time::Duration;

use app::domain::access::Permissions;
use app::domain::ids::UserId;
use app::domain::time::{Millis, Timestamp};
use app::protocol::topic::Topic;

use super::{Person, permissions};
use crate::clock::past;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::store::Tx;
use crate::store::access::Opened;

/// So often it is looked without a bell: a session that nobody uses ends by itself.
const LOOK: Duration = Duration::from_mins(1);
/// After so long it is looked again when the database did not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// What somebody came with: its SHA-256, in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticket {
    /// An API token.
    Token(String),
    /// A session's cookie.
    Cookie(String),
}

impl Ticket {
    /// What it opens, if it was not taken away.
    async fn opens(&self, tx: &mut dyn Tx) -> Result<Option<Opened>, Refusal> {
        Ok(match self {
            Self::Token(digest) => tx.by_token(digest).await?,
            Self::Cookie(digest) => tx.by_cookie(digest).await?,
        })
    }
}

/// Somebody who was let in, and what they may be let out by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    ticket: Ticket,
    user: UserId,
    permissions: Permissions,
}

impl Admission {
    /// Of a person; none for whoever needs nothing to come in.
    pub fn of(person: &Person) -> Option<Self> {
        Some(Self { ticket: person.ticket.clone()?, user: person.user.clone()?, permissions: person.permissions })
    }

    /// What they may do.
    pub const fn permissions(&self) -> Permissions {
        self.permissions
    }

    /// Whether they would be let in now, for as much as then; a session ends after `idle` without use.
    pub async fn holds(&self, tx: &mut dyn Tx, now: Timestamp, idle: Millis) -> Result<bool, Refusal> {
        let opened = self.ticket.opens(tx).await?;
        Ok(opened.and_then(|opened| permissions(&opened, now, idle)) == Some(self.permissions))
    }
}

impl Core {
    /// What a ticket opens, if it was not taken away.
    pub(super) async fn opened(&self, ticket: &Ticket) -> Result<Option<Opened>, Refusal> {
        ticket.opens(&mut *self.recent().await?).await
    }

    /// Whether somebody who was let in would be let in now, for as much as then.
    pub async fn still_holds(&self, admission: &Admission) -> Result<bool, Refusal> {
        admission.holds(&mut *self.recent().await?, self.now(), self.policy.accounts.session_idle).await
    }

    /// Comes to an end when this admission does: its token or session was taken away or is over, its person is let in
    /// no more, or may do other things than when they came.
    pub async fn until_shut(&self, admission: &Admission) {
        let idle = self.policy.accounts.session_idle;
        let mut bell = self.hub.follow(&Topic::Access(admission.user.clone()));
        loop {
            bell.mark_unchanged();
            let now = self.now();
            let wait = match self.opened(&admission.ticket).await {
                Err(_) => AGAIN,
                Ok(None) => return,
                Ok(Some(opened)) => {
                    if permissions(&opened, now, idle) != Some(admission.permissions) {
                        return;
                    }
                    end(&opened, idle).map_or(LOOK, |end| LOOK.min(past(end - now)))
                }
            };
            tokio::select! {
                rung = bell.changed() => if rung.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// When it is over by itself.
fn end(opened: &Opened, idle: Millis) -> Option<Timestamp> {
    let token = opened.token.as_ref().and_then(|token| token.expires_at);
    let session = opened.session.as_ref().map(|session| session.expires_at.min(session.seen_at + idle));
    [token, session].into_iter().flatten().min()
}
