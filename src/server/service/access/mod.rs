//! Who may come in, and what they may do.

mod admission;
mod blocklist;
mod factors;
mod login;
pub mod notices;
mod operator;
mod passkeys;
mod passwords;
mod policy;
mod second_step;
mod sessions;
mod setup;
mod tokens;
mod users;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use app::domain::access::{Permission, Permissions};
use app::domain::ids::{JobId, SessionId, TokenId, UserId};
use app::domain::time::{Millis, Timestamp};
use tokio::sync::Semaphore;

pub use self::admission::{Admission, Ticket};
pub use self::blocklist::Blocklist;
pub use self::login::{Browser, LoggedIn, Login, PendingLogin};
pub use self::policy::AccountPolicy;
pub use self::sessions::Proof;
pub use self::setup::job_token_key;
use super::Core;
use super::rates::Rates;
use super::refusal::Refusal;
use crate::store::access::{Opened, StoredSession, Used};

/// How long a browser is known in which somebody has logged in.
pub const DEVICE: Millis = Millis::seconds(365 * 24 * 3_600);

/// How long a right password counts at the login until the code of the second factor is given.
pub const PENDING: Millis = Millis::seconds(10 * 60);

/// How long a password that was given counts for what a thief of a browser's session must not do: to make tokens, to
/// change people, and to take a worker's token or the worker away.
pub const PROOF: Millis = Millis::seconds(15 * 60);

/// A person, or a script of theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name: whose jobs they are.
    pub name: String,
    /// The person; none for whoever reaches a server without accounts.
    pub user: Option<UserId>,
    /// How they came in.
    pub via: Via,
    /// What they may do.
    pub permissions: Permissions,
    /// When who came with a browser last gave their password; none for who came otherwise.
    pub proved_at: Option<Timestamp>,
    /// How many notices about their account are unread.
    pub unread_notices: u64,
    /// What they came with; none for whoever needs nothing, or is not let in by the database.
    pub ticket: Option<Ticket>,
}

/// How somebody came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// Over the loopback address of a server without accounts.
    Loopback,
    /// With an API token of this name.
    Token {
        /// Its id.
        id: TokenId,
        /// What its owner calls it.
        name: String,
    },
    /// With a browser.
    Session(SessionId),
    /// From the server's own host, as its user or root.
    Host,
}

