//! A worker for tests.

use serde_json::{Value, json};

use super::WorkerView;

/// A worker with this status, and with these fields instead of its own.
pub(crate) fn worker(status: &str, more: Value) -> WorkerView {
    let mut view = json!({
        "id": "w_1", "worker_id": "w_1", "name": "gpu-1", "status": status, "status_since": "2026-11-22T00:00:00Z",
        "local": false, "draining": false, "max_jobs": 1, "gpu_count": 1, "labels": {}, "reported_labels": {},
        "ignore_reported_labels": false, "created_at": "2026-11-22T00:00:00Z", "jobs": [],
    });
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    serde_json::from_value(view).expect("a worker")
}
