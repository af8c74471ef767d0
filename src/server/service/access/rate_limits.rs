//! Rate limits. Authenticated callers have their own quota, wherever they connect from, so that a fleet behind one
//! address is not one caller; unauthenticated ones share that of their network. Failed sign-ins have a much smaller
//! one.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use app::domain::access::is_valid_name;
use app::domain::ids::{UserId, WorkerId};
use app::domain::network::Network;
use app::domain::rate_limit::{KeyedRateLimiter, Quota};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Worker;

use crate::service::access::AccessService;
use crate::service::access::per_user_limit::PerUserPermit;
use crate::service::access::{AuthMethod, Principal};
use crate::service::error::{FactorError, RateLimitKind, ResourceLimit, ServiceError};

/// The key of a browser in which this user has signed in before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBrowser(pub String);

/// The quotas that a try was charged to.
#[derive(Debug, Default)]
struct GuessCharge {
    network: Option<(IpAddr, Quota)>,
    name: Option<(String, Quota)>,
    name_global: Option<(String, Quota)>,
}

/// The reason why a try was not made.
enum TryDenied {
    /// Too many tries; the next one is possible after this time.
    Wait(Millis),
    /// The check itself failed.
    Failed(ServiceError),
}

impl From<Millis> for TryDenied {
    fn from(wait: Millis) -> Self {
        Self::Wait(wait)
    }
}

fn charge(limiter: &Mutex<KeyedRateLimiter<String>>, key: &str, quota: Quota, now: Timestamp) -> Result<(), Millis> {
    limiter.lock().expect("no panic while it is held").try_acquire(key, quota, now)
}

#[derive(Default)]
pub struct RateLimits {
    pub(super) callers: Mutex<KeyedRateLimiter<String>>,
    pub(super) worker_changes: Mutex<KeyedRateLimiter<String>>,
    pub(super) unauthenticated: Mutex<KeyedRateLimiter<Network>>,
    pub(super) wrong_tokens: Mutex<KeyedRateLimiter<Network>>,
    pub(super) wrong_passwords: Mutex<KeyedRateLimiter<Network>>,
    /// By name and network, or by the key of a known browser.
    pub(super) wrong_passwords_per_name: Mutex<KeyedRateLimiter<String>>,
    pub(super) wrong_passwords_global: Mutex<KeyedRateLimiter<String>>,
    pub(super) wrong_codes: Mutex<KeyedRateLimiter<String>>,
    rejected: [AtomicU64; 5],
}

impl RateLimits {
    /// The number of rejected requests since the start, by kind.
    pub fn rejected(&self) -> [(RateLimitKind, u64); 5] {
        RateLimitKind::ALL.map(|kind| (kind, self.rejected[kind as usize].load(Ordering::Relaxed)))
    }

    fn reject(&self, kind: RateLimitKind, wait: Millis, key: String) -> ServiceError {
        self.rejected[kind as usize].fetch_add(1, Ordering::Relaxed);
        ServiceError::RateLimited { kind, wait, caller: key }
    }

    fn reject_unauthenticated(&self, kind: RateLimitKind, wait: Millis) -> ServiceError {
        self.reject(kind, wait, "unknown".to_owned())
    }
}

impl AccessService {
    /// Charges a request of a user or a script.
    pub fn check_caller_rate(&self, principal: &Principal) -> Result<(), ServiceError> {
        match &principal.via {
            AuthMethod::Loopback | AuthMethod::Host => Ok(()),
            AuthMethod::Token { id, .. } => self.charge_caller(id.as_str(), || principal.actor()),
            AuthMethod::Session(id) => self.charge_caller(id.as_str(), || principal.actor()),
        }
    }

    /// Opens another event stream of a user, until the permit is dropped.
    pub fn acquire_event_stream(&self, principal: &Principal) -> Result<PerUserPermit, ServiceError> {
        let max = self.event_streams.limit();
        self.event_streams
            .try_acquire(&principal.name)
            .ok_or(ServiceError::LimitReached(ResourceLimit::EventStreams { max }))
    }