/// What a route is for, and so what it takes to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// To be somebody.
    Login,
    /// One of these permissions.
    AnyOf(&'static [Permission]),
    /// A token, for itself, or one of these permissions. The use case checks which token is meant.
    OwnTokenOr(&'static [Permission]),
    /// This permission.
    To(Permission),
    /// This permission, of somebody who has just proved who they are.
    ToProved(Permission),
    /// To see jobs: all of them, or those of one's own.
    SeeJobs,
    /// To see the job that is named.
    SeeJob,
    /// To see the job that is named, and to cancel it.
    CancelJob,
    /// To see the job that is named, and this permission.
    SeeJobAnd(Permission),
}

impl Person {
    /// Whoever reaches the loopback address of a server without accounts.
    pub fn on_loopback() -> Self {
        Self {
            name: "local-user".to_owned(),
            user: None,
            via: Via::Loopback,
            permissions: Permissions::all(),
            proved_at: None,
            unread_notices: 0,
            ticket: None,
        }
    }

    /// As they stand in the audit trail: the name, and the token that they used.
    pub fn actor(&self) -> String {
        match &self.via {
            Via::Token { name, .. } => format!("{}/{name}", self.name),
            Via::Loopback | Via::Session(_) | Via::Host => self.name.clone(),
        }
    }

    /// The API token that they came with.
    pub const fn token(&self) -> Option<&TokenId> {
        match &self.via {
            Via::Token { id, .. } => Some(id),
            Via::Loopback | Via::Session(_) | Via::Host => None,
        }
    }

    /// Whose API tokens, sessions and password theirs are.
    pub fn account(&self) -> Result<UserId, Refusal> {
        let none = if self.via == Via::Host { Refusal::NoPerson } else { Refusal::NoAccounts };
        self.user.clone().ok_or(none)
    }

    /// Refuses who may not do this.
    pub fn need(&self, permission: Permission) -> Result<(), Refusal> {
        if self.permissions.has(permission) { Ok(()) } else { Err(Refusal::Denied(permission)) }
    }

    /// Refuses who may do none of these; names the first.
    fn need_one(&self, permissions: &[Permission]) -> Result<(), Refusal> {
        if permissions.iter().any(|one| self.permissions.has(*one)) {
            return Ok(());
        }
        permissions.first().map_or(Ok(()), |first| self.need(*first))
    }

    /// Whether this is a token, or a session, which a token may have opened.
    const fn came_with_token(&self) -> bool {
        matches!(self.via, Via::Token { .. } | Via::Session(_))
    }

    /// Whether tokens and sessions of this person can be managed: one's own, or those of others.
    pub fn manages(&self, user: &UserId) -> bool {
        let own = self.user.as_ref() == Some(user) && self.permissions.has(Permission::AccountManage);
        own || self.permissions.has(Permission::AdminUsers)
    }

    /// Whose jobs they see: everybody's, if it is nobody's in particular.
    pub fn sees_only(&self) -> Option<String> {
        (!self.permissions.has(Permission::JobViewAll)).then(|| self.name.clone())
    }
}

/// What the server keeps in memory about those who come in.
pub struct Doors {
    /// Whether nobody can log in yet, so that the login page asks for the setup code.
    pub unclaimed: AtomicBool,
    /// The digest of the token for the server's own host.
    operator: Mutex<Option<String>>,
    /// What was used since it was last written down.
    used: Mutex<HashMap<String, Used>>,
    /// Who asks too often.
    pub rates: Rates,
    /// Passwords that the operator does not allow.
    pub blocklist: Blocklist,
    /// Hashing a password takes a core for a while, and much memory: so many at once.
    hashing: Arc<Semaphore>,
}

impl Default for Doors {
    fn default() -> Self {
        Self {
            unclaimed: AtomicBool::default(),
            operator: Mutex::default(),
            used: Mutex::default(),
            rates: Rates::default(),
            blocklist: Blocklist::default(),
            hashing: Arc::new(Semaphore::new(2)),
        }
    }
}

impl Core {
    /// Whose a ticket is, if it opens.
    pub async fn authenticate(&self, ticket: &Ticket) -> Result<Option<Person>, Refusal> {
        Ok(self.opened(ticket).await?.and_then(|opened| self.let_in(&opened, ticket)))
    }

    /// Whether somebody may do what a route is for, to the job that is named.
    ///
    /// A job that they may not see is not there for them.
    pub async fn permit(&self, person: &Person, needs: Needs, job: Option<&JobId>) -> Result<(), Refusal> {
        match needs {
            Needs::Login => return Ok(()),
            Needs::OwnTokenOr(_) if person.came_with_token() => return Ok(()),
            Needs::AnyOf(permissions) | Needs::OwnTokenOr(permissions) => return person.need_one(permissions),
            Needs::To(permission) => return person.need(permission),
            Needs::ToProved(permission) => {
                person.need(permission)?;
                return self.need_proof(person);
            }
            Needs::SeeJobs => return person.need(Permission::JobViewOwn),
            Needs::SeeJob => {}
            Needs::CancelJob => person.need(Permission::JobCancelOwn)?,
            Needs::SeeJobAnd(permission) => person.need(permission)?,
        }
        person.need(Permission::JobViewOwn)?;
        let Some(job) = job else { return Ok(()) };
        let reaches_all = needs != Needs::CancelJob || person.permissions.has(Permission::JobCancelAll);
        if reaches_all && person.permissions.has(Permission::JobViewAll) {
            return Ok(());
        }
        let owner = self.recent().await?.job(job).await?.map(|job| job.submitted_by);
        if owner.is_none_or(|owner| owner == person.name) {
            return Ok(());
        }
        person.need(Permission::JobViewAll).map_err(|_| Refusal::NoJob(job.clone()))?;
        person.need(Permission::JobCancelAll)
    }

    /// Refuses a browser's session whose password was given too long ago.
    pub fn need_proof(&self, person: &Person) -> Result<(), Refusal> {
        let old = person.proved_at.is_some_and(|at| at + PROOF <= self.now());
        if old { Err(Refusal::ProofNeeded) } else { Ok(()) }
    }

    /// Writes down when tokens and sessions were last used.
    pub async fn flush_used(&self) -> Result<(), Refusal> {
        let used: Vec<Used> = {
            let mut used = self.doors.used.lock().expect("no panic while it is held");
            std::mem::take(&mut *used).into_values().collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        let used = Arc::new(used);
        let write = self.store.write(Box::new(move |tx| {
            let used = Arc::clone(&used);
            Box::pin(async move { tx.note_used(&used).await })
        }));
        Ok(write.await?)
    }

    /// Who it is, if the door is not shut to them; that it was used is noted.
    fn let_in(&self, opened: &Opened, ticket: &Ticket) -> Option<Person> {
        let now = self.now();
        let permissions = permissions(opened, now, self.policy.accounts.session_idle)?;
        let (user, token) = (&opened.user, opened.token.as_ref());
        let via = match (&opened.session, token) {
            (Some(session), _) => {
                self.used(session.id.as_str(), Used::Session(session.id.clone(), now));
                Via::Session(session.id.clone())
            }
            (None, Some(token)) => {
                self.used(token.id.as_str(), Used::Token(token.id.clone(), now));
                Via::Token { id: token.id.clone(), name: token.name.clone() }
            }
            (None, None) => return None,
        };
        let proved_at = opened.session.as_ref().map(|session| session.proved_at);
        let ticket = Some(ticket.clone());
        Some(Person {
            name: user.name.clone(),
            user: Some(user.id.clone()),
            via,
            permissions,
            proved_at,
            unread_notices: user.unread_notices,
            ticket,
        })
    }

    fn used(&self, key: &str, used: Used) {
        self.doors.used.lock().expect("no panic while it is held").insert(key.to_owned(), used);
    }
}

/// What somebody may do with what they came with; none if it opens nothing any more.
fn permissions(opened: &Opened, now: Timestamp, idle: Millis) -> Option<Permissions> {
    let over = |session: &StoredSession| session.expires_at <= now || session.seen_at + idle <= now;
    let expired = opened.token.as_ref().and_then(|token| token.expires_at).is_some_and(|end| end <= now);
    if opened.user.disabled_at.is_some() || expired || opened.session.as_deref().is_some_and(over) {
        return None;
    }
    let scopes = opened.token.as_ref().and_then(|token| token.scopes);
    let role = opened.user.role.permissions();
    Some(scopes.map_or(role, |scopes| role.and(scopes)))
}
