//! Converts between the address of the worker list and its filters.

use leptos_router::params::ParamsMap;

use crate::protocol::workers::WorkersQuery;
use crate::ui::page_query::FLEET;
use crate::ui::page_query::{from_params, query_string};

/// Number of workers per page.
const PAGE_SIZE: u32 = 50;

/// Where the list is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListPlace {
    /// Fleet: for all users, and read-only.
    Fleet,
    /// Administration → Workers: with the actions that the user may perform.
    Administration,
}

impl ListPlace {
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Fleet => FLEET,
            Self::Administration => "/admin/workers",
        }
    }

    /// The address of the list with these filters.
    pub(super) fn url(self, query: &WorkersQuery) -> String {
        list_url(self.path(), query)
    }
}

/// The filters in the address of the page.
pub(super) fn query_from_params(params: &ParamsMap) -> WorkersQuery {
    WorkersQuery { facets: true, limit: Some(PAGE_SIZE), ..from_params(params) }
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
        for place in [ListPlace::Fleet, ListPlace::Administration] {
            let filters = "?status=idle&q=a%26b&sort=-seen&cursor=5%3Agpu-1";
            assert_eq!(place.url(&query), format!("{}{filters}", place.path()));
        }
        assert!(!is_filtered(&query_from_params(&ParamsMap::new())));
    }
}
