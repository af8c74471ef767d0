//! How many workers there are of each kind, among those that the rest of a question leaves.

use std::collections::HashMap;

use super::fits::Entry;
use super::query::{Pattern, Query, Standing, Term, Test, literal};
use crate::domain::worker::Kind;

/// A question's words about one thing are passed over where that thing is counted: what else could be chosen is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About<'q> {
    Status,
    Kind,
    Gpu,
    Version,
    Tls,
    Label(&'q str),
    Other,
}

fn about(term: &Term) -> About<'_> {
    match &term.test {
        Test::Status(_) => About::Status,
        Test::Kind(_) => About::Kind,
        Test::Gpu(_) => About::Gpu,
        Test::Version(_) => About::Version,
        Test::Tls(_) => About::Tls,
        Test::Label { key, .. } => About::Label(key),
        Test::Any(_) | Test::Host(_) | Test::Name(_) | Test::Id(_) => About::Other,
    }
}

/// The counts, each with what asks for those that are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facets<'w> {
    standings: [u64; Standing::ALL.len()],
    kinds: [u64; 2],
    models: HashMap<&'w str, u64>,
    versions: HashMap<&'w str, u64>,
    labels: HashMap<(&'w str, &'w str), u64>,
    unverified: u64,
}

const KINDS: [Kind; 2] = [Kind::Persistent, Kind::Ephemeral];

impl<'w> Facets<'w> {
    /// Takes a worker. Answers whether it is one of those that the whole question asks for.
    pub fn take(&mut self, entry: &Entry<'w>, query: &Query) -> bool {
        let mut missed = None;
        for term in query.0.iter().filter(|term| !entry.answers(term)) {
            let thing = about(term);
            match missed {
                None => missed = Some(thing),
                Some(before) if before == thing => {}
                // It would not be among them whatever else were chosen of one thing.
                Some(_) => return false,
            }
            if thing == About::Other {
                return false;
            }
        }
        self.count(entry, missed);
        missed.is_none()
    }

    /// Counts it by the thing that alone kept it out, or by all.
    fn count(&mut self, entry: &Entry<'w>, missed: Option<About<'_>>) {
        let counts = |thing: About<'_>| missed.is_none_or(|missed| missed == thing);
        if counts(About::Status) {
            for (count, standing) in self.standings.iter_mut().zip(Standing::ALL) {
                *count += u64::from(entry.stands(standing));
            }
        }
        if counts(About::Kind) {
            for (count, kind) in self.kinds.iter_mut().zip(KINDS) {
                *count += u64::from(entry.worker.kind == Some(kind));
            }
        }
        if counts(About::Gpu) {
            entry.models().for_each(|model| *self.models.entry(model).or_default() += 1);
        }
        if counts(About::Version) {
            entry.version().into_iter().for_each(|version| *self.versions.entry(version).or_default() += 1);
        }
        if counts(About::Tls) {
            self.unverified += u64::from(entry.tls() == Some(false));
        }
        for label in entry.labels().filter(|(key, _)| counts(About::Label(key))) {
            *self.labels.entry(label).or_default() += 1;
        }
    }

    /// What can be chosen: of many, the most frequent, and whatever is chosen.
    pub fn choices(&self, query: &Query, most: usize) -> Vec<Choice> {
        let standings = self.standings.into_iter().zip(Standing::ALL);
        let kinds = self.kinds.into_iter().zip(KINDS);
        let whole = |text: &str| Pattern::Whole(literal(text));
        let mut choices: Vec<Choice> = Vec::new();
        choices.extend(standings.map(|(count, standing)| Choice::of(query, Test::Status(standing), count)));
        choices.extend(kinds.map(|(count, kind)| Choice::of(query, Test::Kind(kind), count)));
        let models = self.models.iter().map(|(model, count)| Choice::of(query, Test::Gpu(whole(model)), *count));
        choices.extend(frequent(models.collect(), most));
        let labels = self.labels.iter().map(|((key, value), count)| {
            Choice::of(query, Test::Label { key: (*key).to_owned(), value: whole(value) }, *count)
        });
        choices.extend(frequent(labels.collect(), most));
        let versions = self.versions.iter().map(|(one, count)| Choice::of(query, Test::Version(whole(one)), *count));
        choices.extend(frequent(versions.collect(), most));
        choices.push(Choice::of(query, Test::Tls(false), self.unverified));
        choices
    }
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What it asks.
    pub test: Test,
    /// How many workers it would leave.
    pub count: u64,
    /// Whether it is chosen.
    pub chosen: bool,
    /// The question with it, in the place of whatever else it says about the same thing; or without it, if it is chosen.
    pub turned: Query,
}

