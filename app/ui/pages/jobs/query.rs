//! What the address of the list asks for, and addresses that ask for something else.

use leptos_router::params::ParamsMap;

use crate::domain::ids::WorkerId;
use crate::protocol::jobs::JobsQuery;
use crate::protocol::status::{JobPhase, JobStatus};
use crate::ui::format::query_string;
use crate::ui::pages::{query_param, timestamp_param};

/// How many jobs a page shows.
const PAGE_SIZE: u32 = 50;

/// The filters as they stand in the address.
pub(super) fn query_from_params(params: &ParamsMap) -> JobsQuery {
    let text = |name| query_param(params, name);
    JobsQuery {
        status: params.get("status").and_then(|word| JobStatus::parse(&word)),
        phase: params.get("phase").and_then(|word| JobPhase::parse(&word)),
        user: text("user"),
        label: text("label"),
        q: text("q"),
        config: text("config"),
        worker: text("worker").and_then(|id| WorkerId::parse(&id).ok()),
        since: timestamp_param(params, "since"),
        until: timestamp_param(params, "until"),
        ended_since: timestamp_param(params, "ended_since"),
        limit: Some(PAGE_SIZE),
        cursor: params.get("cursor"),
    }
}

/// The list by these filters.
pub(crate) fn jobs_url(query: &JobsQuery) -> String {
    format!("/jobs{}", query_string(&query_pairs(query.clone())))
}

/// Its words in an address, but for how many.
pub(crate) fn query_pairs(query: JobsQuery) -> [(&'static str, Option<String>); 11] {
    let JobsQuery { status, phase, user, label, q, config, worker, since, until, ended_since, limit: _, cursor } =
        query;
    [
        ("status", status.map(|status| status.as_str().to_owned())),
        ("phase", phase.map(|phase| phase.as_str().to_owned())),
        ("user", user),
        ("label", label),
        ("q", q),
        ("config", config),
        ("worker", worker.map(|worker| worker.to_string())),
        ("since", since),
        ("until", until),
        ("ended_since", ended_since),
        ("cursor", cursor),
    ]
}

/// Whether anything is left out.
pub(super) fn is_filtered(query: &JobsQuery) -> bool {
    jobs_url(&JobsQuery { cursor: None, ..query.clone() }) != "/jobs"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_queries_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in [("status", "failed"), ("cursor", "x=1"), ("user", "a&b"), ("label", " team=nlp ")] {
            params.insert(name, value.to_owned());
        }
        let query = query_from_params(&params);
        assert_eq!((query.status, is_filtered(&query)), (Some(JobStatus::Failed), true));
        assert_eq!(jobs_url(&query), "/jobs?status=failed&user=a%26b&label=team%3Dnlp&cursor=x%3D1");
        for (name, value) in [
            ("worker", "w_1"),
            ("since", "2024-01-15T10:30"),
            ("ended_since", "2024-01-15T10:30:00.5Z"),
            ("q", "flux"),
            ("config", "a"),
        ] {
            params.insert(name, value.to_owned());
        }
        assert_eq!(
            jobs_url(&JobsQuery { cursor: None, ..query_from_params(&params) }),
            "/jobs?status=failed&user=a%26b&label=team%3Dnlp&q=flux&config=a&worker=w_1&since=2024-01-15T10%3A30%3A00Z\
             &ended_since=2024-01-15T10%3A30%3A00.5Z"
        );
        params.insert("phase", "nonsense".to_owned());
        assert_eq!(query_from_params(&params).phase, None);
        assert!(!is_filtered(&query_from_params(&ParamsMap::new())));
    }
}
