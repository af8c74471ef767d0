//! Facets: the number of workers for each value, among those that match the rest of a query.

use std::collections::HashMap;

use super::matcher::SearchableWorker;
use super::query::{WorkerFilter, WorkerSearchQuery, WorkerSearchStatus};
use crate::domain::search_terms::{SearchTerm, SearchTerms, TextPattern};
use crate::domain::worker::WorkerKind;

/// The facet of a query term. Terms of a facet are ignored when that facet is counted, so that alternatives are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FacetKey<'q> {
    Status,
    Kind,
    Gpu,
    Version,
    Tls,
    Label(&'q str),
    Other,
}

fn facet_key(term: &SearchTerm<WorkerFilter>) -> FacetKey<'_> {
    match &term.filter {
        WorkerFilter::Status(_) => FacetKey::Status,
        WorkerFilter::Kind(_) => FacetKey::Kind,
        WorkerFilter::Gpu(_) => FacetKey::Gpu,
        WorkerFilter::Version(_) => FacetKey::Version,
        WorkerFilter::Tls(_) => FacetKey::Tls,
        WorkerFilter::Label { key, .. } => FacetKey::Label(key),
        WorkerFilter::Any(_) | WorkerFilter::Host(_) | WorkerFilter::Name(_) | WorkerFilter::Id(_) => FacetKey::Other,
    }
}

/// The counts, each with the filter for its workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FacetCounts<'w> {
    statuses: [u64; WorkerSearchStatus::ALL.len()],
    kinds: [u64; 2],
    gpu_models: HashMap<&'w str, u64>,
    versions: HashMap<&'w str, u64>,
    labels: HashMap<(&'w str, &'w str), u64>,
    tls_unverified: u64,
}

const KINDS: [WorkerKind; 2] = [WorkerKind::Persistent, WorkerKind::Ephemeral];

impl<'w> FacetCounts<'w> {
    /// Counts a worker, and returns whether it matches the whole query.
    pub fn add(&mut self, entry: &SearchableWorker<'w>, query: &WorkerSearchQuery) -> bool {
        let mut excluded_by = None;
        for term in query.0.iter().filter(|term| !entry.matches_term(term)) {
            let key = facet_key(term);
            match excluded_by {
                None => excluded_by = Some(key),
                Some(other) if other == key => {}
                // Two facets exclude it, so no change of a single facet would include it.
                Some(_) => return false,
            }
            if key == FacetKey::Other {
                return false;
            }
        }
        self.count_by(entry, excluded_by);
        excluded_by.is_none()
    }

    /// Counts it for the only facet that excludes it, or for all facets.
    fn count_by(&mut self, entry: &SearchableWorker<'w>, excluded_by: Option<FacetKey<'_>>) {
        let is_counted = |key: FacetKey<'_>| excluded_by.is_none_or(|excluded_by| excluded_by == key);
        if is_counted(FacetKey::Status) {
            for (count, status) in self.statuses.iter_mut().zip(WorkerSearchStatus::ALL) {
                *count += u64::from(entry.has_status(status));
            }
        }
        if is_counted(FacetKey::Kind) {
            for (count, kind) in self.kinds.iter_mut().zip(KINDS) {
                *count += u64::from(entry.worker.kind == Some(kind));
            }
        }
        if is_counted(FacetKey::Gpu) {
            entry.gpu_models().for_each(|model| *self.gpu_models.entry(model).or_default() += 1);
        }
        if is_counted(FacetKey::Version) {
            entry.agent_version().into_iter().for_each(|version| *self.versions.entry(version).or_default() += 1);
        }
        if is_counted(FacetKey::Tls) {
            self.tls_unverified += u64::from(entry.verifies_tls() == Some(false));
        }
        for label in entry.labels().filter(|(key, _)| is_counted(FacetKey::Label(key))) {
            *self.labels.entry(label).or_default() += 1;
        }
    }

    /// Returns the choices: the most frequent values, and all selected ones.
    pub fn choices(&self, query: &WorkerSearchQuery, limit: usize) -> Vec<FacetChoice> {
        let statuses = self.statuses.into_iter().zip(WorkerSearchStatus::ALL);
        let kinds = self.kinds.into_iter().zip(KINDS);
        let exact = TextPattern::literal;
        let mut choices: Vec<FacetChoice> = Vec::new();
        choices.extend(statuses.map(|(count, status)| FacetChoice::new(query, WorkerFilter::Status(status), count)));
        choices.extend(kinds.map(|(count, kind)| FacetChoice::new(query, WorkerFilter::Kind(kind), count)));
        let models = self
            .gpu_models
            .iter()
            .map(|(model, count)| FacetChoice::new(query, WorkerFilter::Gpu(exact(model)), *count));
        choices.extend(most_frequent(models.collect(), limit));
        let labels = self.labels.iter().map(|((key, value), count)| {
            FacetChoice::new(query, WorkerFilter::Label { key: (*key).to_owned(), value: exact(value) }, *count)
        });
        choices.extend(most_frequent(labels.collect(), limit));
        let versions = self
            .versions
            .iter()
            .map(|(version, count)| FacetChoice::new(query, WorkerFilter::Version(exact(version)), *count));
        choices.extend(most_frequent(versions.collect(), limit));
        choices.push(FacetChoice::new(query, WorkerFilter::Tls(false), self.tls_unverified));
        choices
    }
}

