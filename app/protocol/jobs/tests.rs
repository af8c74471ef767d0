//! The examples have all fields, so that tests can follow each of them.

use super::{JobView, JobsQuery, SubmitJob};

/// The digest of an `Idempotency-Key` is that of this document: a request that is repeated after an upgrade must still
/// be the same. A new field is therefore omitted while it has its default.
#[test]
fn document_of_a_submit_with_defaults_does_not_change() {
    assert_eq!(
        serde_json::to_value(SubmitJob::new("digits")).expect("a document"),
        serde_json::json!({
            "config_name": "digits", "target": "auto", "worker_labels": {}, "max_retries": 3,
            "retry_on_failure": false, "checkpoints": "last", "priority": 10, "dry_run": false,
        })
    );
}

#[test]
fn example_has_no_field_at_its_default() {
    let [example, default] = [SubmitJob::example(), SubmitJob::new("")].map(|submit| serde_json::json!(submit));
    for (field, value) in example.as_object().expect("an object") {
        assert_ne!(default[field], *value, "{field}");
    }
}

#[cfg(feature = "schema")]
#[test]
fn example_of_a_job_has_all_fields() {
    let schema = schemars::schema_for!(JobView).to_value();
    let example = serde_json::json!(JobView::example());
    for field in schema["properties"].as_object().expect("an object").keys() {
        assert!(!example[field].is_null(), "{field}");
    }
}

#[test]
fn example_of_a_query_has_all_filters() {
    let text = format!("{:?}", JobsQuery::example());
    assert!(!text.contains("None"), "{text}");
}

#[test]
fn a_job_is_submitted_again_with_all_its_fields() {
    let submit = SubmitJob { dry_run: true, ..SubmitJob::from_job(&JobView::example()) };
    // Notes are about the result of one job.
    assert_eq!(submit, SubmitJob { notes: None, ..SubmitJob::example() });
}