    /// Charges a request of a worker.
    pub fn check_worker_rate(&self, worker: &WorkerId) -> Result<(), ServiceError> {
        self.charge_caller(worker.as_str(), || format!("worker:{worker}"))
    }

    /// Charges an audited change of a worker: an agent that alternates would flood the log.
    pub fn check_worker_change_rate(&self, worker: &WorkerId) -> Result<(), ServiceError> {
        let Some(quota) = self.context.policy.quotas.worker_change else { return Ok(()) };
        let rates = &self.authenticator.rate_limits;
        charge(&rates.worker_changes, worker.as_str(), quota, self.context.now())
            .map_err(|wait| rates.reject(RateLimitKind::WorkerChanges, wait, format!("worker:{worker}")))
    }

    /// Charges a change if there is one.
    pub fn check_change_rate(&self, before: &Worker, after: &Worker) -> Result<(), ServiceError> {
        if before == after { Ok(()) } else { self.check_worker_change_rate(&after.id) }
    }

    fn charge_caller(&self, key: &str, name: impl FnOnce() -> String) -> Result<(), ServiceError> {
        let Some(quota) = self.context.policy.quotas.caller else { return Ok(()) };
        let result = self.authenticator.rate_limits.callers.lock().expect("no panic while it is held").try_acquire(
            key,
            quota,
            self.context.now(),
        );
        result.map_err(|wait| self.authenticator.rate_limits.reject(RateLimitKind::Caller, wait, name()))
    }

    /// Charges an unauthenticated request of a network.
    pub fn check_unauthenticated_rate(&self, peer: Option<IpAddr>) -> Result<(), ServiceError> {
        let (rates, quota) = (&self.authenticator.rate_limits, self.context.policy.quotas.unauthenticated);
        self.charge_network(&rates.unauthenticated, peer, quota)
            .map_err(|wait| rates.reject_unauthenticated(RateLimitKind::Unauthenticated, wait))
    }

    /// Charges an invalid token; fails if there were too many.
    pub fn charge_wrong_token(&self, peer: Option<IpAddr>) -> Result<(), ServiceError> {
        let (rates, quota) = (&self.authenticator.rate_limits, self.context.policy.quotas.wrong_token);
        self.charge_network(&rates.wrong_tokens, peer, quota)
            .map_err(|wait| rates.reject_unauthenticated(RateLimitKind::WrongTokens, wait))
    }

    /// Makes one try of a password or a setup code. Only failures count, but all tries count while they run: a hundred
    /// at once are a hundred guesses. A known browser has its own quota, so that others' guesses do not lock the user
    /// out.
    pub async fn try_password<T>(
        &self,
        peer: Option<IpAddr>,
        name: Option<&str>,
        known_browser: Option<KnownBrowser>,
        attempt: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let charge = match known_browser {
            Some(KnownBrowser(browser)) => self.charge_browser(browser),
            None => self.charge_unauthenticated(peer, name).await,
        };
        let charge = charge.map_err(|wait| match wait {
            TryDenied::Wait(wait) => {
                self.authenticator.rate_limits.reject_unauthenticated(RateLimitKind::WrongPasswords, wait)
            }
            TryDenied::Failed(error) => error,
        })?;
        let outcome = attempt.await;
        if !matches!(outcome, Err(ServiceError::WrongPassword | ServiceError::WrongToken)) {
            self.refund(&charge);
        }
        outcome
    }

    /// Makes one try of a second factor's code. The quota is small, because a code has only six digits; a known browser
    /// has its own, so that someone who stole the password does not lock the owner out.
    pub async fn try_code<T>(
        &self,
        user: &UserId,
        known_browser: Option<KnownBrowser>,
        attempt: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let Some(quota) = self.context.policy.quotas.wrong_code else { return attempt.await };
        let (rates, key) = (
            &self.authenticator.rate_limits,
            known_browser.map_or_else(|| user.to_string(), |KnownBrowser(browser)| browser),
        );
        charge(&rates.wrong_codes, &key, quota, self.context.now())
            .map_err(|wait| rates.reject_unauthenticated(RateLimitKind::WrongPasswords, wait))?;
        let outcome = attempt.await;
        let failures = [FactorError::WrongCode, FactorError::WrongPasskey, FactorError::PasskeyCopied];
        if !matches!(&outcome, Err(ServiceError::Factor(error)) if failures.contains(error)) {
            rates.wrong_codes.lock().expect("no panic while it is held").refund(&key, quota);
        }
        outcome
    }

