//! What the next page says once, and what was typed into a form that was refused. In memory: whoever restarts the server
//! between a form and its page sees the change itself, only not the word about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};
use app::ui::flash::Flash;

use crate::random::Random;
use crate::tokens;

/// How long a flash waits for its page.
const LIFE: Millis = Millis::seconds(60);
/// What each takes besides its text, in bytes, at most.
const OVERHEAD: usize = 512;

/// How much memory flashes may take, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct FlashLimits {
    /// All of them.
    pub all: usize,
    /// Those of one person. People who are not logged in share a quarter of all.
    pub person: usize,
}

impl Default for FlashLimits {
    fn default() -> Self {
        Self { all: 32 << 20, person: 1 << 20 }
    }
}

/// Flashes by the secret in a cookie. The oldest give way to new ones: those of the same person first.
#[derive(Default)]
pub struct Flashes {
    limits: FlashLimits,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    bytes: usize,
    /// The oldest first.
    entries: BTreeMap<u64, Entry>,
    by_id: HashMap<String, u64>,
    owners: HashMap<Option<String>, Owned>,
}

struct Entry {
    id: String,
    owner: Option<String>,
    until: Timestamp,
    /// As JSON, so that its size is known.
    flash: Box<[u8]>,
}

/// What is one person's.
#[derive(Default)]
struct Owned {
    bytes: usize,
    entries: BTreeSet<u64>,
}

impl Flashes {
    /// None yet, and never more than this.
    pub fn within(limits: FlashLimits) -> Self {
        Self { limits, waiting: Mutex::default() }
    }

    /// Keeps a flash for a person, or for somebody who is not logged in; returns the secret that takes it. One that is
    /// too large alone is kept without what was typed.
    pub fn put(&self, flash: Flash, owner: Option<String>, now: Timestamp, random: &dyn Random) -> String {
        let id = tokens::mint("fl_", random);
        let own = if owner.is_some() { self.limits.person } else { self.limits.all / 4 };
        let own = own.min(self.limits.all);
        let fits = |json: &Vec<u8>| json.len() + OVERHEAD <= own;
        let json = Some(as_json(&flash)).filter(fits).or_else(|| Some(as_json(&without_fields(flash))).filter(fits));
        let Some(json) = json else { return id };
        let entry = Entry { id: id.clone(), owner, until: now + LIFE, flash: json.into_boxed_slice() };
        let mut waiting = self.waiting.lock().expect("no panic while it is held");
        waiting.sweep(now);
        while let Some(oldest) = waiting.oldest_of(&entry, own - entry.size()) {
            waiting.remove(oldest);
        }
        while waiting.bytes + entry.size() > self.limits.all {
            let Some(oldest) = waiting.entries.keys().next().copied() else { break };
            waiting.remove(oldest);
        }
        waiting.insert(entry);
        id
    }

    /// Takes a flash, once.
    pub fn take(&self, id: &str, now: Timestamp) -> Option<Flash> {
        let mut waiting = self.waiting.lock().expect("no panic while it is held");
        let number = waiting.by_id.get(id).copied()?;
        let entry = waiting.remove(number)?;
        if entry.until > now { serde_json::from_slice(&entry.flash).ok() } else { None }
    }

    /// Forgets those whose page did not come in time.
    pub fn sweep(&self, now: Timestamp) {
        self.waiting.lock().expect("no panic while it is held").sweep(now);
    }

    /// How much memory they take, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.waiting.lock().expect("no panic while it is held").bytes
    }
}

impl Entry {
    fn size(&self) -> usize {
        self.flash.len() + OVERHEAD
    }
}

impl Waiting {
    fn insert(&mut self, entry: Entry) {
        let number = self.next;
        self.next += 1;
        self.bytes += entry.size();
        let owned = self.owners.entry(entry.owner.clone()).or_default();
        owned.bytes += entry.size();
        owned.entries.insert(number);
        self.by_id.insert(entry.id.clone(), number);
        self.entries.insert(number, entry);
    }

    fn remove(&mut self, number: u64) -> Option<Entry> {
        let entry = self.entries.remove(&number)?;
        self.by_id.remove(&entry.id);
        self.bytes -= entry.size();
        if let Some(owned) = self.owners.get_mut(&entry.owner) {
            owned.bytes -= entry.size();
            owned.entries.remove(&number);
            if owned.entries.is_empty() {
                self.owners.remove(&entry.owner);
            }
        }
        Some(entry)
    }

