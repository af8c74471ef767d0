//! What the address of the list asks for, and addresses that ask for something else.

use leptos_router::params::ParamsMap;

use crate::domain::ids::WorkerId;
use crate::protocol::queue::JobsQuery;
use crate::protocol::status::{JobStatus, Phase};
use crate::ui::format::query_string;
use crate::ui::pages::{asked, asked_moment};

/// How many jobs a page shows.
const PAGE: u32 = 50;

/// The filters as they stand in the address.
pub(super) fn query_of(params: &ParamsMap) -> JobsQuery {
    let text = |name| asked(params, name);
    JobsQuery {
        status: params.get("status").and_then(|word| JobStatus::parse(&word)),
        phase: params.get("phase").and_then(|word| Phase::parse(&word)),
        user: text("user"),
        label: text("label"),
        worker: text("worker").and_then(|id| WorkerId::parse(&id).ok()),
        since: asked_moment(params, "since"),
        until: asked_moment(params, "until"),
        ended_since: asked_moment(params, "ended_since"),
        limit: Some(PAGE),
        cursor: params.get("cursor"),
    }
}

/// The list by these filters.
pub(crate) fn jobs_address(query: &JobsQuery) -> String {
    let JobsQuery { status, phase, user, label, worker, since, until, ended_since, limit: _, cursor } = query.clone();
    let pairs = [
        ("status", status.map(|status| status.as_str().to_owned())),
        ("phase", phase.map(|phase| phase.as_str().to_owned())),
        ("user", user),
        ("label", label),
        ("worker", worker.map(|worker| worker.to_string())),
        ("since", since),
        ("until", until),
        ("ended_since", ended_since),
        ("cursor", cursor),
    ];
    format!("/jobs{}", query_string(&pairs))
}

/// Whether anything is left out.
pub(super) fn is_filtered(query: &JobsQuery) -> bool {
    jobs_address(&JobsQuery { cursor: None, ..query.clone() }) != "/jobs"
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
        let query = query_of(&params);
        assert_eq!((query.status, is_filtered(&query)), (Some(JobStatus::Failed), true));
        assert_eq!(jobs_address(&query), "/jobs?status=failed&user=a%26b&label=team%3Dnlp&cursor=x%3D1");
        for (name, value) in
            [("worker", "w_1"), ("since", "2024-01-15T10:30"), ("ended_since", "2024-01-15T10:30:00.5Z")]
        {
            params.insert(name, value.to_owned());
        }
        assert_eq!(
            jobs_address(&JobsQuery { cursor: None, ..query_of(&params) }),
            "/jobs?status=failed&user=a%26b&label=team%3Dnlp&worker=w_1&since=2024-01-15T10%3A30%3A00Z\
             &ended_since=2024-01-15T10%3A30%3A00.5Z"
        );
        params.insert("phase", "nonsense".to_owned());
        assert_eq!(query_of(&params).phase, None);
        assert!(!is_filtered(&query_of(&ParamsMap::new())));
    }
}
