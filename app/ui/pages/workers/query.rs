//! Converts between the address of the worker list and its filters.

use leptos_router::params::ParamsMap;

use crate::protocol::workers::WorkersQuery;
use crate::ui::page_query::{from_params, query_string};

/// Number of workers per page.
const PAGE_SIZE: u32 = 50;

/// The filters in the address of the page.
pub(super) fn query_from_params(params: &ParamsMap) -> WorkersQuery {
    WorkersQuery { facets: true, limit: Some(PAGE_SIZE), ..from_params(params) }
}

/// The address of the list with these filters.
pub(super) fn workers_url(query: &WorkersQuery) -> String {
    list_url("/admin/workers", query)
}

fn list_url(path: &str, query: &WorkersQuery) -> String {
    format!("{path}{}", query_string(&WorkersQuery { facets: false, limit: None, ..query.clone() }))
}

/// The address of an export of all workers that match the filters.
pub(super) fn export_url(path: &str, query: &WorkersQuery) -> String {
    list_url(path, &WorkersQuery { cursor: None, ..query.clone() })
}

/// Whether any filter is set.
pub(super) fn is_filtered(query: &WorkersQuery) -> bool {
    query.status.is_some() || query.q.is_some() || query.label.is_some()
}

/// The current sort direction of a column, and the query that its heading links to: sorted by this column, or in the
/// reverse direction if it already is.
pub(super) fn sort_state(query: &WorkersQuery, by: &str, largest_first: bool) -> (Option<&'static str>, WorkersQuery) {
    let current_sort = query.sort.as_deref().unwrap_or("name");
    let (state, is_descending) = match current_sort.strip_prefix('-') {
        Some(name) if name == by => (Some("descending"), false),
        None if current_sort == by => (Some("ascending"), true),
        _ => (None, largest_first),
    };
    let order = if is_descending { format!("-{by}") } else { by.to_owned() };
    let sort = (order != "name").then_some(order);
    (state, WorkersQuery { sort, cursor: None, ..query.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::WorkerStatus;

    #[test]
    fn addresses_and_queries_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in [("status", "idle"), ("q", " a&b "), ("sort", "-seen"), ("cursor", "5:gpu-1")] {
            params.insert(name, value.to_owned());
        }
        let query = query_from_params(&params);
        assert_eq!((query.status, is_filtered(&query)), (Some(WorkerStatus::Idle), true));
        assert_eq!(workers_url(&query), "/admin/workers?status=idle&q=a%26b&sort=-seen&cursor=5%3Agpu-1");
        assert!(!is_filtered(&query_from_params(&ParamsMap::new())));
    }

    #[test]
    fn sorting_again_reverses_the_order() {
        let by_name = WorkersQuery { cursor: Some("x".to_owned()), ..WorkersQuery::default() };
        let (state, next_query) = sort_state(&by_name, "name", false);
        assert_eq!((state, next_query.sort.as_deref(), next_query.cursor), (Some("ascending"), Some("-name"), None));
        let descending = WorkersQuery { sort: Some("-name".to_owned()), ..WorkersQuery::default() };
        let (state, next_query) = sort_state(&descending, "name", false);
        assert_eq!((state, next_query.sort), (Some("descending"), None), "sorting by name is the default");
        let (state, first) = sort_state(&by_name, "seen", true);
        assert_eq!((state, first.sort.as_deref()), (None, Some("-seen")));
    }
}
