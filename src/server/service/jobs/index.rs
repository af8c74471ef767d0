//! The index of all jobs: loaded soon after the start, and brought up to date with the database before each query.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use app::domain::best_metrics::BestMetrics;
use app::domain::config_files::CONFIG_FILE;
use app::domain::ids::JobId;
use app::domain::job::JobOverrides;
use app::domain::job_search::columns::{JobListColumn, JobListColumns};
use app::domain::job_search::index::{ConfigValue, ConfigValues, IndexedJob, JobIndex};
use app::domain::job_search::order::JobOrder;
use app::domain::job_search::query::{JobSearchFilter, JobSearchQuery};
use app::domain::sample_votes::VoteTally;
use app::protocol::agents::ProgressPoint;
use app::threads::run_blocking;
use serde_json::{Map, Value};

use super::JobService;
use super::config_values::{config_key, flat_values, number_of};
use crate::service::configs::json_object;
use crate::service::error::ServiceError;
use crate::store::jobs::IndexRow;
use crate::store::{Store, StoreError, Tx};

/// The number of rows that are read at a time.
const BATCH: u32 = 5_000;
/// The metric with the share of votes for the samples of a job.
pub(super) const VOTE_METRIC: &str = "vote";
/// How old metrics of running jobs may be in the index.
const MAX_METRICS_AGE: Duration = Duration::from_secs(1);

/// The index, and how current it is.
#[derive(Default)]
pub struct JobIndexCache {
    index: Arc<RwLock<JobIndex>>,
    /// Held while it is brought up to date.
    state: tokio::sync::Mutex<IndexState>,
}

#[derive(Default)]
struct IndexState {
    is_loaded: bool,
    metrics_read_at: Option<Instant>,
}

/// What of the index a query needs, beside the jobs themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexNeeds {
    /// Current metrics of running jobs.
    pub metrics: bool,
    /// The values of configurations.
    pub config: bool,
}

impl IndexNeeds {
    pub fn of(query: &JobSearchQuery, order: &JobOrder, columns: &JobListColumns) -> Self {
        let any = |needs: fn(&JobSearchFilter) -> bool| query.0.iter().any(|term| needs(&term.filter));
        let sort = JobListColumn::Sortable(order.key.clone());
        let shows_config = columns.0.iter().chain([&sort]).any(JobListColumn::reads_config);
        Self {
            // Those of columns are read for the jobs of the page only.
            metrics: any(JobSearchFilter::reads_metrics) || sort.reads_metrics(),
            config: any(JobSearchFilter::reads_config) || shows_config,
        }
    }
}

impl JobService {
    /// Loads the index, or brings it up to date.
    pub async fn update_index(&self) -> Result<(), ServiceError> {
        self.index.update(&*self.context.store, IndexNeeds::default()).await
    }

    /// Reads jobs again, because their metrics may have changed.
    pub(super) async fn reread_in_index(&self, ids: BTreeSet<JobId>) -> Result<(), ServiceError> {
        self.index.reread(&*self.context.store, ids).await
    }

    /// Brings the index up to date, and reads it.
    pub(in crate::service) async fn read_index<R: Send + 'static>(
        &self,
        needs: IndexNeeds,
        read: impl FnOnce(&JobIndex) -> R + Send + 'static,
    ) -> Result<R, ServiceError> {
        self.index.update(&*self.context.store, needs).await?;
        let index = Arc::clone(&self.index.index);
        let result = run_blocking(move || read(&index.read().expect("no panic while it is held"))).await;
        Ok(result.map_err(|error| StoreError::Unavailable(error.to_string()))?)
    }
}

impl JobIndexCache {
    /// Reads jobs again, because their metrics may have changed.
    async fn reread(&self, store: &dyn Store, ids: BTreeSet<JobId>) -> Result<(), ServiceError> {
        let _state = self.state.lock().await;
        let tx = &mut *store.read().await?;
        self.read_jobs(tx, ids).await
    }

    async fn update(&self, store: &dyn Store, needs: IndexNeeds) -> Result<(), ServiceError> {
        let mut state = self.state.lock().await;
        // A new snapshot, so that it has the changes that are taken below.
        let tx = &mut *store.read().await?;
        // If reading fails, these changes are lost.
        let was_loaded = std::mem::take(&mut state.is_loaded);
        match store.take_changed_jobs().filter(|_| was_loaded) {
            Some(ids) => self.read_jobs(tx, ids).await?,
            None => self.load(tx).await?,
        }
        state.is_loaded = true;
        if needs.metrics && state.metrics_read_at.is_none_or(|at| at.elapsed() > MAX_METRICS_AGE) {
            let changing = self.with(|index| index.with_progress().cloned().collect());
            self.read_jobs(tx, changing).await?;
            state.metrics_read_at = Some(Instant::now());
        }
        if needs.config {
            self.read_configs(tx).await?;
        }
        Ok(())
    }

    fn with<R>(&self, read: impl FnOnce(&JobIndex) -> R) -> R {
        read(&self.index.read().expect("no panic while it is held"))
    }

    fn change(&self, change: impl FnOnce(&mut JobIndex)) {
        change(&mut self.index.write().expect("no panic while it is held"));
    }

    async fn load(&self, tx: &mut dyn Tx) -> Result<(), ServiceError> {
        let (mut index, mut after) = (JobIndex::default(), Some(String::new()));
        while let Some(id) = after {
            let page = tx.index_rows_after(&id, BATCH).await?;
            index.update([], page.rows.into_iter().map(indexed_job));
            after = page.last;
        }
        self.change(|current| *current = index);
        Ok(())
    }