    fn charge_browser(&self, browser: String) -> Result<GuessCharge, TryDenied> {
        let Some(quota) = self.context.policy.quotas.wrong_password_per_name else { return Ok(GuessCharge::default()) };
        charge(&self.authenticator.rate_limits.wrong_passwords_per_name, &browser, quota, self.context.now())?;
        Ok(GuessCharge { name: Some((browser, quota)), ..GuessCharge::default() })
    }

    /// Charges the network, the name there, and the name in total. A user who is signed in from that network is not
    /// locked out by others who guess their name.
    async fn charge_unauthenticated(&self, peer: Option<IpAddr>, name: Option<&str>) -> Result<GuessCharge, TryDenied> {
        let (rates, quotas, now) = (&self.authenticator.rate_limits, self.context.policy.quotas, self.context.now());
        self.charge_network(&rates.wrong_passwords, peer, quotas.wrong_password)?;
        let mut guess = GuessCharge { network: peer.zip(quotas.wrong_password), ..GuessCharge::default() };
        // A name that no user can have is not stored as a key.
        let Some(name) = name.filter(|name| is_valid_name(name)) else { return Ok(guess) };
        let network = peer.map_or_else(|| "nowhere".to_owned(), |peer| Network::from_client(peer).to_string());
        let key = format!("{name} {network}");
        let mut denied = None;
        if let Some(quota) = quotas.wrong_password_per_name {
            match charge(&rates.wrong_passwords_per_name, &key, quota, now) {
                Ok(()) => guess.name = Some((key, quota)),
                Err(wait) => denied = Some(wait),
            }
        }
        if let Some(quota) = quotas.wrong_password_global.filter(|_| denied.is_none()) {
            match charge(&rates.wrong_passwords_global, name, quota, now) {
                Ok(()) => guess.name_global = Some((name.to_owned(), quota)),
                Err(wait) => denied = Some(wait),
            }
        }
        match denied {
            Some(wait) if !self.is_logged_in_from(name, peer).await.map_err(TryDenied::Failed)? => {
                // A try that was not made does not count for the name.
                self.refund(&GuessCharge { network: None, ..guess });
                Err(TryDenied::Wait(wait))
            }
            _ => Ok(guess),
        }
    }

    fn refund(&self, guess: &GuessCharge) {
        let rates = &self.authenticator.rate_limits;
        if let Some((peer, quota)) = guess.network {
            let mut limiter = rates.wrong_passwords.lock().expect("no panic while it is held");
            limiter.refund(&Network::from_client(peer), quota);
        }
        for (limiter, charge) in
            [(&rates.wrong_passwords_per_name, &guess.name), (&rates.wrong_passwords_global, &guess.name_global)]
        {
            if let Some((key, quota)) = charge {
                limiter.lock().expect("no panic while it is held").refund(key, *quota);
            }
        }
    }

    /// Returns whether a user of this name is signed in from that network.
    async fn is_logged_in_from(&self, name: &str, peer: Option<IpAddr>) -> Result<bool, ServiceError> {
        let mut tx = self.context.read().await?;
        let (Some(user), Some(peer)) = (tx.user_by_name(name).await?, peer) else { return Ok(false) };
        let network = Network::from_client(peer);
        let sessions = tx.sessions(&user.id).await?;
        Ok(sessions.iter().any(|session| session.host.parse().is_ok_and(|host| network.contains(host))))
    }

    /// A caller without an address is a test, or this process.
    fn charge_network(
        &self,
        limiter: &Mutex<KeyedRateLimiter<Network>>,
        peer: Option<IpAddr>,
        quota: Option<Quota>,
    ) -> Result<(), Millis> {
        let Some((peer, quota)) = peer.zip(quota) else { return Ok(()) };
        limiter.lock().expect("no panic while it is held").try_acquire(
            &Network::from_client(peer),
            quota,
            self.context.now(),
        )
    }
}
