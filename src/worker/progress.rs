//! Trainers' events as points of a curve.

use std::collections::BTreeMap;

use app::domain::time::Timestamp;
use app::protocol::worker::ProgressPoint;
use serde_json::{Value, json};

/// Reads events in order. What is known of a step stays known: an event that does not say the step, or all of it, adds to
/// what was said.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    last: ProgressPoint,
}

impl Reader {
    /// What an event says about progress, if it says anything.
    pub fn point(&mut self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let kind = ["type", "event", "event_type", "message_type"].iter().find_map(|key| event[*key].as_str())?;
        let said = match kind {
            "training.status" => self.status(event, at),
            "lifecycle.stage" => self.stage(event, at),
            _ => None,
        }?;
        self.last = if said.step == self.last.step { completed(said, &self.last) } else { said };
        Some(self.last.clone())
    }

    fn status(&self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let data = &event["data"];
        let progress = [&event["progress"], &data["progress"], data].into_iter().find(|value| value.is_object());
        let stage = text(data, "status").or_else(|| text(event, "status"));
        let Some(progress) = progress else {
            return stage.map(|stage| self.bare(at, Some(stage)));
        };
        let bare = self.bare(at, stage);
        let step = ["current", "step", "current_step"].iter().find_map(|key| count(progress, key)).unwrap_or(bare.step);
        let total_steps = ["total", "total_steps"].iter().find_map(|key| count(progress, key)).or(bare.total_steps);
        Some(measured(ProgressPoint { step, total_steps, ..bare }, progress))
    }

    /// A stage counts something of its own (files, images), which is not the training's step.
    fn stage(&self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let stage = &event["stage"];
        let name = text(stage, "label").or_else(|| text(stage, "key"))?;
        let progress = &stage["progress"];
        let name = match (count(progress, "current"), count(progress, "total")) {
            (Some(current), Some(total)) if total > 0 => format!("{name} ({current}/{total})"),
            _ => name,
        };
        let metrics = &progress["metrics"];
        Some(measured(self.bare(at, Some(name)), &json!({"metrics": metrics})))
    }

    fn bare(&self, at: Timestamp, stage: Option<String>) -> ProgressPoint {
        ProgressPoint {
            step: self.last.step,
            total_steps: self.last.total_steps,
            at,
            stage,
            ..ProgressPoint::default()
        }
    }
}

/// A point with the numbers that an event carries.
fn measured(point: ProgressPoint, progress: &Value) -> ProgressPoint {
    let mut metrics = numbers(&progress["metrics"]);
    let mut take = |names: &[&str]| {
        let found: Vec<f64> = names.iter().filter_map(|name| metrics.remove(*name)).collect();
        found.first().copied().or_else(|| names.iter().find_map(|name| progress[*name].as_f64()))
    };
    let epoch = take(&["epoch", "current_epoch"]);
    let loss = take(&["loss", "train_loss", "step_loss"]);
    let learning_rate = take(&["learning_rate", "lr"]);
    let eta_seconds = take(&["eta_seconds"]);
    ProgressPoint { epoch, loss, learning_rate, eta_seconds, metrics, ..point }
}

