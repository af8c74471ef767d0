//! Converts between the address of the job list and its filters.

use leptos_router::params::ParamsMap;

use super::columns::ListColumns;
use crate::protocol::jobs::JobsQuery;
use crate::ui::page_query::{from_params, jobs_url};

/// Number of jobs per page.
const PAGE_SIZE: u32 = 50;

/// The filters in the address of the page. Days of a search are in the reader's time zone.
pub(super) fn query_from_params(params: &ParamsMap, zone: impl FnOnce() -> String) -> JobsQuery {
    let query: JobsQuery = from_params(params);
    let zone = query.q.as_ref().map(|_| zone());
    JobsQuery { zone, limit: Some(PAGE_SIZE), ..query }
}

/// The query with the columns that the list shows, whose values the server sends.
pub(super) fn with_columns(query: &JobsQuery) -> JobsQuery {
    JobsQuery { columns: Some(ListColumns::of(query).columns.to_string()), ..query.clone() }
}

/// Whether this is the list with this address, on whatever page.
pub(super) fn is_view(query: &JobsQuery, address: &str) -> bool {
    jobs_url(&JobsQuery { cursor: None, ..query.clone() }) == address
}

/// Whether any filter is set.
pub(super) fn is_filtered(query: &JobsQuery) -> bool {
    jobs_url(&JobsQuery { sort: None, columns: None, widths: None, cursor: None, ..query.clone() }) != "/jobs"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::JobStatus;

    fn zone() -> String {
        "Asia/Tokyo".to_owned()
    }

    #[test]
    fn addresses_and_queries_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in [("status", "failed"), ("cursor", "x=1"), ("user", "a&b"), ("label", " team=nlp ")] {
            params.insert(name, value.to_owned());
        }
        let query = query_from_params(&params, zone);
        assert_eq!((query.status, is_filtered(&query)), (Some(JobStatus::Failed), true));
        assert_eq!(jobs_url(&query), "/jobs?status=failed&user=a%26b&label=team%3Dnlp&cursor=x%3D1");
        let all = JobsQuery { limit: Some(PAGE_SIZE), ..JobsQuery::example() };
        let address = jobs_url(&all);
        let pairs: Vec<(String, String)> =
            serde_urlencoded::from_str(address.trim_start_matches("/jobs?")).expect("pairs");
        let params_of_all = pairs.into_iter().fold(ParamsMap::new(), |mut params, (name, value)| {
            params.insert(name, value);
            params
        });
        assert_eq!(query_from_params(&params_of_all, zone), all);
        params.insert("phase", "nonsense".to_owned());
        assert_eq!(query_from_params(&params, zone).phase, None);
        assert!(!is_filtered(&query_from_params(&ParamsMap::new(), zone)));
    }
}
