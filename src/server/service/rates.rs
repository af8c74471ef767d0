//! Who asks too often. Whoever is known has an allowance of their own, wherever they come from, so that a fleet behind
//! one address is not one caller; strangers share that of their network. What failed has a much smaller one.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use app::domain::access::is_name;
use app::domain::ids::WorkerId;
use app::domain::network::Network;
use app::domain::rate::{Allowances, Quota};
use app::domain::time::Millis;

use super::Core;
use super::access::{Person, Via};
use super::refusal::Refusal;

/// How often somebody may ask; without a quota, as often as they like.
#[derive(Debug, Clone, Copy)]
pub struct Quotas {
    /// A worker, an API token, or a session.
    pub caller: Option<Quota>,
    /// The strangers of a network.
    pub stranger: Option<Quota>,
    /// Tokens of a network that open nothing.
    pub wrong_token: Option<Quota>,
    /// Wrong passwords and codes from a network.
    pub wrong_password: Option<Quota>,
    /// Wrong passwords for a name, from wherever.
    pub wrong_password_of: Option<Quota>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self::new(1_000, 100, 10)
    }
}

impl Quotas {
    /// So many requests a second of a caller and of a network's strangers, so many wrong passwords a minute; 0 for as
    /// many as they like.
    pub fn new(caller: u32, stranger: u32, wrong_passwords: u32) -> Self {
        let some = |times: u32| (times > 0).then_some(times);
        let a_minute = |times: u32| Quota::a_minute(times, times.saturating_mul(3));
        Self {
            caller: some(caller).map(Quota::a_second),
            stranger: some(stranger).map(Quota::a_second),
            wrong_token: some(stranger).map(|times| Quota::a_minute(times.saturating_mul(3), times.saturating_mul(3))),
            wrong_password: some(wrong_passwords).map(a_minute),
            wrong_password_of: some(wrong_passwords).map(|times| a_minute(times.div_ceil(3))),
        }
    }
}

/// What was asked too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// Anything, by somebody who is known.
    OfCaller,
    /// What is open to everybody, by a network.
    OfStrangers,
    /// With tokens that open nothing, by a network.
    WrongTokens,
    /// With passwords or codes that are wrong, by a network or for a name.
    WrongPasswords,
}

impl TooMany {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::OfCaller, Self::OfStrangers, Self::WrongTokens, Self::WrongPasswords];

    /// Its word in the trail and in figures.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OfCaller => "caller",
            Self::OfStrangers => "strangers",
            Self::WrongTokens => "wrong_tokens",
            Self::WrongPasswords => "wrong_passwords",
        }
    }
}

/// See the module.
#[derive(Default)]
pub struct Rates {
    callers: Mutex<Allowances<String>>,
    strangers: Mutex<Allowances<Network>>,
    wrong_tokens: Mutex<Allowances<Network>>,
    wrong_passwords: Mutex<Allowances<Network>>,
    wrong_passwords_of: Mutex<Allowances<String>>,
    refused: [AtomicU64; 4],
}

impl Rates {
    /// How many requests were refused since the start, by kind.
    pub fn refused(&self) -> [(TooMany, u64); 4] {
        TooMany::ALL.map(|kind| (kind, self.refused[kind as usize].load(Ordering::Relaxed)))
    }

    fn too_many(&self, kind: TooMany, wait: Millis, who: String) -> Refusal {
        self.refused[kind as usize].fetch_add(1, Ordering::Relaxed);
        Refusal::TooMany { kind, wait, who }
    }

    fn too_many_of_strangers(&self, kind: TooMany, wait: Millis) -> Refusal {
        self.too_many(kind, wait, "unknown".to_owned())
    }
}

impl Core {
    /// Whether a person or a script may ask once more.
    pub fn may_ask(&self, person: &Person) -> Result<(), Refusal> {
        match &person.via {
            Via::Loopback | Via::Host => Ok(()),
            Via::Token { id, .. } => self.one_more_of(id.as_str(), || person.actor()),
            Via::Session(id) => self.one_more_of(id.as_str(), || person.actor()),
        }
    }

