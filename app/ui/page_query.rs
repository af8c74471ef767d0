//! Query strings and URLs of pages: serialized from the API's query types, so that fields are declared once.

use leptos_router::params::ParamsMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::jobs::JobsQuery;

/// The address of the workers and the queue.
pub(crate) const FLEET: &str = "/fleet";
/// The address of the GPUs.
pub(crate) const FLEET_GPUS: &str = "/fleet/gpus";

/// Parameters with a time, which users may type in UTC without seconds and zone.
const TIMES: [&str; 3] = ["since", "until", "ended_since"];

/// `?a=1&b=2`, without empty parameters; empty if none is left.
pub fn query_string(query: &impl Serialize) -> String {
    // Structs of texts, numbers and words can always be serialized.
    let pairs = serde_urlencoded::to_string(query).unwrap_or_default();
    // An equals sign of a value is encoded.
    let pairs: Vec<_> = pairs.split('&').filter(|pair| !pair.is_empty() && !pair.ends_with('=')).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

/// The parameters of a query, for hidden fields of a form.
pub(crate) fn query_pairs(query: &impl Serialize) -> Vec<(String, String)> {
    serde_urlencoded::from_str(query_string(query).trim_start_matches('?')).unwrap_or_default()
}

/// The URL of the list of jobs with these filters.
pub fn jobs_url(query: &JobsQuery) -> String {
    format!("/jobs{}", query_string(&JobsQuery { zone: None, limit: None, ..query.clone() }))
}

/// Reads the query from a page's URL. Empty, unknown and invalid parameters are ignored.
pub(crate) fn from_params<T: DeserializeOwned + Default>(params: &ParamsMap) -> T {
    let pairs = params.into_iter().map(|(name, value)| (name.as_ref(), normalize(name, value.trim())));
    let valid = pairs.filter(|pair| !pair.1.is_empty() && parse::<T>(std::slice::from_ref(pair)).is_some());
    parse(&valid.collect::<Vec<_>>()).unwrap_or_default()
}

fn parse<T: DeserializeOwned>(pairs: &[(&str, String)]) -> Option<T> {
    serde_urlencoded::from_str(&serde_urlencoded::to_string(pairs).ok()?).ok()
}

fn normalize(name: &str, value: &str) -> String {
    if TIMES.contains(&name) && value.len() == "2024-01-15T10:30".len() {
        format!("{value}:00Z")
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::access::Role;
    use crate::protocol::access::UsersQuery;
    use crate::protocol::audit::{AuditFilters, AuditQuery};
    use crate::protocol::gpus::GpusQuery;
    use crate::protocol::gpus::history::{HistoryQuery, HistoryRange};
    use crate::protocol::jobs::{JobLiveQuery, SeriesQuery};
    use crate::protocol::logs::{LogLinesQuery, LogQuery, LogSearchQuery};
    use crate::protocol::search::SearchQuery;
    use crate::protocol::status::{GpuState, JobPhase, WorkerStatus};
    use crate::protocol::usage::{UsageBy, UsageQuery};
    use crate::protocol::workers::WorkersQuery;

    /// Returns the query as the server reads it from the URL of a page or request.
    fn as_sent<T: Serialize + DeserializeOwned>(query: &T) -> T {
        serde_urlencoded::from_str(query_string(query).trim_start_matches('?')).expect("a query")
    }

    /// Returns the query as a page reads it from its own URL.
    fn reloaded<T: Serialize + DeserializeOwned + Default>(query: &T) -> T {
        let mut params = ParamsMap::new();
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(query_string(query).trim_start_matches('?')).expect("pairs");
        for (name, value) in pairs {
            params.insert(name, value);
        }
        from_params(&params)
    }

    proptest! {
        /// The text has no percent signs, because `ParamsMap` decodes values that are already decoded.
        #[test]
        fn each_field_survives_the_way_to_the_server_and_back(text in "[^\\s%]([^%]*[^\\s%])?", number in 1_u32.., flag: bool) {
            let value = || Some(text.clone());
            let time = || Some("2024-01-15T10:30:00.5Z".to_owned());
            let jobs = JobsQuery {
                user: value(), label: value(), q: value(), cursor: value(), limit: Some(number), ..JobsQuery::example()
            };
            prop_assert_eq!((&as_sent(&jobs), &reloaded(&jobs)), (&jobs, &jobs));
            let workers = WorkersQuery {
                status: Some(WorkerStatus::Idle), q: value(), label: value(), facets: flag, sort: value(),
                limit: Some(number), cursor: value(),
            };
            prop_assert_eq!((&as_sent(&workers), &reloaded(&workers)), (&workers, &workers));
            let gpus = GpusQuery {
                state: Some(GpuState::Quarantined), q: value(), group: value(), lately: Some(HistoryRange::Day),
                limit: Some(number), cursor: value(),
            };
            prop_assert_eq!((&as_sent(&gpus), &reloaded(&gpus)), (&gpus, &gpus));
            let users = UsersQuery {
                q: value(), role: Some(Role::Lead), disabled: Some(flag), limit: Some(number), cursor: value(),
            };
            prop_assert_eq!((&as_sent(&users), &reloaded(&users)), (&users, &users));
            let filters = AuditFilters {
                actor: value(), action: value(), target: value(), request_id: value(), since: time(), until: time(),
            };
            let audit = AuditQuery { filters, limit: Some(number), cursor: value() };
            prop_assert_eq!((&as_sent(&audit), &reloaded(&audit)), (&audit, &audit));
            let usage = UsageQuery { since: time(), until: time(), by: UsageBy::Worker };
            prop_assert_eq!((&as_sent(&usage), &reloaded(&usage)), (&usage, &usage));
            let lines = LogLinesQuery {
                attempt: Some(number), from: Some(number.into()), limit: Some(number), q: value(), regex: flag,
                case: flag, rank: Some(number), before: Some(number.into()), times: flag,
            };
            prop_assert_eq!(&as_sent(&lines), &lines);
            let search = LogSearchQuery {
                attempt: Some(number), q: text.clone(), regex: flag, case: flag, from: Some(number.into()),
                until: Some(number.into()), backward: flag, limit: Some(number),
            };
            prop_assert_eq!(&as_sent(&search), &search);
            let chunk = LogQuery {
                attempt: Some(number), offset: Some(number.into()), limit: Some(number), raw: value(), follow: value(),
            };
            prop_assert_eq!(&as_sent(&chunk), &chunk);
            let live = JobLiveQuery { attempt: Some(number), offset: Some(number.into()) };
            prop_assert_eq!(&as_sent(&live), &live);
            let series =
                SeriesQuery { attempt: Some(number), from: Some(number.into()), to: Some(u64::from(number) + 1) };
            prop_assert_eq!(&as_sent(&series), &series);
            let history = HistoryQuery { range: Some(HistoryRange::Day) };
            prop_assert_eq!(&as_sent(&history), &history);
            let words = SearchQuery { q: text.clone(), limit: Some(number) };
            prop_assert_eq!(&as_sent(&words), &words);
        }
    }

    #[test]
    fn invalid_parameters_of_an_address_are_ignored() {
        let mut params = ParamsMap::new();
        for (name, value) in [
            ("status", "nonsense"),
            ("phase", "ended"),
            ("q", " flux "),
            ("user", " "),
            ("since", "2024-01-15T10:30"),
            ("limit", "-1"),
            ("other", "1"),
        ] {
            params.insert(name, value.to_owned());
        }
        let since = Some("2024-01-15T10:30:00Z".to_owned());
        let expected =
            JobsQuery { phase: Some(JobPhase::Ended), q: Some("flux".to_owned()), since, ..JobsQuery::default() };
        assert_eq!(from_params::<JobsQuery>(&params), expected);
        assert_eq!(query_string(&JobsQuery::default()), "");
        let empty = JobsQuery { q: Some(String::new()), user: Some("a=".to_owned()), ..JobsQuery::default() };
        assert_eq!(query_string(&empty), "?user=a%3D");
        assert_eq!(query_string(&expected), "?phase=ended&q=flux&since=2024-01-15T10%3A30%3A00Z");
    }
}
