//! Comparing jobs.

use std::collections::BTreeMap;

use app::domain::access::Permission;
use app::domain::allowed_values::AllowedValues;
use app::domain::config_files::CONFIG_FILE;
use app::domain::ids::JobId;
use app::domain::job::Job;
use app::domain::job_comparison::{ComparedKey, MAX_COMPARED_JOBS, MIN_COMPARED_JOBS, compare_keys};
use app::protocol::gpus::history::{JobMetrics, MetricSeries};
use app::protocol::jobs::compare::{CompareJobsQuery, ComparedConfigKey, ComparedJob, JobComparison};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::JobService;
use super::config_values::{flat_values, number_of};
use super::index::VOTE_METRIC;
use super::metrics::SeriesLimits;
use super::overrides::applied_config;
use super::views::visible_jobs_by_id;
use crate::service::access::Principal;
use crate::service::configs::json_object;
use crate::service::error::{InvalidInput, ServiceError};
use crate::store::configs::StoredConfig;
use crate::tokens::hex;

/// The number of digits of a file's SHA-256 that are shown.
const DIGEST_DIGITS: usize = 12;

/// The number of jobs whose metrics are read at the same time: others need connections too.
const READS_AT_ONCE: usize = 3;

type ConfigValues = BTreeMap<String, Value>;

impl JobService {
    /// Compares those of these jobs that the user may see.
    pub async fn compare_jobs(
        &self,
        principal: &Principal,
        query: &CompareJobsQuery,
    ) -> Result<JobComparison, ServiceError> {
        let mut missing = requested_ids(&query.ids)?;
        let ids: Vec<JobId> = missing.iter().filter_map(|id| JobId::parse(id).ok()).collect();
        let mut tx = self.context.read().await?;
        let jobs = visible_jobs_by_id(&mut *tx, principal, &ids).await?;
        missing.retain(|id| !jobs.iter().any(|job| job.id.as_str() == id));
        let views = self.view_jobs(tx, &jobs).await?;
        let tallies =
            self.context.read().await?.vote_tallies(&jobs.iter().map(|job| job.id.clone()).collect::<Vec<_>>()).await?;
        let limits = SeriesLimits::each_of(jobs.len());
        let reads: Vec<_> = jobs.iter().map(|stored| self.newest_metrics(stored, limits)).collect();
        let metrics: Vec<JobMetrics> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
        let mut compared = Vec::with_capacity(jobs.len());
        for (metrics, job) in metrics.into_iter().zip(views) {
            let vote = tallies.get(&job.job_id).and_then(|tally| tally.share());
            let votes = vote.map(|share| (VOTE_METRIC.to_owned(), Some(share)));
            let final_metrics = votes.into_iter().chain(final_metrics(&metrics)).collect();
            compared.push(ComparedJob { job, final_metrics, metrics });
        }
        let shows_config = principal.permissions.contains(Permission::ConfigView);
        let config = if shows_config { Some(self.compare_configs(&jobs).await?) } else { None };
        Ok(JobComparison { jobs: compared, missing, config })
    }

    async fn compare_configs(&self, jobs: &[Job]) -> Result<Vec<ComparedConfigKey>, ServiceError> {
        let mut tx = self.context.read().await?;
        let mut configs = Vec::with_capacity(jobs.len());
        for job in jobs {
            let config = tx.config_revision(&job.spec.config_name, job.spec.config_revision).await?;
            let applied = config.map(|config| applied_config(config, &job.spec.overrides));
            configs.push(applied.map(|config| config_values(&config)).unwrap_or_default());
        }
        let keys = compare_keys(&configs, is_same).into_iter();
        Ok(keys.map(|ComparedKey { key, differs, values }| ComparedConfigKey { key, differs, values }).collect())
    }
}

