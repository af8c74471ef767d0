//! `simpletuner jobs open`: pages of the dashboard in the browser.

use app::domain::ids::JobId;
use app::domain::job_comparison::{MAX_COMPARED_JOBS, MIN_COMPARED_JOBS};
use app::protocol::jobs::JobsQuery;
use app::protocol::jobs::compare::CompareJobsQuery;
use app::ui::page_query::{jobs_url, query_string};
use clap::Args;
use serde_json::json;

use super::JobFilters;
use crate::cli::client::Client;
use crate::cli::output::Output;
use crate::exit::ExitError;

/// `simpletuner jobs open`
#[derive(Debug, Clone, Args)]
#[command(mut_arg("q", |query| query.value_name("JOB|QUERY").help(
    "Job ID: its page; or a query: the list of the jobs that match it, as in `jobs list` [default: all jobs]"
).long_help(None)))]
pub struct OpenArgs {
    /// Open the comparison of these jobs.
    #[arg(long, value_name = "JOB", num_args = MIN_COMPARED_JOBS..=MAX_COMPARED_JOBS, conflicts_with_all = ["q", "status", "active", "ended"])]
    compare: Vec<String>,
    /// Only print the address; so does a command without a terminal or a screen.
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    filters: JobFilters,
}

pub fn run(args: OpenArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let OpenArgs { compare, print, filters } = args;
    let url = client.page_url(&page_path(&compare, &filters.into_query()))?;
    output.print_document(&json!({"url": url}), [url.to_string()], |_| format!("{url}\n"))?;
    match output.browser.as_ref().filter(|_| !print).map(|browser| browser.open(&url)) {
        Some(Err(error)) => output.print_warning(format!("Cannot open a browser ({error}).")),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Returns the path of the page: a comparison, a job, or the list.
fn page_path(compare: &[String], query: &JobsQuery) -> String {
    if !compare.is_empty() {
        return format!("/jobs/compare{}", query_string(&CompareJobsQuery { ids: compare.join(",") }));
    }
    let is_job = |text: &&String| {
        JobId::is_generated(text) && *query == JobsQuery { q: query.q.clone(), ..JobsQuery::default() }
    };
    match query.q.as_ref().filter(is_job) {
        Some(job) => format!("/jobs/{job}"),
        None => jobs_url(query),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_a_job_or_a_list() {
        let job = "j_01hm5z4f40000000000000000a";
        let path = |q: &str, user: Option<&str>| {
            let q = Some(q.to_owned()).filter(|q| !q.is_empty());
            page_path(&[], &JobsQuery { q, user: user.map(str::to_owned), ..JobsQuery::default() })
        };
        assert_eq!(path("", None), "/jobs");
        assert_eq!(path(job, None), format!("/jobs/{job}"));
        assert_eq!(path(job, Some("ada")), format!("/jobs?user=ada&q={job}"));
        assert_eq!(path("../admin?x=1#y", None), "/jobs?q=..%2Fadmin%3Fx%3D1%23y");
        assert_eq!(path("//evil.example", None), "/jobs?q=%2F%2Fevil.example");
        let ids = ["j_1", "j_&"].map(str::to_owned);
        assert_eq!(page_path(&ids, &JobsQuery::default()), "/jobs/compare?ids=j_1%2Cj_%26");
    }
}
