//! What was committed last, in memory, for whoever only looks: streams, heartbeats, tokens, and loops that mostly find
//! nothing to do.
//!
//! The writer puts up what it has committed before anybody is rung for it. On a database with several servers the board
//! is empty from the moment another one is heard of, or found, to have written, until this one's writer has read anew;
//! meanwhile the database is asked.

use std::sync::RwLock;

use super::known::{Change, Known};

/// See the module.
#[derive(Default)]
pub struct Board(RwLock<Shown>);

#[derive(Default)]
struct Shown {
    known: Option<Known>,
    /// The generation of the database that this is of; engines that serve one server have none.
    generation: i64,
    /// The newest generation that was heard of.
    newest: i64,
}

impl Board {
    /// Looks, if the board is up to date.
    pub fn glance<R>(&self, look: impl FnOnce(&Known) -> R) -> Option<R> {
        let shown = self.0.read().expect("no panic while it is held");
        if shown.newest > shown.generation { None } else { shown.known.as_ref().map(look) }
    }

    /// Follows a commit that made this generation; `all` is everything that lives after it, if the writer knows.
    pub fn follow(&self, generation: i64, changes: Vec<Change>, all: Option<&Known>) {
        let mut shown = self.0.write().expect("no panic while it is held");
        match &mut shown.known {
            Some(known) => changes.into_iter().for_each(|change| known.apply(change)),
            None => shown.known = all.cloned(),
        }
        shown.generation = generation;
        shown.newest = shown.newest.max(generation);
    }

    /// Another server has made this generation.
    pub fn heard_of(&self, generation: i64) {
        let mut shown = self.0.write().expect("no panic while it is held");
        shown.newest = shown.newest.max(generation);
        if shown.newest > shown.generation {
            shown.known = None;
        }
    }

    /// Nobody knows what was committed.
    pub fn wipe(&self) {
        self.0.write().expect("no panic while it is held").known = None;
    }
}