/// Parses the IDs of a request, each once.
pub(super) fn requested_ids(text: &str) -> Result<Vec<String>, InvalidInput> {
    let mut ids: Vec<String> = Vec::new();
    for id in text.split(',').map(str::trim).filter(|id| !id.is_empty()) {
        if !ids.iter().any(|other| other == id) {
            ids.push(id.to_owned());
        }
    }
    let (min, max) = (MIN_COMPARED_JOBS as u64, MAX_COMPARED_JOBS as u64);
    if (min..=max).contains(&(ids.len() as u64)) {
        Ok(ids)
    } else {
        Err(InvalidInput::OutOfRange { field: "ids", allowed: AllowedValues::JobIds { min, max } })
    }
}

/// The last value of each metric; none of a loss that is not a number.
fn final_metrics(metrics: &JobMetrics) -> BTreeMap<String, Option<f64>> {
    let nan_loss = metrics.loss_nan_since.map(|_| ("loss".to_owned(), None));
    let last = |series: &MetricSeries| (series.name.clone(), series.values.last().copied());
    metrics.metrics.iter().map(last).chain(nan_loss).collect()
}

/// The values of `config.json`, with dots between the keys of nested objects, and the digests of other files.
fn config_values(config: &StoredConfig) -> ConfigValues {
    let mut values = set_values(&json_object(config, CONFIG_FILE));
    let other_files = config.files.iter().filter(|(path, _)| *path != CONFIG_FILE);
    values.extend(other_files.map(|(path, text)| {
        let digest = hex(&Sha256::digest(text));
        (path.clone(), Value::String(format!("sha256:{}", &digest[..DIGEST_DIGITS])))
    }));
    values
}

/// Null is the same as a key that is not set.
fn set_values(object: &Map<String, Value>) -> ConfigValues {
    flat_values(object)
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key, value.clone()))
        .collect()
}

/// Whether two values mean the same.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || number_of(a).zip(number_of(b)).is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_count_once_and_are_2_to_20() {
        assert_eq!(requested_ids(" j_1, j_2,,j_1 ").ok(), Some(vec!["j_1".to_owned(), "j_2".to_owned()]));
        let many = |number: usize| (0..number).map(|id| format!("j_{id}")).collect::<Vec<_>>().join(",");
        for (text, is_valid) in
            [(String::new(), false), ("j_1,j_1".to_owned(), false), (many(20), true), (many(21), false)]
        {
            assert_eq!(requested_ids(&text).is_ok(), is_valid, "{text}");
        }
    }

    #[test]
    fn nested_values_have_keys_with_dots() {
        let config = json!({
            "--rank": 16, "model": {"type": "lora", "deep": {"x": [1, {"y": 2}]}}, "none": null, "empty": {},
        });
        let values = set_values(config.as_object().expect("an object"));
        let expected = [
            ("empty", json!({})),
            ("model.deep.x", json!([1, {"y": 2}])),
            ("model.type", json!("lora")),
            ("rank", json!(16)),
        ];
        assert_eq!(values, expected.map(|(key, value)| (key.to_owned(), value)).into());
    }

    #[test]
    fn numbers_and_their_texts_are_the_same() {
        for (a, b, same) in [
            (json!(1e-4), json!("0.0001"), true),
            (json!(1), json!(1.0), true),
            (json!("1e-4"), json!(" 0.0001"), true),
            (json!("nan"), json!("NaN"), false),
            (json!(true), json!("true"), false),
            (json!([1]), json!([1]), true),
            (json!({"a": 1}), json!({"a": 2}), false),
        ] {
            assert_eq!(is_same(&a, &b), same, "{a} {b}");
        }
    }

    #[test]
    fn final_loss_is_unknown_if_it_is_not_a_number() {
        let series =
            |name: &str| MetricSeries { name: name.to_owned(), values: vec![2.0, 1.0], ..MetricSeries::default() };
        let metrics = JobMetrics { metrics: vec![series("loss"), series("a")], ..JobMetrics::default() };
        let finals = |metrics: &JobMetrics| final_metrics(metrics).into_iter().collect::<Vec<_>>();
        let named = |loss| [("a".to_owned(), Some(1.0)), ("loss".to_owned(), loss)];
        assert_eq!(finals(&metrics), named(Some(1.0)));
        assert_eq!(finals(&JobMetrics { loss_nan_since: Some(3), ..metrics }), named(None));
    }
}
