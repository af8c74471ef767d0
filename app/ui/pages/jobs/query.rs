//! What the address of the list asks for, and addresses that ask for something else.

use leptos_router::params::ParamsMap;

use crate::protocol::queue::JobsQuery;
use crate::protocol::status::{JobStatus, Phase};
use crate::ui::format::query_string;
use crate::ui::pages::asked;

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
        limit: Some(PAGE),
        cursor: params.get("cursor"),
    }
}

/// The list by these filters.
pub(super) fn address(query: &JobsQuery) -> String {
    let phase = query.phase.map(|phase| phase.as_str().to_owned());
    let status = query.status.map(|status| status.as_str().to_owned());
    let (user, label) = (query.user.clone(), query.label.clone());
    let query =
        [("status", status), ("phase", phase), ("user", user), ("label", label), ("cursor", query.cursor.clone())];
    format!("/jobs{}", query_string(&query))
}

/// Whether anything is left out.
pub(super) fn is_filtered(query: &JobsQuery) -> bool {
    query.status.is_some() || query.phase.is_some() || query.user.is_some() || query.label.is_some()
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
        assert_eq!(address(&query), "/jobs?status=failed&user=a%26b&label=team%3Dnlp&cursor=x%3D1");
        params.insert("phase", "nonsense".to_owned());
        assert_eq!(query_of(&params).phase, None);
        assert!(!is_filtered(&query_of(&ParamsMap::new())));
    }
}
