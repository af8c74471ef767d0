//! What the next page says once. In memory: whoever restarts the server between a form and its page sees the change
//! itself, only not the word about it.

use std::collections::HashMap;
use std::sync::Mutex;

use app::domain::time::{Millis, Timestamp};
use app::ui::flash::Flash;

use crate::random::Random;
use crate::tokens;

/// How long a word waits for its page.
const LIFE: Millis = Millis::seconds(60);

/// Words by the secret in a cookie.
#[derive(Default)]
pub struct Flashes(Mutex<HashMap<String, (Timestamp, Flash)>>);

impl Flashes {
    /// Keeps a word; returns the secret that takes it.
    pub fn put(&self, flash: Flash, now: Timestamp, random: &dyn Random) -> String {
        let id = tokens::mint("fl_", random);
        let mut words = self.0.lock().expect("no panic while it is held");
        words.retain(|_, (until, _)| *until > now);
        words.insert(id.clone(), (now + LIFE, flash));
        id
    }

    /// Takes a word, once.
    pub fn take(&self, id: &str, now: Timestamp) -> Option<Flash> {
        let (until, flash) = self.0.lock().expect("no panic while it is held").remove(id)?;
        (until > now).then_some(flash)
    }
}