    /// The oldest of its owner, as long as theirs take more than this.
    fn oldest_of(&self, entry: &Entry, most: usize) -> Option<u64> {
        self.owners.get(&entry.owner).filter(|owned| owned.bytes > most)?.entries.first().copied()
    }

    fn sweep(&mut self, now: Timestamp) {
        // All wait equally long, so the oldest ends first; a clock that was set back only delays it.
        while let Some((number, _)) = self.entries.first_key_value().filter(|(_, entry)| entry.until <= now) {
            let number = *number;
            self.remove(number);
        }
    }
}

fn as_json(flash: &Flash) -> Vec<u8> {
    serde_json::to_vec(flash).expect("plain fields")
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
    use app::ui::flash::{FormName, Notice};

    use super::*;
    use crate::random::CountedRandom;

    const WORD: Flash = Flash::Notice { code: Notice::Confirmed };
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
    fn a_flash_is_taken_once_and_in_time() {
        let (flashes, random) = (Flashes::default(), CountedRandom::default());
        let put = || flashes.put(WORD, None, START, &random);
        let (first, second) = (put(), put());
        assert_eq!((flashes.take(&first, START), flashes.take(&first, START)), (Some(WORD), None));
        assert_eq!((flashes.take(&second, START + LIFE), flashes.take("fl_other", START)), (None, None));
        assert_eq!(flashes.bytes(), 0);
    }

    #[test]
    fn a_person_takes_so_much_memory_and_only_from_themselves() {
        let (flashes, random) =
            (Flashes::within(FlashLimits { all: 100_000, person: 20_000 }), CountedRandom::default());
        let put = |owner: Option<&str>| flashes.put(draft(8_000), owner.map(str::to_owned), START, &random);
        let (bobs, strangers) = (put(Some("bob")), put(None));
        let hers: Vec<String> = (0..1_000).map(|_| put(Some("ada"))).collect();
        assert!(flashes.bytes() <= 40_000, "{}", flashes.bytes());
        let taken: Vec<_> = hers.iter().filter_map(|id| fields(flashes.take(id, START))).collect();
        assert_eq!(taken, [8_000, 8_000], "the newest");
        assert_eq!(
            (fields(flashes.take(&bobs, START)), fields(flashes.take(&strangers, START))),
            (Some(8_000), Some(8_000))
        );
    }

    #[test]
    fn all_take_so_much_memory_and_the_oldest_give_way() {
        let (flashes, random) =
            (Flashes::within(FlashLimits { all: 100_000, person: 20_000 }), CountedRandom::default());
        let ids: Vec<_> =
            (0..1_000).map(|n| flashes.put(draft(8_000), Some(format!("p{n}")), START, &random)).collect();
        assert!(flashes.bytes() <= 100_000, "{}", flashes.bytes());
        assert_eq!(fields(flashes.take(&ids[0], START)), None);
        assert_eq!(fields(flashes.take(&ids[999], START)), Some(8_000));
        let many: Vec<_> = (0..1_000).map(|_| flashes.put(WORD, None, START, &random)).collect();
        assert!(flashes.bytes() <= 100_000, "strangers have a quarter: {}", flashes.bytes());
        assert_eq!(flashes.take(&many[999], START), Some(WORD));
        assert_eq!(fields(flashes.take(&ids[998], START)), Some(8_000), "and take it from themselves");
    }

    #[test]
    fn what_is_too_large_is_told_without_what_was_typed() {
        let (flashes, random) =
            (Flashes::within(FlashLimits { all: 100_000, person: 20_000 }), CountedRandom::default());
        let id = flashes.put(draft(30_000), Some("ada".to_owned()), START, &random);
        assert_eq!(fields(flashes.take(&id, START)), Some(0));
    }

    #[test]
    fn time_gives_memory_back_without_another_form() {
        let (flashes, random) = (Flashes::default(), CountedRandom::default());
        flashes.put(draft(8_000), Some("ada".to_owned()), START, &random);
        flashes.sweep(Timestamp((START + LIFE).0 - 1));
        assert!(flashes.bytes() > 8_000);
        flashes.sweep(START + LIFE);
        assert_eq!(flashes.bytes(), 0);
    }
}
