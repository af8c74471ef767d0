//! Whether a worker is among those that are asked for.

use super::query::{Pattern, Query, Standing, Term, Test};
use crate::domain::glob;
use crate::domain::ids::is_known_by;
use crate::domain::worker::{Link, Status, Worker};

/// A worker, with what a question needs to know that its own state does not say.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'w> {
    /// The worker.
    pub worker: &'w Worker,
    /// Where it stands.
    pub status: Status,
    /// Whether labels count that its agent reports.
    pub reported: bool,
}

impl<'w> Entry<'w> {
    /// Whether it is where this says.
    pub fn stands(&self, standing: Standing) -> bool {
        match standing {
            Standing::Connecting => self.status == Status::Connecting,
            Standing::Idle => self.status == Status::Idle,
            Standing::Busy => self.status == Status::Busy,
            Standing::Draining => self.status == Status::Draining,
            Standing::Offline => self.status == Status::Offline,
            Standing::Never => matches!(self.worker.link, Link::NeverSeen),
        }
    }

    /// The labels that count: the admin's, and of the reported ones those that the admin has not said otherwise.
    pub fn labels(&self) -> impl Iterator<Item = (&'w str, &'w str)> + use<'w> {
        let own = &self.worker.labels.0;
        let reported = self.worker.capability().filter(|_| self.reported).map(|capability| &capability.labels.0);
        let more = reported.into_iter().flatten().filter(|(key, _)| !own.contains_key(*key));
        own.iter().chain(more).map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The models of its GPUs, each once if those that are alike lie together.
    pub fn models(&self) -> impl Iterator<Item = &'w str> + use<'w> {
        let gpus = self.worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
        let is_first = |at: usize| at == 0 || gpus[at - 1].name != gpus[at].name;
        (0..gpus.len()).filter(move |at| is_first(*at)).map(|at| gpus[at].name.as_str())
    }

    /// Its agent's version.
    pub fn version(&self) -> Option<&'w str> {
        self.worker.capability()?.agent_version.as_deref()
    }

    /// Whether its agent verifies the server's certificate, if it said so.
    pub fn tls(&self) -> Option<bool> {
        self.worker.capability()?.tls_verify
    }

    /// Whether it answers the whole question.
    pub fn fits(&self, query: &Query) -> bool {
        query.0.iter().all(|term| self.answers(term))
    }

    /// Whether it answers one word.
    pub fn answers(&self, term: &Term) -> bool {
        self.passes(&term.test) != term.negated
    }

    fn passes(&self, test: &Test) -> bool {
        let host = || self.worker.capability().and_then(|capability| capability.hostname.as_deref());
        match test {
            Test::Status(standing) => self.stands(*standing),
            Test::Kind(kind) => self.worker.kind == Some(*kind),
            Test::Tls(on) => self.tls() == Some(*on),
            Test::Gpu(pattern) => self.models().any(|model| pattern.fits(model)),
            Test::Version(pattern) => self.version().is_some_and(|version| pattern.fits(version)),
            Test::Host(pattern) => host().is_some_and(|host| pattern.fits(host)),
            Test::Name(pattern) => pattern.fits(&self.worker.name),
            Test::Id(pattern) => pattern.fits(self.worker.id.as_str()),
            Test::Label { key, value } => self.labels().any(|(one, text)| one == key && value.fits(text)),
            Test::Any(pattern) => {
                pattern.fits(&self.worker.name)
                    || pattern.names(self.worker.id.as_str())
                    || host().is_some_and(|host| pattern.fits(host))
                    || self.models().any(|model| pattern.fits(model))
                    || self.labels().any(|(key, value)| pattern.fits(&format!("{key}={value}")))
            }
        }
    }
}

impl Pattern {
    /// Whether an id is meant by this.
    fn names(&self, id: &str) -> bool {
        matches!(self, Self::Part(part) if is_known_by(id, part))
    }

    /// Whether the text is like this.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::Whole(glob) => glob::matches(glob, text),
            Self::Part(part) if !part.contains(['*', '?', '[']) => contains(text, part),
            Self::Part(glob) => {
                let text = text.to_lowercase();
                parts(&text).any(|part| glob::matches(glob, part))
            }
        }
    }
}

/// Whether the text has a part, which is in small letters.
fn contains(text: &str, part: &str) -> bool {
    if part.is_empty() {
        return true;
    }
    if text.is_ascii() {
        // Most are: a fleet is looked through without a copy of each of its names.
        return text.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()));
    }
    text.to_lowercase().contains(part)
}

/// The text from its beginning and from that of each of its parts.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let begins = |at: usize| text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
    let starts = text.char_indices().map(|(at, _)| at).filter(move |at| begins(*at));
    std::iter::once(text).chain(starts.filter(|at| *at > 0).map(|at| &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::Capability;
    use crate::domain::fixtures::gpus;
    use crate::domain::ids::WorkerId;
    use crate::domain::labels::Labels;
    use crate::domain::time::Timestamp;
    use crate::domain::worker::Kind;
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
            kind: Some(Kind::Persistent),
            labels: labels(&[("team", "nlp")]),
            link: Link::Connecting { since: Timestamp(0), capability },
            ..Worker::made(WorkerId::new(Timestamp(0), [0; 10]), "Grün-4".to_owned(), Timestamp(0))
        }
    }

    #[test]
    fn what_it_answers() {
        let worker = worker();
        let entry = Entry { worker: &worker, status: Status::Idle, reported: true };
        let yes = [
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
        for text in yes {
            assert!(entry.fits(&Query::parse(text).expect("a question")), "{text:?}");
        }
        let no = [
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
        for text in no {
            assert!(!entry.fits(&Query::parse(text).expect("a question")), "{text:?}");
        }
        let distrusted = Entry { reported: false, ..entry };
        assert!(!distrusted.fits(&Query::parse("label.zone=b").expect("a question")));
    }

    proptest! {
        #[test]
        fn a_part_is_found_wherever_it_is(before in ".{0,8}", part in "[a-zü0-9]{1,6}", after in ".{0,8}") {
            let text = format!("{before}{}{after}", part.to_uppercase());
            prop_assert!(Pattern::Part(part).fits(&text));
        }

        #[test]
        fn leaving_out_is_the_opposite(text in "[a-d0-9:]{1,6}") {
            if let (Ok(with), Ok(without)) = (Query::parse(&text), Query::parse(&format!("-{text}"))) {
                let worker = worker();
                let entry = Entry { worker: &worker, status: Status::Idle, reported: true };
                prop_assert_ne!(entry.fits(&with), entry.fits(&without));
            }
        }
    }
}
