//! Converts trainers' events to metric points.

use std::collections::BTreeMap;

use app::domain::best_metrics::MAX_METRICS;
use app::domain::time::Timestamp;
use app::protocol::agents::ProgressPoint;
use serde_json::{Value, json};

/// Reads events in order. Values of a step are remembered: an event without the step, or without all values, adds to
/// them.
#[derive(Debug, Clone, Default)]
pub struct ProgressReader {
    last: ProgressPoint,
}

impl ProgressReader {
    /// The progress in an event, if it contains any.
    pub fn read_point(&mut self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let point = match event_type(event)? {
            "training.status" => self.status_point(event, at),
            "lifecycle.stage" => self.stage_point(event, at),
            _ => None,
        }?;
        self.last = if point.step == self.last.step { merge_earlier(point, &self.last) } else { point };
        Some(self.last.clone())
    }

    fn status_point(&self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let data = &event["data"];
        let progress = [&event["progress"], &data["progress"], data].into_iter().find(|value| value.is_object());
        let stage = text_field(data, "status").or_else(|| text_field(event, "status"));
        let Some(progress) = progress else {
            return stage.map(|stage| self.point_without_metrics(at, Some(stage)));
        };
        let base = self.point_without_metrics(at, stage);
        let step =
            ["current", "step", "current_step"].iter().find_map(|key| count_field(progress, key)).unwrap_or(base.step);
        let total_steps =
            ["total", "total_steps"].iter().find_map(|key| count_field(progress, key)).or(base.total_steps);
        Some(with_metrics(ProgressPoint { step, total_steps, ..base }, progress))
    }

    /// A stage counts its own items (files, images), not training steps.
    fn stage_point(&self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let stage = &event["stage"];
        let name = text_field(stage, "label").or_else(|| text_field(stage, "key"))?;
        let progress = &stage["progress"];
        let name = match (count_field(progress, "current"), count_field(progress, "total")) {
            (Some(current), Some(total)) if total > 0 => format!("{name} ({current}/{total})"),
            _ => name,
        };
        let metrics = &progress["metrics"];
        Some(with_metrics(self.point_without_metrics(at, Some(name)), &json!({"metrics": metrics})))
    }

    fn point_without_metrics(&self, at: Timestamp, stage: Option<String>) -> ProgressPoint {
        ProgressPoint {
            step: self.last.step,
            total_steps: self.last.total_steps,
            at,
            stage,
            ..ProgressPoint::default()
        }
    }
}

/// The type of an event, under any of its names.
pub fn event_type(event: &Value) -> Option<&str> {
    ["type", "event", "event_type", "message_type"].iter().find_map(|key| event[*key].as_str())
}

/// The training step of an event. Stages count something else.
pub fn event_step(event: &Value) -> Option<u64> {
    let data = &event["data"];
    let progress = [&event["progress"], &data["progress"]];
    let step_field =
        |from: &&Value| ["step", "current_step", "global_step"].iter().find_map(|key| count_field(from, key));
    let is_status = event_type(event) == Some("training.status");
    let current = || progress.iter().find_map(|from| count_field(from, "current")).filter(|_| is_status);
    [event, data].iter().chain(&progress).find_map(step_field).or_else(current)
}

/// The names that trainers use for the loss.
const LOSS_KEYS: [&str; 3] = ["loss", "train_loss", "step_loss"];

/// A point with the numbers of an event.
fn with_metrics(point: ProgressPoint, progress: &Value) -> ProgressPoint {
    let mut metrics = number_fields(&progress["metrics"]);
    let mut remove_number = |names: &[&str]| {
        let found: Vec<f64> = names.iter().filter_map(|name| metrics.remove(*name)).collect();
        found.first().copied().or_else(|| names.iter().find_map(|name| progress[*name].as_f64()))
    };
    let epoch = remove_number(&["epoch", "current_epoch"]);
    let loss = remove_number(&LOSS_KEYS);
    let has_nan = |name: &&str| [&progress["metrics"], progress].iter().any(|from| is_nan(&from[*name]));
    let loss_is_nan = loss.is_none() && LOSS_KEYS.iter().any(has_nan);
    let learning_rate = remove_number(&["learning_rate", "lr"]);
    let eta_seconds = remove_number(&["eta_seconds"]);
    ProgressPoint { epoch, loss, loss_is_nan, learning_rate, eta_seconds, metrics, ..point }
}

