//! The order of the queue: by class; then of teams, and of the members of a team, the one that uses the least of its
//! share; then by priority and age.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use super::tree::{ShareRank, ShareTree};
use crate::domain::job_share::JobClass;

/// The waiting jobs of one class of a member of a team.
pub struct ShareQueue<'q, J> {
    /// Their class.
    pub class: JobClass,
    /// The team.
    pub team: &'q str,
    /// The user.
    pub user: &'q str,
    /// The jobs, by priority and age.
    pub jobs: Box<dyn Iterator<Item = J> + 'q>,
}

/// The jobs of all shares. While jobs are given to shares in the tree, others come first.
pub struct ShareRotation<'q, J> {
    /// The classes that come later, the last one first.
    later: Vec<ClassQueues<'q, J>>,
    class: JobClass,
    teams: BinaryHeap<Ranked<'q, TeamQueues<'q, J>>>,
}

/// The queues of one class, by team.
type ClassQueues<'q, J> = (JobClass, BTreeMap<usize, Vec<MemberQueue<'q, J>>>);
type MemberQueue<'q, J> = (usize, Box<dyn Iterator<Item = J> + 'q>);

struct TeamQueues<'q, J> {
    team: usize,
    members: BinaryHeap<Ranked<'q, MemberQueue<'q, J>>>,
}

/// A share in a heap, with its rank when it was last compared: within a round, ranks only grow.
struct Ranked<'q, T> {
    rank: Reverse<ShareRank<'q>>,
    queue: T,
}

impl<'q, J> ShareRotation<'q, J> {
    /// Sorts queues into a tree, which gets the shares that it lacks.
    pub fn new(queues: impl IntoIterator<Item = ShareQueue<'q, J>>, tree: &mut ShareTree<'q>) -> Self {
        let mut classes: BTreeMap<JobClass, BTreeMap<usize, Vec<MemberQueue<'q, J>>>> = BTreeMap::new();
        for queue in queues {
            let (team, member) = (tree.team(queue.team), tree.member(queue.team, queue.user));
            classes.entry(queue.class).or_default().entry(team).or_default().push((member, queue.jobs));
        }
        let later = classes.into_iter().rev().collect();
        Self { later, class: JobClass::Urgent, teams: BinaryHeap::new() }
    }

    /// Returns the next job: of the share that comes first now.
    pub fn next(&mut self, tree: &ShareTree<'q>) -> Option<J> {
        loop {
            let Some(mut first) = self.teams.peek_mut() else {
                self.begin_class(tree)?;
                continue;
            };
            let rank = Reverse(tree.team_rank(first.queue.team, self.class));
            if first.rank != rank {
                // Another team may come first now.
                first.rank = rank;
                continue;
            }
            if let Some(job) = first.queue.next(self.class, tree) {
                return Some(job);
            }
            PeekMut::pop(first);
        }
    }

    fn begin_class(&mut self, tree: &ShareTree<'q>) -> Option<()> {
        let (class, teams) = self.later.pop()?;
        let ranked_team = |(team, members): (usize, Vec<MemberQueue<'q, J>>)| {
            let ranked_member =
                |queue: MemberQueue<'q, J>| Ranked { rank: Reverse(tree.member_rank(queue.0, class)), queue };
            let members = members.into_iter().map(ranked_member).collect();
            Ranked { rank: Reverse(tree.team_rank(team, class)), queue: TeamQueues { team, members } }
        };
        (self.class, self.teams) = (class, teams.into_iter().map(ranked_team).collect());
        Some(())
    }
}

impl<'q, J> TeamQueues<'q, J> {
    fn next(&mut self, class: JobClass, tree: &ShareTree<'q>) -> Option<J> {
        loop {
            let mut first = self.members.peek_mut()?;
            let rank = Reverse(tree.member_rank(first.queue.0, class));
            if first.rank != rank {
                first.rank = rank;
            } else if let Some(job) = first.queue.1.next() {
                return Some(job);
            } else {
                PeekMut::pop(first);
            }
        }
    }
}

impl<T> PartialEq for Ranked<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<T> Eq for Ranked<'_, T> {}

impl<T> PartialOrd for Ranked<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ranked<'_, T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}
