//! Decides whether a worker matches a query.

use super::query::{WorkerFilter, WorkerSearchQuery, WorkerSearchStatus};
use crate::domain::search_terms::SearchTerm;
use crate::domain::worker::{ConnectionState, Worker, WorkerState};

/// A worker, with data for searching that is not part of its state.
#[derive(Debug, Clone, Copy)]
pub struct SearchableWorker<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// Its status.
    pub state: WorkerState,
    /// Whether labels that its agent reports are used.
    pub use_reported_labels: bool,
}

impl<'w> SearchableWorker<'w> {
    /// Returns whether it has this status.
    pub fn has_status(&self, status: WorkerSearchStatus) -> bool {
        match status {
            WorkerSearchStatus::Connecting => self.state == WorkerState::Connecting,
            WorkerSearchStatus::Idle => self.state == WorkerState::Idle,
            WorkerSearchStatus::Busy => self.state == WorkerState::Busy,
            WorkerSearchStatus::Draining => self.state == WorkerState::Draining,
            WorkerSearchStatus::Offline => self.state == WorkerState::Offline,
            WorkerSearchStatus::NeverConnected => matches!(self.worker.connection, ConnectionState::NeverConnected),
        }
    }

    /// Returns the effective labels: the admin's, and reported ones with other keys.
    pub fn labels(&self) -> impl Iterator<Item = (&'w str, &'w str)> + use<'w> {
        let admin_labels = &self.worker.labels.0;
        let reported =
            self.worker.capability().filter(|_| self.use_reported_labels).map(|capability| &capability.labels.0);
        let other_reported = reported.into_iter().flatten().filter(|(key, _)| !admin_labels.contains_key(*key));
        admin_labels.iter().chain(other_reported).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the models of its GPUs; duplicates are removed if adjacent.
    pub fn gpu_models(&self) -> impl Iterator<Item = &'w str> + use<'w> {
        let gpus = self.worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
        let is_first = |at: usize| at == 0 || gpus[at - 1].name != gpus[at].name;
        (0..gpus.len()).filter(move |at| is_first(*at)).map(|at| gpus[at].name.as_str())
    }

    /// Returns its agent's version.
    pub fn agent_version(&self) -> Option<&'w str> {
        self.worker.capability()?.agent_version.as_deref()
    }

    /// Returns whether its agent verifies the server's certificate, if reported.
    pub fn verifies_tls(&self) -> Option<bool> {
        self.worker.capability()?.tls_verify
    }

    /// Returns whether it matches the whole query.
    pub fn matches(&self, query: &WorkerSearchQuery) -> bool {
        query.0.iter().all(|term| self.matches_term(term))
    }

    /// Returns whether it matches one term.
    pub fn matches_term(&self, term: &SearchTerm<WorkerFilter>) -> bool {
        self.passes_filter(&term.filter) != term.negated
    }

    fn passes_filter(&self, filter: &WorkerFilter) -> bool {
        let host = || self.worker.capability().and_then(|capability| capability.hostname.as_deref());
        match filter {
            WorkerFilter::Status(status) => self.has_status(*status),
            WorkerFilter::Kind(kind) => self.worker.kind == Some(*kind),
            WorkerFilter::Tls(on) => self.verifies_tls() == Some(*on),
            WorkerFilter::Gpu(pattern) => self.gpu_models().any(|model| pattern.matches(model)),
            WorkerFilter::Version(pattern) => self.agent_version().is_some_and(|version| pattern.matches(version)),
            WorkerFilter::Host(pattern) => host().is_some_and(|host| pattern.matches(host)),
            WorkerFilter::Name(pattern) => pattern.matches(&self.worker.name),
            WorkerFilter::Id(pattern) => pattern.matches(self.worker.id.as_str()),
            WorkerFilter::Label { key, value } => {
                self.labels().any(|(label_key, label_value)| label_key == key && value.matches(label_value))
            }
            WorkerFilter::Any(pattern) => {
                pattern.matches(&self.worker.name)
                    || pattern.matches_id(self.worker.id.as_str())
                    || host().is_some_and(|host| pattern.matches(host))
                    || self.gpu_models().any(|model| pattern.matches(model))
                    || self.labels().any(|(key, value)| pattern.matches(&format!("{key}={value}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::fixtures::gpus;
    use crate::domain::ids::WorkerId;
    use crate::domain::labels::Labels;
    use crate::domain::time::Timestamp;
    use crate::domain::worker::WorkerKind;
    use proptest::prelude::*;

    fn worker() -> Worker {
        let labels = |pairs: &[(&str, &str)]| {
            Labels(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        let mut gpus = gpus(2, &[80, 80]);
        for gpu in &mut gpus {
            gpu.name = "NVIDIA A100-SXM4-80GB".to_owned();
        }
        let capability = Capability {
            gpus,
            hostname: Some("Rack-7.example".to_owned()),
            labels: labels(&[("team", "vision"), ("zone", "b")]),
            agent_version: Some("0.1.4".to_owned()),
            tls_verify: Some(false),
            ..Capability::default()
        };
        Worker {
            kind: Some(WorkerKind::Persistent),
            labels: labels(&[("team", "nlp")]),
            connection: ConnectionState::Connecting { since: Timestamp(0), capability, connection_lost: false },
            ..Worker::new(WorkerId::new(Timestamp(0), [0; 10]), "Grün-4".to_owned(), Timestamp(0))
        }
    }

    #[test]
    fn matching_queries() {
        let worker = worker();
        let entry = SearchableWorker { worker: &worker, state: WorkerState::Idle, use_reported_labels: true };
        let matching = [
            "",
            "grün",
            "rack-7",
            "a100",
            "sxm4*",
            "team=nlp",
            "zone",
            "status:idle",
            "type:persistent",
            "gpu:a100*",
            "gpu:nvidia*80gb",
            "gpu=NVIDIA*",
            "label.team=nlp",
            "label.zone:B",
            "version:0.1*",
            "tls:off",
            "host:rack",
            "name:GRÜN*",
            "id:w_",
            "-status:busy",
            "-label.team=vision",
            "-label.none:*",
        ];
        for text in matching {
            assert!(entry.matches(&WorkerSearchQuery::parse(text).expect("a query")), "{text:?}");
        }
        let not_matching = [
            "blau",
            "100-*",
            "status:never",
            "-grün",
            "gpu=a100",
            "label.team=vision",
            "label.zone=B",
            "tls:on",
            "version=0.1",
            "grün status:busy",
            "type:ephemeral",
        ];
        for text in not_matching {
            assert!(!entry.matches(&WorkerSearchQuery::parse(text).expect("a query")), "{text:?}");
        }
        let without_reported_labels = SearchableWorker { use_reported_labels: false, ..entry };
        assert!(!without_reported_labels.matches(&WorkerSearchQuery::parse("label.zone=b").expect("a query")));
    }

    proptest! {
        #[test]
        fn negated_term_is_the_opposite(text in "[a-d0-9:]{1,6}") {
            if let (Ok(with), Ok(without)) = (WorkerSearchQuery::parse(&text), WorkerSearchQuery::parse(&format!("-{text}"))) {
                let worker = worker();
                let entry = SearchableWorker { worker: &worker, state: WorkerState::Idle, use_reported_labels: true };
                prop_assert_ne!(entry.matches(&with), entry.matches(&without));
            }
        }
    }
}
