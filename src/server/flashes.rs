//! Flash messages: shown once by the next page, with the input of a rejected form. They are in memory: after a restart
//! of the server between form and page, the user sees the change, but not the message.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};
use app::ui::flash::Flash;

use crate::random::Random;
use crate::tokens;

/// How long a flash is kept.
const TTL: Millis = Millis::from_secs(60);
/// The maximum size of an entry besides its text, in bytes.
const ENTRY_OVERHEAD: usize = 512;

/// Memory limits of flashes, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct FlashLimits {
    /// All flashes.
    pub total: usize,
    /// The flashes of one user. Users who are not signed in share a quarter of the total.
    pub per_user: usize,
}

impl Default for FlashLimits {
    fn default() -> Self {
        Self { total: 32 << 20, per_user: 1 << 20 }
    }
}

/// Flashes by the secret in a cookie. New ones replace the oldest: those of the same user first.
#[derive(Default)]
pub struct Flashes {
    limits: FlashLimits,
    queue: Mutex<FlashQueue>,
}

#[derive(Default)]
struct FlashQueue {
    next_number: u64,
    bytes: usize,
    /// The oldest first.
    entries: BTreeMap<u64, FlashEntry>,
    by_id: HashMap<String, u64>,
    owners: HashMap<Option<String>, OwnerUsage>,
}

struct FlashEntry {
    id: String,
    owner: Option<String>,
    expires_at: Timestamp,
    /// As JSON, so that its size is known.
    flash: Box<[u8]>,
}

/// The flashes of one user.
#[derive(Default)]
struct OwnerUsage {
    bytes: usize,
    entries: BTreeSet<u64>,
}

impl Flashes {
    /// Creates an empty store with these limits.
    pub fn with_limits(limits: FlashLimits) -> Self {
        Self { limits, queue: Mutex::default() }
    }

    /// Stores a flash for a user, or for one who is not signed in; returns the secret for its cookie. One that is too
    /// large is stored without the input.
    pub fn insert(&self, flash: Flash, owner: Option<String>, now: Timestamp, random: &dyn Random) -> String {
        let id = tokens::generate("fl_", random);
        let owner_limit = if owner.is_some() { self.limits.per_user } else { self.limits.total / 4 };
        let owner_limit = owner_limit.min(self.limits.total);
        let fits = |json: &Vec<u8>| json.len() + ENTRY_OVERHEAD <= owner_limit;
        let json = Some(to_json(&flash)).filter(fits).or_else(|| Some(to_json(&without_fields(flash))).filter(fits));
        let Some(json) = json else { return id };
        let entry = FlashEntry { id: id.clone(), owner, expires_at: now + TTL, flash: json.into_boxed_slice() };
        let mut queue = self.queue.lock().expect("no panic while it is held");
        queue.sweep(now);
        while let Some(oldest) = queue.oldest_over_limit(&entry, owner_limit - entry.size()) {
            queue.remove(oldest);
        }
        while queue.bytes + entry.size() > self.limits.total {
            let Some(oldest) = queue.entries.keys().next().copied() else { break };
            queue.remove(oldest);
        }
        queue.insert(entry);
        id
    }

    /// Takes a flash, once.
    pub fn take(&self, id: &str, now: Timestamp) -> Option<Flash> {
        let mut queue = self.queue.lock().expect("no panic while it is held");
        let number = queue.by_id.get(id).copied()?;
        let entry = queue.remove(number)?;
        if entry.expires_at > now { serde_json::from_slice(&entry.flash).ok() } else { None }
    }

    /// Removes expired flashes.
    pub fn sweep(&self, now: Timestamp) {
        self.queue.lock().expect("no panic while it is held").sweep(now);
    }

    /// Memory use in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.queue.lock().expect("no panic while it is held").bytes
    }
}

impl FlashEntry {
    fn size(&self) -> usize {
        self.flash.len() + ENTRY_OVERHEAD
    }
}

impl FlashQueue {
    fn insert(&mut self, entry: FlashEntry) {
        let number = self.next_number;
        self.next_number += 1;
        self.bytes += entry.size();
        let usage = self.owners.entry(entry.owner.clone()).or_default();
        usage.bytes += entry.size();
        usage.entries.insert(number);
        self.by_id.insert(entry.id.clone(), number);
        self.entries.insert(number, entry);
    }

    fn remove(&mut self, number: u64) -> Option<FlashEntry> {
        let entry = self.entries.remove(&number)?;
        self.by_id.remove(&entry.id);
        self.bytes -= entry.size();
        if let Some(usage) = self.owners.get_mut(&entry.owner) {
            usage.bytes -= entry.size();
            usage.entries.remove(&number);
            if usage.entries.is_empty() {
                self.owners.remove(&entry.owner);
            }
        }
        Some(entry)
    }

    /// The oldest flash of its owner, if theirs take more than this.
    fn oldest_over_limit(&self, entry: &FlashEntry, max: usize) -> Option<u64> {
        self.owners.get(&entry.owner).filter(|usage| usage.bytes > max)?.entries.first().copied()
    }

