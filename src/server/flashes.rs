//! What the next page says once. In memory: whoever restarts the server between a form and its page sees the change
//! itself, only not the word about it.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};
use app::ui::flash::Flash;

use crate::random::Random;
use crate::tokens;

/// How long a word waits for its page.
const LIFE: Millis = Millis::seconds(60);
/// So many wait at most. Strangers leave words too, by logging in in vain: the oldest give way.
const MOST: usize = 10_000;

/// Words by the secret in a cookie.
#[derive(Default)]
pub struct Flashes(Mutex<Words>);

#[derive(Default)]
struct Words {
    waiting: HashMap<String, (Timestamp, Flash)>,
    /// All of them and when they end, the oldest first; some were taken.
    order: VecDeque<(Timestamp, String)>,
}

impl Flashes {
    /// Keeps a word; returns the secret that takes it.
    pub fn put(&self, flash: Flash, now: Timestamp, random: &dyn Random) -> String {
        let (id, until) = (tokens::mint("fl_", random), now + LIFE);
        let mut words = self.0.lock().expect("no panic while it is held");
        while let Some((_, oldest)) = {
            let full = words.order.len() >= MOST;
            words.order.pop_front_if(|(until, _)| full || *until <= now)
        } {
            words.waiting.remove(&oldest);
        }
        words.waiting.insert(id.clone(), (until, flash));
        words.order.push_back((until, id.clone()));
        id
    }

    /// Takes a word, once.
    pub fn take(&self, id: &str, now: Timestamp) -> Option<Flash> {
        let (until, flash) = self.0.lock().expect("no panic while it is held").waiting.remove(id)?;
        (until > now).then_some(flash)
    }
}

#[cfg(test)]
mod tests {
    use app::ui::flash::Notice;

    use super::*;
    use crate::random::CountedRandom;

    const WORD: Flash = Flash::Notice { code: Notice::Confirmed };
    const START: Timestamp = Timestamp(1_000);

    #[test]
    fn a_word_is_taken_once_and_in_time() {
        let (flashes, random) = (Flashes::default(), CountedRandom::default());
        let put = || flashes.put(WORD, START, &random);
        let (first, second) = (put(), put());
        assert_eq!((flashes.take(&first, START), flashes.take(&first, START)), (Some(WORD), None));
        assert_eq!((flashes.take(&second, START + LIFE), flashes.take("fl_other", START)), (None, None));
    }

    #[test]
    fn so_many_wait_and_no_more() {
        let (flashes, random) = (Flashes::default(), CountedRandom::default());
        let ids: Vec<String> = (0..=MOST).map(|_| flashes.put(WORD, START, &random)).collect();
        assert_eq!((flashes.take(&ids[0], START), flashes.take(&ids[1], START)), (None, Some(WORD)), "the oldest went");
        flashes.put(WORD, START + LIFE, &random);
        let words = flashes.0.lock().expect("no panic");
        assert_eq!((words.waiting.len(), words.order.len()), (1, 1), "nothing is kept for longer than it waits");
    }
}
