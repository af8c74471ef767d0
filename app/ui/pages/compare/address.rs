//! The address of a comparison: `/jobs/compare?id=j_1&id=j_2`. The form of the list of jobs has the same fields.

use std::ops::RangeInclusive;

use leptos_router::params::ParamsMap;

use crate::domain::job_comparison::{MAX_COMPARED_JOBS, MIN_COMPARED_JOBS};
use crate::protocol::jobs::compare::CompareJobsQuery;
use crate::ui::page_query::query_string;

pub(super) const COMPARE_URL: &str = "/jobs/compare";
/// The path of the blind vote.
pub(super) const VOTE_URL: &str = "/jobs/compare/vote";

/// The path of the page, and how many jobs it compares.
pub(crate) const COMPARED_JOBS: (&str, RangeInclusive<usize>) = (COMPARE_URL, MIN_COMPARED_JOBS..=MAX_COMPARED_JOBS);

/// The parameter of the metric at the end of the parallel coordinates.
pub(super) const METRIC_FIELD: &str = "parallel";

/// Fields of the form that are not part of a comparison.
const OTHER_FIELDS: [&str; 2] = ["back", "action"];

/// The IDs in the address, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ComparedIds(pub Vec<String>);

impl ComparedIds {
    /// `?ids=j_1,j_2` is short to type, and as in the API.
    pub fn from_params(params: &ParamsMap) -> Self {
        let all = ["id", "ids"].into_iter().filter_map(|name| params.get_all(name)).flatten();
        let mut ids: Vec<String> = Vec::new();
        for id in all.flat_map(|text| text.split(',').map(|id| id.trim().to_owned()).collect::<Vec<_>>()) {
            if !id.is_empty() && !ids.contains(&id) {
                ids.push(id);
            }
        }
        Self(ids)
    }

    /// Returns none if there are too few or too many IDs.
    pub fn query(&self) -> Option<CompareJobsQuery> {
        COMPARED_JOBS.1.contains(&self.0.len()).then(|| CompareJobsQuery { ids: self.0.join(",") })
    }

    /// The address of the blind vote on the samples of these jobs, or of the comparison.
    pub fn url(&self, path: &str) -> String {
        let ids: Vec<_> = self.0.iter().map(|id| ("id".to_owned(), id.clone())).collect();
        format!("{path}{}", query_string(&ids))
    }

    /// Returns the address without some of the jobs. How charts are drawn stays as it is.
    pub fn url_without(&self, removed: &[String], params: &ParamsMap) -> String {
        let options = fields_without(params, &["id", "ids"]).into_iter();
        let ids = self.0.iter().filter(|id| !removed.contains(id)).map(|id| ("id".to_owned(), id.clone()));
        format!("{COMPARE_URL}{}", query_string(&options.chain(ids).collect::<Vec<_>>()))
    }
}

/// Returns the address with another metric at the end of the parallel coordinates.
pub(super) fn url_with_metric(metric: String, params: &ParamsMap) -> String {
    let mut fields = fields_without(params, &[METRIC_FIELD]);
    fields.push((METRIC_FIELD.to_owned(), metric));
    format!("{COMPARE_URL}{}", query_string(&fields))
}

/// Returns the parameters of the address that belong to a comparison, without these.
pub(super) fn fields_without(params: &ParamsMap, removed: &[&str]) -> Vec<(String, String)> {
    let is_kept = |name: &str| !removed.contains(&name) && !OTHER_FIELDS.contains(&name);
    let fields = params.into_iter().filter(|(name, _)| is_kept(name));
    fields.map(|(name, value)| (name.to_string(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&'static str, &str)]) -> ParamsMap {
        pairs.iter().fold(ParamsMap::new(), |mut params, (name, value)| {
            params.insert(*name, (*value).to_owned());
            params
        })
    }

    #[test]
    fn ids_are_read_once_in_the_order_of_the_address() {
        let ids = |pairs: &[(&'static str, &str)]| ComparedIds::from_params(&params(pairs)).0;
        assert_eq!(ids(&[("id", "j_2"), ("back", "/jobs"), ("id", "j_1"), ("id", "j_2")]), ["j_2", "j_1"]);
        assert_eq!(ids(&[("ids", "j_1, j_2,"), ("id", "j_3")]), ["j_3", "j_1", "j_2"]);
        assert_eq!(ids(&[]), [""; 0]);
    }

    #[test]
    fn two_to_twenty_jobs_are_compared() {
        let number = |number: usize| ComparedIds((0..number).map(|id| format!("j_{id}")).collect()).query().is_some();
        assert_eq!([0, 1, 2, 20, 21].map(number), [false, false, true, true, false]);
        let query = ComparedIds(vec!["j_1".to_owned(), "j_2".to_owned()]).query();
        assert_eq!(query.map(|query| query.ids).as_deref(), Some("j_1,j_2"));
    }

    #[test]
    fn a_job_is_removed_and_the_options_of_charts_stay() {
        let params = params(&[("back", "/jobs?x=1"), ("id", "j_1"), ("x", "time"), ("id", "a&b"), ("id", "j_3")]);
        let ids = ComparedIds::from_params(&params);
        let without = |removed: &str| ids.url_without(&[removed.to_owned()], &params);
        assert_eq!(without("j_1"), "/jobs/compare?x=time&id=a%26b&id=j_3");
        assert_eq!(without("other"), "/jobs/compare?x=time&id=j_1&id=a%26b&id=j_3");
    }

    #[test]
    fn a_metric_is_chosen_and_the_other_parameters_stay() {
        let params = params(&[("back", "/jobs"), ("id", "j_1"), ("parallel", "loss"), ("id", "j_2"), ("x", "time")]);
        let url = url_with_metric("val/a&b".to_owned(), &params);
        assert_eq!(url, "/jobs/compare?id=j_1&id=j_2&x=time&parallel=val%2Fa%26b");
        let removed = ComparedIds::from_params(&params).url_without(&["j_1".to_owned()], &params);
        assert_eq!(removed, "/jobs/compare?parallel=loss&x=time&id=j_2");
    }
}
