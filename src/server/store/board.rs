//! What was committed last, in memory, for whoever only looks: streams, heartbeats, tokens, and loops that mostly find
//! nothing to do.
//!
//! The writer puts up what it has committed before anybody is rung for it. On a database with several servers the board
//! is empty from the moment another one is heard of, or found, to have written, until this one's writer has read anew;
//! meanwhile the database is asked. What is not on the board may still be in the database: it says yes, and never no.

use std::sync::RwLock;
use std::time::{Duration, Instant};

use super::known::{Change, Known};

/// See the module.
#[derive(Default)]
pub struct Board {
    shown: RwLock<Shown>,
    /// How long it is believed after a commit; none is for ever, because nobody else writes.
    life: Option<Duration>,
}

#[derive(Default)]
struct Shown {
    known: Option<Known>,
    /// The generation of the database that this is of; engines that serve one server have none.
    generation: i64,
    /// The newest generation that was heard of.
    newest: i64,
    /// When this server committed last.
    at: Option<Instant>,
}

impl Board {
    /// One that is believed for so long after a commit.
    pub fn believed_for(life: Duration) -> Self {
        Self { life: Some(life), ..Self::default() }
    }

    /// Looks, if the board is up to date.
    pub fn glance<R>(&self, look: impl FnOnce(&Known) -> R) -> Option<R> {
        let shown = self.shown.read().expect("no panic while it is held");
        let old = self.life.is_some_and(|life| shown.at.is_none_or(|at| at.elapsed() > life));
        if old || shown.newest > shown.generation { None } else { shown.known.as_ref().map(look) }
    }

    /// Follows a commit that made this generation; `all` is everything that lives after it, if the writer knows.
    pub fn follow(&self, generation: i64, changes: Vec<Change>, all: Option<&Known>) {
        // Copied before anybody has to wait for it.
        let fresh = if self.glance(|_| ()).is_none() { all.cloned() } else { None };
        let mut shown = self.shown.write().expect("no panic while it is held");
        match (&mut shown.known, fresh) {
            (known, Some(fresh)) => *known = Some(fresh),
            (Some(known), None) => changes.into_iter().for_each(|change| known.apply(change)),
            (None, None) => {}
        }
        shown.generation = generation;
        shown.newest = shown.newest.max(generation);
        shown.at = Some(Instant::now());
    }

    /// Another server has made this generation.
    pub fn heard_of(&self, generation: i64) {
        let mut shown = self.shown.write().expect("no panic while it is held");
        shown.newest = shown.newest.max(generation);
        let stale = if shown.newest > shown.generation { shown.known.take() } else { None };
        drop(shown);
        drop(stale);
    }

    /// Nobody knows what was committed.
    pub fn wipe(&self) {
        let stale = self.shown.write().expect("no panic while it is held").known.take();
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_up(board: &Board) -> bool {
        board.glance(|_| ()).is_some()
    }

    #[test]
    fn it_is_empty_while_another_server_is_ahead() {
        let (board, all) = (Board::believed_for(Duration::from_mins(1)), Known::default());
        board.follow(1, Vec::new(), None);
        assert!(!is_up(&board), "the writer knew nothing");
        board.follow(2, Vec::new(), Some(&all));
        assert!(is_up(&board));
        board.heard_of(1);
        assert!(is_up(&board), "that was before");
        board.heard_of(4);
        board.follow(3, Vec::new(), Some(&all));
        assert!(!is_up(&board), "the news came before this commit was put up");
        board.follow(5, Vec::new(), Some(&all));
        assert!(is_up(&board));
        board.wipe();
        assert!(!is_up(&board));
    }

    #[test]
    fn a_server_that_commits_no_more_is_not_believed() {
        let board = Board::believed_for(Duration::ZERO);
        board.follow(1, Vec::new(), Some(&Known::default()));
        assert!(!is_up(&board));
        let alone = Board::default();
        alone.follow(0, Vec::new(), Some(&Known::default()));
        assert!(is_up(&alone));
    }
}
