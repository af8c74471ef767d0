//! The settings of a worker as fields of the form that edits them: to fill the form, and to undo an edit.

use std::collections::BTreeMap;

use super::flash::Undo;
use crate::protocol::workers::WorkerView;

/// Returns the URL of the form.
pub(crate) fn form_url(worker: &WorkerView) -> String {
    format!("/ui/workers/{}/edit", worker.id)
}

/// Returns the fields of the form.
pub(crate) fn form_fields(worker: &WorkerView) -> BTreeMap<String, String> {
    let settings = worker.settings.clone().unwrap_or_default();
    let labels: Vec<_> = settings.labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let required = [
        ("name", worker.name.clone()),
        ("labels", labels.join("\n")),
        ("networks", worker.allowed_networks.join(", ")),
        ("revision", worker.revision.clone()),
    ];
    // Unset options are omitted.
    let kind = worker.worker_type.map(|kind| ("worker_type", kind.as_str().to_owned()));
    let ignores = settings.ignore_reported_labels.then(|| ("ignore_reported_labels", "true".to_owned()));
    let rejects = settings.reject_older_agents.then(|| ("reject_older_agents", "true".to_owned()));
    let fields = required.into_iter().chain(kind).chain(ignores).chain(rejects);
    fields.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the undo of an edit, which fails if the worker changes again: `revision` is the worker's revision after the
/// edit.
pub fn undo_edit(before: &WorkerView, revision: String) -> Undo {
    let mut fields = form_fields(before);
    fields.insert("revision".to_owned(), revision);
    Undo::from_form(form_url(before), fields.into_iter().collect())
}