/// A point with what was said of the same step before.
fn completed(point: ProgressPoint, earlier: &ProgressPoint) -> ProgressPoint {
    let mut metrics = earlier.metrics.clone();
    metrics.extend(point.metrics);
    ProgressPoint {
        epoch: point.epoch.or(earlier.epoch),
        loss: point.loss.or(earlier.loss),
        learning_rate: point.learning_rate.or(earlier.learning_rate),
        eta_seconds: point.eta_seconds.or(earlier.eta_seconds),
        stage: point.stage.or_else(|| earlier.stage.clone()),
        metrics,
        ..point
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text: String = value[key].as_str()?.chars().filter(|found| !found.is_control()).take(200).collect();
    (!text.is_empty()).then_some(text)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn count(value: &Value, key: &str) -> Option<u64> {
    let number = &value[key];
    number.as_u64().or_else(|| number.as_f64().filter(|found| (0.0..9e15).contains(found)).map(|found| found as u64))
}

fn numbers(value: &Value) -> BTreeMap<String, f64> {
    let Some(entries) = value.as_object() else { return BTreeMap::new() };
    let usable = |name: &str| !name.is_empty() && name.len() <= 100 && !name.chars().any(char::is_control);
    entries
        .iter()
        .filter(|(name, _)| usable(name))
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
        .take(100)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const AT: Timestamp = Timestamp(5);

    #[test]
    fn a_status_becomes_a_point() {
        let mut reader = Reader::default();
        let event = json!({"type": "training.status", "data": {"status": "running"}, "progress": {
            "current": 10, "total": 100.0, "percent": 10, "eta_seconds": 90.5,
            "metrics": {"loss": 0.5, "lr": 1e-4, "epoch": 1, "grad_norm": 2.0, "note": "x", "bad": null}}});
        let expected = ProgressPoint {
            step: 10,
            total_steps: Some(100),
            at: AT,
            epoch: Some(1.0),
            loss: Some(0.5),
            learning_rate: Some(1e-4),
            eta_seconds: Some(90.5),
            metrics: BTreeMap::from([("grad_norm".to_owned(), 2.0)]),
            stage: Some("running".to_owned()),
        };
        assert_eq!(reader.point(&event, AT), Some(expected));
    }

    #[test]
    fn a_stage_keeps_the_step() {
        let mut reader = Reader { last: ProgressPoint { step: 7, total_steps: Some(9), ..ProgressPoint::default() } };
        let event = json!({"type": "lifecycle.stage", "stage": {"key": "cache", "label": "Caching", "progress": {"current": 3, "total": 8}}});
        let point = reader.point(&event, AT);
        assert_eq!(point.as_ref().map(|point| (point.step, point.total_steps)), Some((7, Some(9))));
        assert_eq!(point.and_then(|point| point.stage).as_deref(), Some("Caching (3/8)"));
    }

    #[test]
    fn a_stage_erases_nothing_of_its_step() {
        let mut reader = Reader::default();
        let status = |step: u64, metrics: Value| json!({"type": "training.status", "progress": {"current": step, "total": 20, "metrics": metrics}});
        let stage = |key: &str, metrics: Value| json!({"type": "lifecycle.stage", "stage": {"key": key, "progress": {"metrics": metrics}}});
        reader.point(&status(5, json!({"loss": 0.5, "lr": 1e-4, "epoch": 1, "grad_norm": 2.0})), AT);
        let saved = reader.point(&stage("checkpoint", json!({"saved": 1.0})), AT).expect("a point");
        assert_eq!((saved.step, saved.loss, saved.learning_rate, saved.epoch), (5, Some(0.5), Some(1e-4), Some(1.0)));
        assert_eq!(saved.metrics, BTreeMap::from([("grad_norm".to_owned(), 2.0), ("saved".to_owned(), 1.0)]));
        let next = reader.point(&status(6, json!({})), AT).expect("a point");
        assert_eq!((next.step, next.loss, next.metrics.len()), (6, None, 0), "another step has its own numbers");
        let end = reader.point(&stage("training_complete", json!({"loss": 0.25})), AT).expect("a point");
        assert_eq!((end.step, end.loss, end.stage.as_deref()), (6, Some(0.25), Some("training_complete")));
    }

    #[test]
    fn anything_else_is_no_point_and_no_panic() {
        let mut reader = Reader::default();
        for event in [
            json!(null),
            json!([1]),
            json!({"type": 5}),
            json!({"type": "notification", "message": "m"}),
            json!({"type": "lifecycle.stage", "stage": 4}),
            json!({"type": "training.status", "progress": "x"}),
        ] {
            assert_eq!(reader.point(&event, AT), None, "{event}");
        }
        let odd = json!({"type": "training.status", "data": {"progress": {"current": -4, "total": 1e300}}});
        assert_eq!(reader.point(&odd, AT).map(|point| (point.step, point.total_steps)), Some((0, None)));
    }
}
