use serde_json::json;

use super::*;
use crate::protocol::status::JobStatus;
use crate::protocol::workers::fixtures::worker;

fn job(status: &str) -> JobView {
    serde_json::from_value(json!({
        "job_id": "j_1", "status": status, "status_since": "2026-11-22T00:00:00Z", "config_name": "digits",
        "config_revision": 1, "target": "auto", "worker_labels": {}, "priority": 10, "attempt": 0, "max_attempts": 3,
        "submitted_at": "2026-11-22T00:00:00Z", "submitted_by": "ada",
    }))
    .expect("a job")
}

#[test]
fn bulk_effect_depends_on_the_workers_status() {
    let with_job = json!({"jobs": [{"job_id": "j_1", "config_name": "digits", "status": "running"}]});
    let names = || vec!["digits".to_owned()];
    let effect = |action, status: &str, more| BulkEffect::for_worker(action, &worker(status, more));
    let (drain, resume, delete) = (BulkAction::Drain, BulkAction::Resume, BulkAction::Delete);
    assert_eq!(effect(drain, "idle", json!({})), BulkEffect::StopsAcceptingJobs);
    assert_eq!(effect(drain, "busy", with_job.clone()), BulkEffect::FinishesJobs(names()));
    assert_eq!(effect(drain, "idle", json!({"worker_type": "ephemeral"})), BulkEffect::Retires);
    let ephemeral = json!({"worker_type": "ephemeral", "jobs": with_job["jobs"]});
    assert_eq!(effect(drain, "busy", ephemeral), BulkEffect::FinishesJobsAndRetires(names()));
    assert_eq!(effect(drain, "offline", json!({})), BulkEffect::DrainsOnReconnect);
    assert_eq!(effect(drain, "draining", json!({"draining": true})), BulkEffect::AlreadyDraining);
    assert_eq!(effect(resume, "draining", json!({"draining": true})), BulkEffect::AcceptsJobs);
    assert_eq!(effect(resume, "idle", json!({})), BulkEffect::NotDraining);
    assert_eq!(effect(delete, "offline", json!({})), BulkEffect::Deleted);
    assert_eq!(effect(delete, "offline", with_job.clone()), BulkEffect::DeletedWithJobs(1));
    let lost = json!({"connection_lost": true, "offline_at": "2026-11-22T00:02:00Z"});
    assert_eq!(effect(delete, "connecting", lost.clone()), BulkEffect::Deleted);
    assert_eq!(
        effect(delete, "busy", json!({"offline_at": lost["offline_at"], "jobs": with_job["jobs"]})),
        BulkEffect::NotOffline
    );
    for connected in ["connecting", "idle", "busy", "draining"] {
        assert_eq!(effect(delete, connected, json!({})), BulkEffect::NotOffline, "{connected}");
    }
}

#[test]
fn bulk_effect_depends_on_the_jobs_status_and_user() {
    let effect = |action, status: &str, can_cancel| BulkEffect::for_job(action, &job(status), can_cancel);
    for status in JobStatus::ALL {
        let (name, ended) = (status.as_str(), status.is_terminal());
        assert_eq!(effect(BulkAction::Cancel, name, true).is_change(), !ended && name != "cancelling", "{name}");
        assert!(!effect(BulkAction::Cancel, name, false).is_change(), "{name}");
        assert_eq!(effect(BulkAction::Retry, name, false).is_change(), ended, "{name}");
    }
    assert_eq!(effect(BulkAction::Cancel, "queued", true), BulkEffect::RemovedFromQueue);
    assert_eq!(effect(BulkAction::Cancel, "running", true), BulkEffect::Stops);
    assert_eq!(effect(BulkAction::Cancel, "running", false), BulkEffect::NotOwner("ada".to_owned()));
}

#[test]
fn bulk_outcomes_are_grouped_by_reason_and_can_be_undone() {
    let rejected = |name: &str, reason: &str| BulkRejection { name: name.to_owned(), reason: reason.to_owned() };
    let summary = BulkSummary {
        done: vec!["w_1".to_owned(), "w_2".to_owned()],
        unchanged: 1,
        rejected: vec![
            rejected("a", "It is deleted."),
            rejected("b", "It is online."),
            rejected("c", "It is deleted."),
        ],
    };
    let Flash::Several { text, rejected, undo } = summary.to_flash(BulkAction::Drain, "/admin/workers?q=a", Locale::En)
    else {
        panic!("several results");
    };
    assert_eq!(text, "2 workers are draining. 1 unchanged.");
    assert_eq!(rejected, ["a, c: It is deleted.", "b: It is online."]);
    let undo = undo.expect("a drain can be undone");
    assert_eq!(undo.form, "/ui/workers/bulk/resume");
    let fields: Vec<_> = undo.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        fields,
        ["id=w_1", "id=w_2", "back=/admin/workers?q=a"],
        "workers that were already draining are not undone"
    );
    for action in [BulkAction::Delete, BulkAction::Cancel, BulkAction::Retry] {
        let Flash::Several { undo, .. } = summary.to_flash(action, "/", Locale::Ja) else { panic!("several results") };
        assert_eq!(undo, None, "{action:?}");
    }
    let Flash::Several { text, undo, .. } = BulkSummary::default().to_flash(BulkAction::Drain, "/", Locale::En) else {
        panic!("several results");
    };
    assert_eq!((text.as_str(), undo), ("Nothing was changed.", None));
}

#[test]
fn each_action_has_one_list_and_one_form() {
    for action in BulkAction::ALL {
        let list = list_url(action.target());
        let target = if list == "/jobs" { "jobs" } else { "workers" };
        assert_eq!(form_url(action), format!("/ui/{target}/bulk/{}", action.as_str()));
    }
}
