//! What is set of a worker, as the form that edits it has it: to fill the form, and to take an edit back.

use std::collections::BTreeMap;

use super::flash::Undo;
use crate::protocol::workers::WorkerView;

/// The form's address.
pub(crate) fn form_url(worker: &WorkerView) -> String {
    format!("/ui/workers/{}/edit", worker.id)
}

/// The form's fields.
pub(crate) fn form_fields(worker: &WorkerView) -> BTreeMap<String, String> {
    let set = worker.settings.clone().unwrap_or_default();
    let labels: Vec<_> = set.labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let always = [
        ("name", worker.name.clone()),
        ("labels", labels.join("\n")),
        ("networks", worker.allowed_networks.join(", ")),
        ("revision", worker.revision.clone()),
    ];
    // What is not chosen is not sent.
    let kind = worker.worker_type.map(|kind| ("worker_type", kind.as_str().to_owned()));
    let ignores = set.ignore_reported_labels.then(|| ("ignore_reported_labels", "true".to_owned()));
    let refuses = set.refuse_older_agents.then(|| ("refuse_older_agents", "true".to_owned()));
    let all = always.into_iter().chain(kind).chain(ignores).chain(refuses);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Sets a worker as it was, unless somebody changes it once more: `revision` is of what the edit has made of it.
pub fn undo_edit(before: &WorkerView, revision: String) -> Undo {
    let mut fields = form_fields(before);
    fields.insert("revision".to_owned(), revision);
    Undo::from_form(form_url(before), fields.into_iter().collect())
}
