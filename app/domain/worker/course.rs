//! How a worker stood in a stretch of time: told from what is on record of it.

use super::{Contact, Status, Worker};
use crate::domain::audit::Action;
use crate::domain::time::Timestamp;

/// The words of the trail that tell whether it was connected: the newest of them holds.
pub const CONTACTS: [Action; 5] = [
    Action::WorkerCreated,
    Action::WorkerRegistered,
    Action::WorkerOnline,
    Action::WorkerConnecting,
    Action::WorkerOffline,
];
/// Those that tell whether a person let it drain.
pub const DRAINS: [Action; 2] = [Action::WorkerDrained, Action::WorkerResumed];

/// How it stood from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stood {
    /// From this moment, until that of the next one.
    pub since: Timestamp,
    /// How; none while it was never heard of.
    pub status: Option<Status>,
}

/// What changes how it stands.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Contact(Contact),
    Drains(bool),
    Spent,
    Offered,
    Ended,
}

impl Turn {
    const fn of(action: Action) -> Option<Self> {
        Some(match action {
            Action::WorkerCreated => Self::Contact(Contact::NeverSeen),
            Action::WorkerRegistered | Action::WorkerConnecting => Self::Contact(Contact::Connecting),
            Action::WorkerOnline => Self::Contact(Contact::Online),
            Action::WorkerOffline => Self::Contact(Contact::Offline),
            Action::WorkerDrained => Self::Drains(true),
            Action::WorkerResumed => Self::Drains(false),
            _ => return None,
        })
    }
}

#[derive(Default)]
struct Standing {
    /// None as long as nothing tells.
    contact: Option<Contact>,
    drains: bool,
    spent: bool,
    jobs: usize,
}

impl Standing {
    const fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Contact(contact) => self.contact = Some(contact),
            Turn::Drains(drains) => self.drains = drains,
            Turn::Spent => self.spent = true,
            Turn::Offered => self.jobs += 1,
            Turn::Ended => self.jobs = self.jobs.saturating_sub(1),
        }
    }

    fn at(&self, since: Timestamp) -> Option<Stood> {
        let contact = self.contact?;
        let status = (contact != Contact::NeverSeen).then(|| contact.status(self.drains || self.spent, self.jobs > 0));
        Some(Stood { since, status })
    }
}