/// A point with earlier values of the same step.
fn merge_earlier(point: ProgressPoint, earlier: &ProgressPoint) -> ProgressPoint {
    let mut metrics = earlier.metrics.clone();
    metrics.extend(point.metrics);
    while metrics.len() > MAX_METRICS {
        metrics.pop_last();
    }
    ProgressPoint {
        epoch: point.epoch.or(earlier.epoch),
        loss: point.loss.or(earlier.loss.filter(|_| !point.loss_is_nan)),
        loss_is_nan: point.loss_is_nan || earlier.loss_is_nan && point.loss.is_none(),
        learning_rate: point.learning_rate.or(earlier.learning_rate),
        eta_seconds: point.eta_seconds.or(earlier.eta_seconds),
        stage: point.stage.or_else(|| earlier.stage.clone()),
        metrics,
        ..point
    }
}

/// Values without a JSON number are stored as text (`supervisor/events`).
fn is_nan(value: &Value) -> bool {
    matches!(value.as_str(), Some("NaN" | "Infinity" | "-Infinity"))
}

fn text_field(value: &Value, key: &str) -> Option<String> {
    let text: String = value[key].as_str()?.chars().filter(|found| !found.is_control()).take(200).collect();
    (!text.is_empty()).then_some(text)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn count_field(value: &Value, key: &str) -> Option<u64> {
    let number = &value[key];
    number.as_u64().or_else(|| number.as_f64().filter(|found| (0.0..9e15).contains(found)).map(|found| found as u64))
}

fn number_fields(value: &Value) -> BTreeMap<String, f64> {
    let Some(entries) = value.as_object() else { return BTreeMap::new() };
    let is_usable = |name: &str| !name.is_empty() && name.len() <= 100 && !name.chars().any(char::is_control);
    entries
        .iter()
        .filter(|(name, _)| is_usable(name))
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .take(MAX_METRICS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT: Timestamp = Timestamp(5);

    #[test]
    fn status_event_becomes_a_point() {
        let mut reader = ProgressReader::default();
        let event = json!({"type": "training.status", "data": {"status": "running"}, "progress": {
            "current": 10, "total": 100.0, "percent": 10, "eta_seconds": 90.5,
            "metrics": {"loss": 0.5, "lr": 1e-4, "epoch": 1, "grad_norm": 2.0, "note": "x", "bad": null}}});
        let expected = ProgressPoint {
            step: 10,
            total_steps: Some(100),
            at: AT,
            epoch: Some(1.0),
            loss: Some(0.5),
            loss_is_nan: false,
            learning_rate: Some(1e-4),
            eta_seconds: Some(90.5),
            metrics: BTreeMap::from([("grad_norm".to_owned(), 2.0)]),
            stage: Some("running".to_owned()),
        };
        assert_eq!(reader.read_point(&event, AT), Some(expected));
    }

    #[test]
    fn stage_keeps_the_training_step() {
        let mut reader =
            ProgressReader { last: ProgressPoint { step: 7, total_steps: Some(9), ..ProgressPoint::default() } };
        let event = json!({"type": "lifecycle.stage", "stage": {"key": "cache", "label": "Caching", "progress": {"current": 3, "total": 8}}});
        let point = reader.read_point(&event, AT);
        assert_eq!(point.as_ref().map(|point| (point.step, point.total_steps)), Some((7, Some(9))));
        assert_eq!(point.and_then(|point| point.stage).as_deref(), Some("Caching (3/8)"));
    }

    #[test]
    fn stage_keeps_earlier_values_of_its_step() {
        let mut reader = ProgressReader::default();
        let status = |step: u64, metrics: Value| json!({"type": "training.status", "progress": {"current": step, "total": 20, "metrics": metrics}});
        let stage = |key: &str, metrics: Value| json!({"type": "lifecycle.stage", "stage": {"key": key, "progress": {"metrics": metrics}}});
        reader.read_point(&status(5, json!({"loss": 0.5, "lr": 1e-4, "epoch": 1, "grad_norm": 2.0})), AT);
        let saved = reader.read_point(&stage("checkpoint", json!({"saved": 1.0})), AT).expect("a point");
        assert_eq!((saved.step, saved.loss, saved.learning_rate, saved.epoch), (5, Some(0.5), Some(1e-4), Some(1.0)));
        assert_eq!(saved.metrics, BTreeMap::from([("grad_norm".to_owned(), 2.0), ("saved".to_owned(), 1.0)]));
        let next = reader.read_point(&status(6, json!({})), AT).expect("a point");
        assert_eq!((next.step, next.loss, next.metrics.len()), (6, None, 0), "another step has its own numbers");
        let end = reader.read_point(&stage("training_complete", json!({"loss": 0.25})), AT).expect("a point");
        assert_eq!((end.step, end.loss, end.stage.as_deref()), (6, Some(0.25), Some("training_complete")));
    }

    #[test]
    fn nan_loss_is_reported() {
        let mut reader = ProgressReader::default();
        let status = |step: u64, metrics: Value| json!({"type": "training.status", "progress": {"current": step, "metrics": metrics}});
        let mut loss_after = |event: Value| reader.read_point(&event, AT).map(|point| (point.loss, point.loss_is_nan));
        assert_eq!(loss_after(status(1, json!({"loss": 0.5}))), Some((Some(0.5), false)));
        assert_eq!(
            loss_after(status(1, json!({"loss": null}))),
            Some((Some(0.5), false)),
            "a null value changes nothing"
        );
        assert_eq!(loss_after(status(1, json!({"train_loss": "NaN"}))), Some((None, true)));
        assert_eq!(loss_after(status(1, json!({"lr": 1e-4}))), Some((None, true)), "the same step");
        assert_eq!(loss_after(status(2, json!({"lr": 1e-4}))), Some((None, false)), "a missing loss is not NaN");
        assert_eq!(loss_after(status(2, json!({"loss": 0.25}))), Some((Some(0.25), false)));
    }

    #[test]
    fn event_step_is_read() {
        for (event, expected) in [
            (json!({"type": "notification", "data": {"step": 5}}), Some(5)),
            (json!({"type": "notification", "global_step": 6.0}), Some(6)),
            (json!({"type": "training.status", "progress": {"current": 7}}), Some(7)),
            (json!({"type": "training.status", "data": {"progress": {"current_step": 8}}}), Some(8)),
            (
                json!({"type": "lifecycle.stage", "stage": {"progress": {"current": 9}}, "progress": {"current": 9}}),
                None,
            ),
            (json!({"step": -1}), None),
            (json!([5]), None),
        ] {
            assert_eq!(event_step(&event), expected, "{event}");
        }
    }

    #[test]
    fn other_events_yield_no_point_and_no_panic() {
        let mut reader = ProgressReader::default();
        for event in [
            json!(null),
            json!([1]),
            json!({"type": 5}),
            json!({"type": "notification", "message": "m"}),
            json!({"type": "lifecycle.stage", "stage": 4}),
            json!({"type": "training.status", "progress": "x"}),
        ] {
            assert_eq!(reader.read_point(&event, AT), None, "{event}");
        }
        let event = json!({"type": "training.status", "data": {"progress": {"current": -4, "total": 1e300}}});
        assert_eq!(reader.read_point(&event, AT).map(|point| (point.step, point.total_steps)), Some((0, None)));
    }
}