impl Choice {
    fn of(query: &Query, test: Test, count: u64) -> Self {
        let term = Term { negated: false, test };
        let chosen = query.0.contains(&term);
        let mut turned: Vec<Term> = query.0.iter().filter(|one| about(one) != about(&term)).cloned().collect();
        if !chosen {
            turned.push(term.clone());
        }
        Self { test: term.test, count, chosen, turned: Query(turned) }
    }
}

fn frequent(mut choices: Vec<Choice>, most: usize) -> Vec<Choice> {
    choices.sort_by_cached_key(|choice| {
        (
            !choice.chosen,
            std::cmp::Reverse(choice.count),
            Term { negated: false, test: choice.test.clone() }.to_string(),
        )
    });
    choices.truncate(most.max(choices.iter().filter(|choice| choice.chosen).count()));
    choices
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::ids::WorkerId;
    use crate::domain::time::Timestamp;
    use crate::domain::worker::{Status, Worker};

    fn fleet() -> Vec<(Worker, Status)> {
        let made = |n: u8| {
            let mut worker = Worker::made(WorkerId::new(Timestamp(0), [n; 10]), format!("w{n}"), Timestamp(0));
            worker.labels.0.insert("team".to_owned(), if n.is_multiple_of(2) { "nlp" } else { "vision*" }.to_owned());
            worker.labels.0.insert("rack".to_owned(), format!("r{}", n % 3));
            worker.kind = [None, Some(Kind::Persistent), Some(Kind::Ephemeral)][usize::from(n % 3)];
            (worker, [Status::Idle, Status::Busy, Status::Offline][usize::from(n / 4 % 3)])
        };
        (0..24).map(made).collect()
    }

    fn entries(fleet: &[(Worker, Status)]) -> Vec<Entry<'_>> {
        fleet.iter().map(|(worker, status)| Entry { worker, status: *status, reported: true }).collect()
    }

    fn number(entries: &[Entry<'_>], query: &Query) -> u64 {
        entries.iter().filter(|entry| entry.fits(query)).count() as u64
    }

    #[test]
    fn a_choice_takes_the_place_of_another_and_can_be_taken_back() {
        let query = Query::parse("w label.team=nlp status:idle").expect("a question");
        let choice = Choice::of(&query, Test::Status(Standing::Busy), 3);
        assert_eq!((choice.chosen, choice.turned.to_string()), (false, "w label.team=nlp status:busy".to_owned()));
        let chosen = Choice::of(&query, Test::Status(Standing::Idle), 3);
        assert_eq!((chosen.chosen, chosen.turned.to_string()), (true, "w label.team=nlp".to_owned()));
    }

    proptest! {
        /// What stands beside a choice is how many workers are left when it is chosen.
        #[test]
        fn a_count_is_what_the_choice_leaves(words in prop::collection::vec(0..9_usize, 0..4)) {
            let all = ["w1", "-w2", "status:idle", "-status:busy", "type:persistent", "label.team=nlp", "label.rack:r*",
                "-label.rack=r1", "tls:off"];
            let query = words.iter().map(|n| all[*n]).collect::<Vec<_>>().join(" ");
            let query = Query::parse(&query).expect("a question");
            let fleet = fleet();
            let entries = entries(&fleet);
            let mut facets = Facets::default();
            let fitting = entries.iter().filter(|entry| facets.take(entry, &query)).count() as u64;
            prop_assert_eq!(fitting, number(&entries, &query));
            for choice in facets.choices(&query, 100).into_iter().filter(|choice| !choice.chosen) {
                prop_assert_eq!(choice.count, number(&entries, &choice.turned), "{}", choice.turned);
            }
        }
    }
}
