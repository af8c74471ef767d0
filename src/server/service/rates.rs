//! Who asks too often. Whoever is known has an allowance of their own, wherever they come from, so that a fleet behind
//! one address is not one caller; strangers share that of their network. What failed has a much smaller one.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use app::domain::access::is_name;
use app::domain::ids::{UserId, WorkerId};
use app::domain::network::Network;
use app::domain::rate::{Allowances, Quota};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Worker;

use super::Core;
use super::access::{Person, Via};
use super::refusal::{FactorRefusal, Limit, Refusal};
use super::shares::Share;

/// How often somebody may ask; without a quota, as often as they like.
#[derive(Debug, Clone, Copy)]
pub struct Quotas {
    /// A worker, an API token, or a session.
    pub caller: Option<Quota>,
    /// What a worker changes of itself, which is on record each time.
    pub worker_change: Option<Quota>,
    /// The strangers of a network.
    pub stranger: Option<Quota>,
    /// Tokens of a network that open nothing.
    pub wrong_token: Option<Quota>,
    /// Wrong passwords and codes from a network.
    pub wrong_password: Option<Quota>,
    /// Wrong passwords for a name from one network, or from one browser that is known.
    pub wrong_password_of: Option<Quota>,
    /// Wrong passwords for a name from all networks together. Browsers that are known do not count.
    pub wrong_password_in_all: Option<Quota>,
    /// Wrong codes of a second factor after the right password, for a person or a browser that is known.
    pub wrong_code: Option<Quota>,
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
            worker_change: Some(worker_changes(20)),
            stranger: some(stranger).map(Quota::a_second),
            wrong_token: some(stranger).map(|times| Quota::a_minute(times.saturating_mul(3), times.saturating_mul(3))),
            wrong_password: some(wrong_passwords).map(a_minute),
            wrong_password_of: some(wrong_passwords).map(|times| a_minute(times.div_ceil(3))),
            wrong_password_in_all: some(wrong_passwords).map(|times| a_minute(times.saturating_mul(3))),
            wrong_code: some(wrong_passwords).map(|times| Quota::an_hour(times, times.div_ceil(2))),
        }
    }

    /// The same, with so many changes a minute of one worker; 0 for as many as it likes.
    #[must_use]
    pub fn with_worker_changes(self, times: u32) -> Self {
        Self { worker_change: (times > 0).then(|| worker_changes(times)), ..self }
    }

    /// The same, with so many wrong passwords a minute for a name from all networks together; 0 for as many as they like.
    #[must_use]
    pub fn with_wrong_passwords_in_all(self, times: u32) -> Self {
        let quota = (times > 0).then(|| Quota::a_minute(times, times.saturating_mul(3)));
        Self { wrong_password_in_all: quota, ..self }
    }
}

fn worker_changes(times: u32) -> Quota {
    Quota::a_minute(times, times.saturating_mul(3))
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
    /// What a worker changes of itself.
    WorkerChanges,
}

impl TooMany {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::OfCaller, Self::OfStrangers, Self::WrongTokens, Self::WrongPasswords, Self::WorkerChanges];

    /// Its word in the trail and in figures.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OfCaller => "caller",
            Self::OfStrangers => "strangers",
            Self::WrongTokens => "wrong_tokens",
            Self::WrongPasswords => "wrong_passwords",
            Self::WorkerChanges => "worker_changes",
        }
    }
}

/// A browser in which this person has logged in before: what it is told apart by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBrowser(pub String);

/// What a try was counted for.
#[derive(Debug, Default)]
struct Guess {
    from: Option<(IpAddr, Quota)>,
    of: Option<(String, Quota)>,
    in_all: Option<(String, Quota)>,
}

/// Why a try was not made.
enum Denied {
    /// There were too many; after so long there may be another.
    Wait(Millis),
    /// It could not be found out.
    Failed(Refusal),
}

impl From<Millis> for Denied {
    fn from(wait: Millis) -> Self {
        Self::Wait(wait)
    }
}

fn take(all: &Mutex<Allowances<String>>, who: &str, quota: Quota, now: Timestamp) -> Result<(), Millis> {
    all.lock().expect("no panic while it is held").take(who, quota, now)
}

/// See the module.
#[derive(Default)]
pub struct Rates {
    callers: Mutex<Allowances<String>>,
    worker_changes: Mutex<Allowances<String>>,
    strangers: Mutex<Allowances<Network>>,
    wrong_tokens: Mutex<Allowances<Network>>,
    wrong_passwords: Mutex<Allowances<Network>>,
    /// By name and network, or by what a browser is known by.
    wrong_passwords_of: Mutex<Allowances<String>>,
    wrong_passwords_in_all: Mutex<Allowances<String>>,
    wrong_codes: Mutex<Allowances<String>>,
    refused: [AtomicU64; 5],
}

