//! Trainers' events as points of a curve.

use std::collections::BTreeMap;

use app::domain::time::Timestamp;
use app::protocol::worker::ProgressPoint;
use serde_json::Value;

/// Reads events in order; remembers the step for events that do not say it.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    step: u64,
    total: Option<u64>,
}

impl Reader {
    /// What an event says about progress, if it says anything.
    pub fn point(&mut self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let kind = ["type", "event", "event_type", "message_type"].iter().find_map(|key| event[*key].as_str())?;
        match kind {
            "training.status" => self.status(event, at),
            "lifecycle.stage" => self.stage(event, at),
            _ => None,
        }
    }

    fn status(&mut self, event: &Value, at: Timestamp) -> Option<ProgressPoint> {
        let data = &event["data"];
        let progress = [&event["progress"], &data["progress"], data].into_iter().find(|value| value.is_object());
        let stage = text(data, "status").or_else(|| text(event, "status"));
        let Some(progress) = progress else {
            return stage.map(|stage| self.bare(at, Some(stage)));
        };
        self.step =
            ["current", "step", "current_step"].iter().find_map(|key| count(progress, key)).unwrap_or(self.step);
        self.total = ["total", "total_steps"].iter().find_map(|key| count(progress, key)).or(self.total);
        let mut metrics = numbers(&progress["metrics"]);
        let mut take = |names: &[&str]| {
            let found: Vec<f64> = names.iter().filter_map(|name| metrics.remove(*name)).collect();
            found.first().copied().or_else(|| names.iter().find_map(|name| progress[*name].as_f64()))
        };
        let epoch = take(&["epoch", "current_epoch"]);
        let loss = take(&["loss", "train_loss", "step_loss"]);
        let learning_rate = take(&["learning_rate", "lr"]);
        let eta_seconds = take(&["eta_seconds"]);
        Some(ProgressPoint { epoch, loss, learning_rate, eta_seconds, metrics, ..self.bare(at, stage) })
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
        Some(self.bare(at, Some(name)))
    }

    fn bare(&self, at: Timestamp, stage: Option<String>) -> ProgressPoint {
        ProgressPoint { step: self.step, total_steps: self.total, at, stage, ..ProgressPoint::default() }
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
        let mut reader = Reader { step: 7, total: Some(9) };
        let event = json!({"type": "lifecycle.stage", "stage": {"key": "cache", "label": "Caching", "progress": {"current": 3, "total": 8}}});
        let point = reader.point(&event, AT);
        assert_eq!(point.as_ref().map(|point| (point.step, point.total_steps)), Some((7, Some(9))));
        assert_eq!(point.and_then(|point| point.stage).as_deref(), Some("Caching (3/8)"));
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