/// A choice of a facet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetChoice {
    /// The filter.
    pub filter: WorkerFilter,
    /// Number of workers with this choice.
    pub count: u64,
    /// Whether the query contains it.
    pub is_selected: bool,
    /// The query with this choice, replacing other terms of its facet; or without it if it is selected.
    pub toggled_query: WorkerSearchQuery,
}

impl FacetChoice {
    fn new(query: &WorkerSearchQuery, filter: WorkerFilter, count: u64) -> Self {
        let term = SearchTerm { negated: false, filter };
        let is_selected = query.0.contains(&term);
        let mut toggled: Vec<SearchTerm<WorkerFilter>> =
            query.0.iter().filter(|other| facet_key(other) != facet_key(&term)).cloned().collect();
        if !is_selected {
            toggled.push(term.clone());
        }
        Self { filter: term.filter, count, is_selected, toggled_query: SearchTerms(toggled) }
    }
}

fn most_frequent(mut choices: Vec<FacetChoice>, limit: usize) -> Vec<FacetChoice> {
    choices.sort_by_cached_key(|choice| {
        (
            !choice.is_selected,
            std::cmp::Reverse(choice.count),
            SearchTerm { negated: false, filter: choice.filter.clone() }.to_string(),
        )
    });
    choices.truncate(limit.max(choices.iter().filter(|choice| choice.is_selected).count()));
    choices
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::ids::WorkerId;
    use crate::domain::time::Timestamp;
    use crate::domain::worker::{Worker, WorkerState};

    fn fleet() -> Vec<(Worker, WorkerState)> {
        let worker = |n: u8| {
            let mut worker = Worker::new(WorkerId::new(Timestamp(0), [n; 10]), format!("w{n}"), Timestamp(0));
            worker.labels.0.insert("team".to_owned(), if n.is_multiple_of(2) { "nlp" } else { "vision*" }.to_owned());
            worker.labels.0.insert("rack".to_owned(), format!("r{}", n % 3));
            worker.kind = [None, Some(WorkerKind::Persistent), Some(WorkerKind::Ephemeral)][usize::from(n % 3)];
            (worker, [WorkerState::Idle, WorkerState::Busy, WorkerState::Offline][usize::from(n / 4 % 3)])
        };
        (0..24).map(worker).collect()
    }

    fn entries(fleet: &[(Worker, WorkerState)]) -> Vec<SearchableWorker<'_>> {
        fleet
            .iter()
            .map(|(worker, status)| SearchableWorker { worker, state: *status, use_reported_labels: true })
            .collect()
    }

    fn number(entries: &[SearchableWorker<'_>], query: &WorkerSearchQuery) -> u64 {
        entries.iter().filter(|entry| entry.matches(query)).count() as u64
    }

    #[test]
    fn choice_replaces_another_and_can_be_removed() {
        let query = WorkerSearchQuery::parse("w label.team=nlp status:idle").expect("a query");
        let choice = FacetChoice::new(&query, WorkerFilter::Status(WorkerSearchStatus::Busy), 3);
        assert_eq!(
            (choice.is_selected, choice.toggled_query.to_string()),
            (false, "w label.team=nlp status:busy".to_owned())
        );
        let selected = FacetChoice::new(&query, WorkerFilter::Status(WorkerSearchStatus::Idle), 3);
        assert_eq!((selected.is_selected, selected.toggled_query.to_string()), (true, "w label.team=nlp".to_owned()));
    }

    proptest! {
        /// The count of a choice is the number of workers after it is selected.
        #[test]
        fn count_equals_the_matches_of_the_choice(words in prop::collection::vec(0..9_usize, 0..4)) {
            let all = ["w1", "-w2", "status:idle", "-status:busy", "type:persistent", "label.team=nlp", "label.rack:r*",
                "-label.rack=r1", "tls:off"];
            let query = words.iter().map(|n| all[*n]).collect::<Vec<_>>().join(" ");
            let query = WorkerSearchQuery::parse(&query).expect("a query");
            let fleet = fleet();
            let entries = entries(&fleet);
            let mut facets = FacetCounts::default();
            let matching = entries.iter().filter(|entry| facets.add(entry, &query)).count() as u64;
            prop_assert_eq!(matching, number(&entries, &query));
            for choice in facets.choices(&query, 100).into_iter().filter(|choice| !choice.is_selected) {
                prop_assert_eq!(choice.count, number(&entries, &choice.toggled_query), "{}", choice.toggled_query);
            }
        }
    }
}