/// How a worker stood since a moment, oldest first, without a gap: the first of it may have begun earlier, or the beginning
/// is not on record any more.
///
/// `told` are the entries of the trail since then, and of [`CONTACTS`] and of [`DRAINS`] the newest before; `held` is from
/// when until when it had each job.
pub fn course(
    worker: &Worker,
    told: impl IntoIterator<Item = (Timestamp, Action)>,
    held: impl IntoIterator<Item = (Timestamp, Option<Timestamp>)>,
    since: Timestamp,
) -> Vec<Stood> {
    let mut turns: Vec<_> = told.into_iter().filter_map(|(at, action)| Some((at, Turn::of(action)?))).collect();
    // Where nothing is told, it is as it was before.
    if !turns.iter().any(|(_, turn)| matches!(turn, Turn::Contact(_))) {
        turns.push((worker.link_since(), Turn::Contact(Contact::of(&worker.link))));
    }
    let drains = worker.drain.as_ref().filter(|_| !turns.iter().any(|(_, turn)| matches!(turn, Turn::Drains(_))));
    turns.extend(drains.map(|drain| (drain.since, Turn::Drains(true))));
    turns.extend(worker.spent.map(|at| (at, Turn::Spent)));
    for (offered, ended) in held {
        turns.push((offered, Turn::Offered));
        turns.extend(ended.map(|at| (at, Turn::Ended)));
    }
    turns.sort_by_key(|(at, _)| *at);
    let first = turns.iter().find_map(|(_, turn)| if let Turn::Drains(drains) = turn { Some(*drains) } else { None });
    // Whoever was resumed had been drained.
    let mut standing = Standing { drains: first == Some(false), ..Standing::default() };
    let mut course: Vec<Stood> = Vec::new();
    for together in turns.chunk_by(|(a, _), (b, _)| a == b) {
        for (_, turn) in together {
            standing.take(*turn);
        }
        let changed = |stood: &Stood| course.last().is_none_or(|last| last.status != stood.status);
        course.extend(standing.at(together[0].0).filter(changed));
    }
    let over = course.iter().skip(1).take_while(|stood| stood.since <= since).count();
    course.split_off(over)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::ids::WorkerId;
    use crate::domain::worker::{Drain, Link};

    fn made() -> Worker {
        Worker::made(WorkerId::parse("w_1").expect("an id"), "gpu-1".to_owned(), Timestamp(0))
    }

    /// Each as text: from when, and how.
    fn drawn(worker: &Worker, told: &[(i64, Action)], held: &[(i64, Option<i64>)], since: i64) -> String {
        let told = told.iter().map(|(at, action)| (Timestamp(*at), *action));
        let held = held.iter().map(|(from, until)| (Timestamp(*from), until.map(Timestamp)));
        let course = course(worker, told, held, Timestamp(since));
        let word = |status: Option<Status>| status.map_or_else(|| "Never".to_owned(), |status| format!("{status:?}"));
        course.iter().map(|stood| format!("{} {}", stood.since.0, word(stood.status))).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_life_is_told_from_the_trail() {
        use Action::{
            WorkerConnecting, WorkerCreated, WorkerDrained, WorkerOffline, WorkerOnline, WorkerRegistered,
            WorkerResumed,
        };
        let life = [
            (1, WorkerCreated),
            (5, WorkerRegistered),
            (5, WorkerOnline),
            (20, WorkerConnecting),
            (22, WorkerOnline),
            (30, WorkerDrained),
            (40, WorkerResumed),
            (50, WorkerOffline),
        ];
        let jobs = [(10, Some(15)), (12, Some(25)), (38, Some(45))];
        let all = "1 Never, 5 Idle, 10 Busy, 25 Idle, 30 Draining, 40 Busy, 45 Idle, 50 Offline";
        assert_eq!(drawn(&made(), &life, &jobs, 0), all);
        assert_eq!(drawn(&made(), &life, &[], 21), "20 Connecting, 22 Idle, 30 Draining, 40 Idle, 50 Offline");
        assert_eq!(drawn(&made(), &life, &jobs, 99), "50 Offline");
        let spent = Worker { spent: Some(Timestamp(45)), ..made() };
        assert_eq!(drawn(&spent, &life, &[], 40), "40 Idle, 45 Draining, 50 Offline");
    }

    #[test]
    fn what_is_not_on_record_is_told_by_the_worker_or_not_at_all() {
        let link = Link::Online { since: Timestamp(3), capability: Capability::default(), stream: "s/1".to_owned() };
        let online = Worker { link, ..made() };
        assert_eq!(drawn(&made(), &[], &[], 90), "0 Never");
        assert_eq!(drawn(&online, &[], &[(95, None)], 90), "3 Idle, 95 Busy");
        let drain = Drain { since: Timestamp(7), reason: None, deadline: None };
        assert_eq!(drawn(&Worker { drain: Some(drain), ..online.clone() }, &[], &[], 90), "7 Draining");
        assert_eq!(drawn(&online, &[(95, Action::WorkerResumed)], &[], 90), "3 Draining, 95 Idle");
        assert_eq!(
            drawn(&online, &[(95, Action::WorkerConnecting)], &[(91, None)], 90),
            "95 Busy",
            "not what was before"
        );
        assert_eq!(drawn(&online, &[(95, Action::WorkerEdited)], &[], 90), "3 Idle", "another word tells nothing");
    }

    prop_compose! {
        fn trail()(steps in proptest::collection::vec((0_i64..200, 0_usize..7), 0..40)) -> Vec<(Timestamp, Action)> {
            let words: Vec<Action> = CONTACTS.into_iter().chain(DRAINS).collect();
            let mut trail: Vec<_> = steps.into_iter().map(|(at, word)| (Timestamp(at), words[word])).collect();
            trail.sort_by_key(|(at, _)| *at);
            trail
        }
    }

    proptest! {
        #[test]
        fn it_is_in_order_and_each_differs_from_the_one_before(
            told in trail(), held in proptest::collection::vec((0_i64..200, proptest::option::of(0_i64..100)), 0..10), since in 0_i64..250,
        ) {
            let held = held.into_iter().map(|(from, long)| (Timestamp(from), long.map(|long| Timestamp(from + long))));
            let course = course(&made(), told, held, Timestamp(since));
            prop_assert!(!course.is_empty());
            prop_assert!(course.windows(2).all(|two| two[0].since < two[1].since && two[0].status != two[1].status));
            prop_assert!(course.iter().skip(1).all(|stood| stood.since > Timestamp(since)), "one at most from before");
        }

        /// What came before the time tells no more than the newest word of each kind.
        #[test]
        fn the_newest_words_from_before_are_enough(told in trail(), since in 0_i64..200) {
            let since = Timestamp(since);
            let newest = |words: &[Action]| {
                told.iter().rev().find(|(at, action)| *at < since && words.contains(action)).copied()
            };
            let before = [newest(&CONTACTS), newest(&DRAINS)].into_iter().flatten();
            let inside = told.iter().copied().filter(|(at, _)| *at >= since);
            let short = course(&made(), before.chain(inside), [], since);
            let whole = course(&made(), told.clone(), [], since);
            let within = |course: &[Stood]| -> Vec<Stood> {
                course.iter().map(|stood| Stood { since: stood.since.max(since), ..*stood }).collect()
            };
            prop_assert_eq!(within(&short), within(&whole));
        }

        /// Its last word is the one that its badge shows.
        #[test]
        fn it_ends_as_the_worker_stands(told in trail(), jobs in 0_usize..3) {
            let held = vec![(Timestamp(300), None); jobs];
            let last = course(&made(), told.clone(), held, Timestamp(0)).pop().expect("it stands somehow");
            let contact = told.iter().rev().find_map(|(_, action)| match Turn::of(*action) {
                Some(Turn::Contact(contact)) => Some(contact),
                _ => None,
            });
            let drained = told.iter().rev().find(|(_, action)| DRAINS.contains(action));
            let drains = drained.is_some_and(|(_, action)| *action == Action::WorkerDrained);
            let contact = contact.unwrap_or(Contact::NeverSeen);
            let expected = (contact != Contact::NeverSeen).then(|| contact.status(drains, jobs > 0));
            prop_assert_eq!(last.status, expected);
        }
    }
}