    async fn read_jobs(&self, tx: &mut dyn Tx, ids: BTreeSet<JobId>) -> Result<(), ServiceError> {
        let mut ids = ids.into_iter().peekable();
        while ids.peek().is_some() {
            let batch: BTreeSet<JobId> = ids.by_ref().take(BATCH as usize).collect();
            let jobs: Vec<IndexedJob> = tx.index_rows(&batch).await?.into_iter().map(indexed_job).collect();
            self.change(|index| index.update(batch, jobs));
        }
        Ok(())
    }

    async fn read_configs(&self, tx: &mut dyn Tx) -> Result<(), ServiceError> {
        for (name, revision) in self.with(JobIndex::revisions_without_values) {
            let config = tx.config_revision(&name, revision).await?;
            let values = config.map(|config| config_values(&json_object(&config, CONFIG_FILE)));
            self.change(|index| index.set_values(&name, revision, values.unwrap_or_default()));
        }
        Ok(())
    }
}

fn indexed_job(row: IndexRow) -> IndexedJob {
    let IndexRow { job, overrides, progress, vote_tally, best_metrics } = row;
    // A metric of the trainer takes precedence over a computed one of the same name.
    let mut all_metrics = best_values(&best_metrics);
    all_metrics.extend(vote_tally.as_deref().and_then(vote_share).map(|share| (VOTE_METRIC.to_owned(), share)));
    all_metrics.extend(progress.as_deref().map(metrics).unwrap_or_default());
    IndexedJob { overrides: overridden_values(overrides), metrics: all_metrics, ..job }
}

/// The share of votes for the samples of a job.
fn vote_share(tally: &str) -> Option<f64> {
    let [won, lost, tied] = serde_json::from_str(tally).ok()?;
    VoteTally { won, lost, tied }.share()
}

/// The best values of the metrics of all attempts and their steps, as metrics: `best.loss`, `best_step.loss`.
fn best_values(attempts: &[String]) -> BTreeMap<String, f64> {
    let mut best = BestMetrics::default();
    for attempt in attempts {
        best.add_all(&BestMetrics(serde_json::from_str(attempt).unwrap_or_default()));
    }
    #[expect(clippy::cast_precision_loss, reason = "steps are exact until 2^53")]
    let named = |(metric, (value, step)): (&String, &(f64, u64))| {
        [(format!("best.{metric}"), *value), (format!("best_step.{metric}"), *step as f64)]
    };
    best.0.iter().flat_map(named).collect()
}

fn overridden_values(overrides: JobOverrides) -> BTreeMap<String, Option<ConfigValue>> {
    let value = |text: String| serde_json::from_str(&text).ok().as_ref().and_then(scalar);
    overrides
        .into_iter()
        .map(|(key, overridden)| (config_key(&key).to_owned(), overridden.to.and_then(value)))
        .collect()
}

/// The values of a JSON object that are not objects or lists, by key.
fn config_values(object: &Map<String, Value>) -> ConfigValues {
    flat_values(object).into_iter().filter_map(|(key, value)| Some((key, scalar(value)?))).collect()
}

fn scalar(value: &Value) -> Option<ConfigValue> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(ConfigValue { text, number: number_of(value) })
}

/// The metrics of a progress point, by name.
fn metrics(progress: &str) -> BTreeMap<String, f64> {
    let Ok(point) = serde_json::from_str::<ProgressPoint>(progress) else { return BTreeMap::new() };
    let loss = if point.loss_is_nan { Some(f64::NAN) } else { point.loss };
    #[expect(clippy::cast_precision_loss, reason = "steps are exact until 2^53")]
    let step = point.step as f64;
    let named = [
        ("step", Some(step)),
        ("epoch", point.epoch),
        ("loss", loss),
        ("lr", point.learning_rate),
        ("learning_rate", point.learning_rate),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    point.metrics.into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(values: &ConfigValues) -> Vec<(&str, &str, Option<f64>)> {
        values.iter().map(|(key, value)| (key.as_str(), value.text.as_str(), value.number)).collect()
    }

    #[test]
    fn nested_values_have_keys_with_dots() {
        let config = json!({
            "--learning_rate": "1e-5", "rank": 16, "model": {"type": "lora", "deep": {"x": true}}, "none": null,
            "list": [1, 2], "seed": "nan",
        });
        let values = config_values(config.as_object().expect("an object"));
        let expected = [
            ("learning_rate", "1e-5", Some(1e-5)),
            ("model.deep.x", "true", None),
            ("model.type", "lora", None),
            ("rank", "16", Some(16.0)),
            ("seed", "nan", None),
        ];
        assert_eq!(texts(&values), expected);
    }

    #[test]
    fn best_values_of_all_attempts_become_metrics() {
        let attempts = [r#"{"loss": [0.5, 100], "accuracy": [0.75, 90]}"#, r#"{"loss": [0.25, 400]}"#, "no JSON"];
        let found = best_values(&attempts.map(str::to_owned));
        let names: Vec<(&str, f64)> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let expected =
            [("best.accuracy", 0.75), ("best.loss", 0.25), ("best_step.accuracy", 90.0), ("best_step.loss", 400.0)];
        assert_eq!(names, expected);
    }

    #[test]
    fn progress_becomes_metrics() {
        let found = metrics(
            r#"{"step": 10, "at": "2024-01-15T10:30:00Z", "loss": 0.5, "learning_rate": 0.1, "metrics": {"val": 2}}"#,
        );
        let names: Vec<(&str, f64)> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(names, [("learning_rate", 0.1), ("loss", 0.5), ("lr", 0.1), ("step", 10.0), ("val", 2.0)]);
        let nan = metrics(r#"{"step": 10, "at": "2024-01-15T10:30:00Z", "loss_is_nan": true}"#);
        assert!(nan["loss"].is_nan());
        assert_eq!(metrics("no JSON"), BTreeMap::new());
    }
}