impl Rates {
    /// How many requests were refused since the start, by kind.
    pub fn refused(&self) -> [(TooMany, u64); 5] {
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

    /// One more event stream of a person, until it is dropped.
    pub fn event_stream(&self, person: &Person) -> Result<Share, Refusal> {
        let most = self.event_streams.each();
        self.event_streams.take(&person.name).ok_or(Refusal::OverLimit(Limit::EventStreams { most }))
    }

    /// Whether a worker may ask once more.
    pub fn worker_may_ask(&self, worker: &WorkerId) -> Result<(), Refusal> {
        self.one_more_of(worker.as_str(), || format!("worker:{worker}"))
    }

    /// Whether a worker may change once more what is on record of it: an agent that goes to and fro would fill the trail.
    pub fn worker_may_change(&self, worker: &WorkerId) -> Result<(), Refusal> {
        let Some(quota) = self.policy.quotas.worker_change else { return Ok(()) };
        let rates = &self.doors.rates;
        take(&rates.worker_changes, worker.as_str(), quota, self.now())
            .map_err(|wait| rates.too_many(TooMany::WorkerChanges, wait, format!("worker:{worker}")))
    }

    /// The same, if that changes it.
    pub fn may_become(&self, before: &Worker, after: &Worker) -> Result<(), Refusal> {
        if before == after { Ok(()) } else { self.worker_may_change(&after.id) }
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
    /// a hundred at once are a hundred guesses. A browser that is known counts for itself, so that nobody's guesses keep
    /// its person out.
    pub async fn one_try<T>(
        &self,
        peer: Option<IpAddr>,
        name: Option<&str>,
        known: Option<KnownBrowser>,
        attempt: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let taken = match known {
            Some(KnownBrowser(browser)) => self.guess_of_browser(browser),
            None => self.guess_of_stranger(peer, name).await,
        };
        let taken = taken.map_err(|wait| match wait {
            Denied::Wait(wait) => self.doors.rates.too_many_of_strangers(TooMany::WrongPasswords, wait),
            Denied::Failed(refusal) => refusal,
        })?;
        let outcome = attempt.await;
        if !matches!(outcome, Err(Refusal::WrongPassword | Refusal::WrongToken)) {
            self.give_guess_back(&taken);
        }
        outcome
    }

    /// One try to give the code of a second factor. There are few of them, since a code has six digits only; a browser that
    /// is known counts for itself, so that a thief of the password does not keep its owner out.
    pub async fn one_code<T>(
        &self,
        user: &UserId,
        known: Option<KnownBrowser>,
        attempt: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let Some(quota) = self.policy.quotas.wrong_code else { return attempt.await };
        let (rates, who) = (&self.doors.rates, known.map_or_else(|| user.to_string(), |KnownBrowser(browser)| browser));
        take(&rates.wrong_codes, &who, quota, self.now())
            .map_err(|wait| rates.too_many_of_strangers(TooMany::WrongPasswords, wait))?;
        let outcome = attempt.await;
        let wrong = [FactorRefusal::WrongCode, FactorRefusal::WrongPasskey, FactorRefusal::PasskeyCopied];
        if !matches!(&outcome, Err(Refusal::Factor(refusal)) if wrong.contains(refusal)) {
            rates.wrong_codes.lock().expect("no panic while it is held").give_back(&who, quota);
        }
        outcome
    }

    fn guess_of_browser(&self, browser: String) -> Result<Guess, Denied> {
        let Some(quota) = self.policy.quotas.wrong_password_of else { return Ok(Guess::default()) };
        take(&self.doors.rates.wrong_passwords_of, &browser, quota, self.now())?;
        Ok(Guess { of: Some((browser, quota)), ..Guess::default() })
    }

    /// Counts for the network, for the name there, and for the name in all. Somebody who is logged in from there is not
    /// shut out by others who guess their name.
    async fn guess_of_stranger(&self, peer: Option<IpAddr>, name: Option<&str>) -> Result<Guess, Denied> {
        let (rates, quotas, now) = (&self.doors.rates, self.policy.quotas, self.now());
        self.one_more_from(&rates.wrong_passwords, peer, quotas.wrong_password)?;
        let mut guess = Guess { from: peer.zip(quotas.wrong_password), ..Guess::default() };
        // A name that nobody can have is no key of memory.
        let Some(name) = name.filter(|name| is_name(name)) else { return Ok(guess) };
        let network = peer.map_or_else(|| "nowhere".to_owned(), |peer| Network::of_stranger(peer).to_string());
        let there = format!("{name} {network}");
        let mut denied = None;
        if let Some(quota) = quotas.wrong_password_of {
            match take(&rates.wrong_passwords_of, &there, quota, now) {
                Ok(()) => guess.of = Some((there, quota)),
                Err(wait) => denied = Some(wait),
            }
        }
        if let Some(quota) = quotas.wrong_password_in_all.filter(|_| denied.is_none()) {
            match take(&rates.wrong_passwords_in_all, name, quota, now) {
                Ok(()) => guess.in_all = Some((name.to_owned(), quota)),
                Err(wait) => denied = Some(wait),
            }
        }
        match denied {
            Some(wait) if !self.comes_from_there(name, peer).await.map_err(Denied::Failed)? => {
                // What was not tried counts for nobody's name.
                self.give_guess_back(&Guess { from: None, ..guess });
                Err(Denied::Wait(wait))
            }
            _ => Ok(guess),
        }
    }

    fn give_guess_back(&self, guess: &Guess) {
        let rates = &self.doors.rates;
        if let Some((peer, quota)) = guess.from {
            let mut all = rates.wrong_passwords.lock().expect("no panic while it is held");
            all.give_back(&Network::of_stranger(peer), quota);
        }
        for (all, taken) in [(&rates.wrong_passwords_of, &guess.of), (&rates.wrong_passwords_in_all, &guess.in_all)] {
            if let Some((who, quota)) = taken {
                all.lock().expect("no panic while it is held").give_back(who, *quota);
            }
        }
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