    fn sweep(&mut self, now: Timestamp) {
        // All have the same lifetime, so the oldest expires first; a clock that was set back only delays it.
        while let Some((number, _)) = self.entries.first_key_value().filter(|(_, entry)| entry.expires_at <= now) {
            let number = *number;
            self.remove(number);
        }
    }
}

fn to_json(flash: &Flash) -> Vec<u8> {
    serde_json::to_vec(flash).expect("fields that can be serialized")
}

fn without_fields(flash: Flash) -> Flash {
    match flash {
        Flash::Problem { form, problem, .. } => Flash::Problem { form, problem, fields: BTreeMap::new() },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use app::protocol::problem::Problem;
    use app::ui::flash::{FlashNotice, FormName};

    use super::*;
    use crate::random::CountingRandom;

    const NOTICE: Flash = Flash::Notice { code: FlashNotice::Confirmed };
    const START: Timestamp = Timestamp(1_000);

    fn draft(bytes: usize) -> Flash {
        let problem = Problem::new(422, "Unprocessable", "invalid_name", "No.".to_owned());
        let fields = BTreeMap::from([("text".to_owned(), "x".repeat(bytes))]);
        Flash::Problem { form: FormName::Config, problem, fields }
    }

    fn fields(flash: Option<Flash>) -> Option<usize> {
        let Some(Flash::Problem { fields, .. }) = flash else { return None };
        Some(fields.values().map(String::len).sum())
    }

    #[test]
    fn flash_is_taken_once_and_expires() {
        let (flashes, random) = (Flashes::default(), CountingRandom::default());
        let put = || flashes.insert(NOTICE, None, START, &random);
        let (first, second) = (put(), put());
        assert_eq!((flashes.take(&first, START), flashes.take(&first, START)), (Some(NOTICE), None));
        assert_eq!((flashes.take(&second, START + TTL), flashes.take("fl_other", START)), (None, None));
        assert_eq!(flashes.bytes(), 0);
    }

    #[test]
    fn memory_is_limited_per_user() {
        let (flashes, random) =
            (Flashes::with_limits(FlashLimits { total: 100_000, per_user: 20_000 }), CountingRandom::default());
        let put = |owner: Option<&str>| flashes.insert(draft(8_000), owner.map(str::to_owned), START, &random);
        let (bob_id, anonymous_id) = (put(Some("bob")), put(None));
        let ada_ids: Vec<String> = (0..1_000).map(|_| put(Some("ada"))).collect();
        assert!(flashes.bytes() <= 40_000, "{}", flashes.bytes());
        let remaining: Vec<_> = ada_ids.iter().filter_map(|id| fields(flashes.take(id, START))).collect();
        assert_eq!(remaining, [8_000, 8_000], "the newest");
        assert_eq!(
            (fields(flashes.take(&bob_id, START)), fields(flashes.take(&anonymous_id, START))),
            (Some(8_000), Some(8_000))
        );
    }

    #[test]
    fn total_memory_is_limited_and_the_oldest_are_removed() {
        let (flashes, random) =
            (Flashes::with_limits(FlashLimits { total: 100_000, per_user: 20_000 }), CountingRandom::default());
        let ids: Vec<_> =
            (0..1_000).map(|n| flashes.insert(draft(8_000), Some(format!("p{n}")), START, &random)).collect();
        assert!(flashes.bytes() <= 100_000, "{}", flashes.bytes());
        assert_eq!(fields(flashes.take(&ids[0], START)), None);
        assert_eq!(fields(flashes.take(&ids[999], START)), Some(8_000));
        let many: Vec<_> = (0..1_000).map(|_| flashes.insert(NOTICE, None, START, &random)).collect();
        assert!(flashes.bytes() <= 100_000, "unauthenticated clients have a quarter: {}", flashes.bytes());
        assert_eq!(flashes.take(&many[999], START), Some(NOTICE));
        assert_eq!(fields(flashes.take(&ids[998], START)), Some(8_000), "and replace only their own");
    }

    #[test]
    fn large_flash_is_stored_without_its_input() {
        let (flashes, random) =
            (Flashes::with_limits(FlashLimits { total: 100_000, per_user: 20_000 }), CountingRandom::default());
        let id = flashes.insert(draft(30_000), Some("ada".to_owned()), START, &random);
        assert_eq!(fields(flashes.take(&id, START)), Some(0));
    }

    #[test]
    fn expired_flashes_free_their_memory() {
        let (flashes, random) = (Flashes::default(), CountingRandom::default());
        flashes.insert(draft(8_000), Some("ada".to_owned()), START, &random);
        flashes.sweep(Timestamp((START + TTL).0 - 1));
        assert!(flashes.bytes() > 8_000);
        flashes.sweep(START + TTL);
        assert_eq!(flashes.bytes(), 0);
    }
}