    /// Whether a worker may ask once more.
    pub fn worker_may_ask(&self, worker: &WorkerId) -> Result<(), Refusal> {
        self.one_more_of(worker.as_str(), || format!("worker:{worker}"))
    }

    fn one_more_of(&self, who: &str, name: impl FnOnce() -> String) -> Result<(), Refusal> {
        let Some(quota) = self.policy.quotas.caller else { return Ok(()) };
        let taken = self.doors.rates.callers.lock().expect("no panic while it is held").take(who, quota, self.now());
        taken.map_err(|wait| self.doors.rates.too_many(TooMany::OfCaller, wait, name()))
    }

    /// Whether strangers of a network may ask once more.
    pub fn stranger_may_ask(&self, peer: Option<IpAddr>) -> Result<(), Refusal> {
        let (rates, quota) = (&self.doors.rates, self.policy.quotas.stranger);
        self.one_more_from(&rates.strangers, peer, quota)
            .map_err(|wait| rates.too_many_of_strangers(TooMany::OfStrangers, wait))
    }

    /// A token opened nothing: whether that may be said once more, or it is too often.
    pub fn token_was_wrong(&self, peer: Option<IpAddr>) -> Result<(), Refusal> {
        let (rates, quota) = (&self.doors.rates, self.policy.quotas.wrong_token);
        self.one_more_from(&rates.wrong_tokens, peer, quota)
            .map_err(|wait| rates.too_many_of_strangers(TooMany::WrongTokens, wait))
    }

    /// One try to get in with a password or a code. Only those that fail count, but all count while they are under way:
    /// a hundred at once are a hundred guesses. Who has been let in from a network is not shut out there by others who
    /// guess at the same name from elsewhere.
    pub async fn one_try<T>(
        &self,
        peer: Option<IpAddr>,
        name: Option<&str>,
        attempt: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let (rates, quotas) = (&self.doors.rates, self.policy.quotas);
        let from = self.one_more_from(&rates.wrong_passwords, peer, quotas.wrong_password);
        from.map_err(|wait| rates.too_many_of_strangers(TooMany::WrongPasswords, wait))?;
        // A name that nobody can have is no key of memory.
        let name = name.filter(|name| is_name(name)).zip(quotas.wrong_password_of);
        let mut counts_for_name = false;
        if let Some((name, quota)) = name {
            let taken =
                rates.wrong_passwords_of.lock().expect("no panic while it is held").take(name, quota, self.now());
            counts_for_name = taken.is_ok();
            if let Err(wait) = taken
                && !self.comes_from_there(name, peer).await?
            {
                return Err(rates.too_many_of_strangers(TooMany::WrongPasswords, wait));
            }
        }
        let outcome = attempt.await;
        if !matches!(outcome, Err(Refusal::WrongPassword | Refusal::WrongToken)) {
            if let Some((peer, quota)) = peer.zip(quotas.wrong_password) {
                let mut all = rates.wrong_passwords.lock().expect("no panic while it is held");
                all.give_back(&Network::of_stranger(peer), quota);
            }
            if let Some((name, quota)) = name.filter(|_| counts_for_name) {
                rates.wrong_passwords_of.lock().expect("no panic while it is held").give_back(name, quota);
            }
        }
        outcome
    }

    /// Whether somebody of this name is logged in from that network.
    async fn comes_from_there(&self, name: &str, peer: Option<IpAddr>) -> Result<bool, Refusal> {
        let mut tx = self.read().await?;
        let (Some(user), Some(peer)) = (tx.user_by_name(name).await?, peer) else { return Ok(false) };
        let there = Network::of_stranger(peer);
        let sessions = tx.sessions(&user.id).await?;
        Ok(sessions.iter().any(|session| session.host.parse().is_ok_and(|host| there.contains(host))))
    }

    /// Who is nowhere is a test, or this very process.
    fn one_more_from(
        &self,
        all: &Mutex<Allowances<Network>>,
        peer: Option<IpAddr>,
        quota: Option<Quota>,
    ) -> Result<(), Millis> {
        let Some((peer, quota)) = peer.zip(quota) else { return Ok(()) };
        all.lock().expect("no panic while it is held").take(&Network::of_stranger(peer), quota, self.now())
    }
}
