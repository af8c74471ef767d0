//! The button that drains or resumes a worker, and the options of a drain. The page shows the change before the server
//! answers: nothing is lost if the request fails.

use std::sync::Arc;

use leptos::prelude::*;

use super::action::{ActionButton, ConfirmedAction, OptimisticUpdate};
use super::field::Field;
use crate::domain::text::escape;
use crate::protocol::status::{WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;
use crate::ui::browser;
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::schedule::on_next_frame;

/// Drains the worker, or resumes it if it is draining.
#[component]
pub(crate) fn DrainButton(worker: RwSignal<WorkerView>) -> impl IntoView {
    let words = &t().worker;
    let id = worker.with_untracked(|worker| worker.id.clone());
    let draining = Memo::new(move |_| worker.with(|worker| worker.draining));
    let ephemeral = Memo::new(move |_| worker.with(|worker| worker.worker_type == Some(WorkerType::Ephemeral)));
    let optimistic_update = move |drains: bool| -> OptimisticUpdate {
        Arc::new(move |succeeded: bool| {
            worker.update(|worker| apply_drain(worker, drains == succeeded));
            // The button has been replaced by another one: focus that one.
            on_next_frame(worker, || browser::focus_first(&["[data-key=d]"]));
        })
    };
    move || {
        if draining.get() {
            view! {
                <ActionButton
                    action=format!("/ui/workers/{id}/resume")
                    label=words.resume
                    glyph=Glyph::Play
                    optimistic_update=Some(optimistic_update(false))
                    key="d"
                />
            }
            .into_erased()
        } else {
            view! {
                <ConfirmedAction
                    action=format!("/ui/workers/{id}/drain")
                    label=words.drain
                    text=if ephemeral.get() { words.drain_ephemeral_text } else { words.drain_text }
                    confirm=words.drain_confirm
                    keep=t().common.cancel
                    glyph=Glyph::Drain
                    class="btn btn-sm btn-primary"
                    optimistic_update=Some(optimistic_update(true))
                    key="d"
                    confirm_id="drain"
                >
                    <DrainOptions form="drain"/>
                </ConfirmedAction>
            }
            .into_erased()
        }
    }
}

/// Optional fields: a reason, and a deadline for the running jobs.
#[component]
pub(crate) fn DrainOptions(
    /// The id of the form, if the fields are outside of it.
    #[prop(optional)]
    form: Option<&'static str>,
) -> impl IntoView {
    let words = &t().worker;
    view! {
        <div class="drain-terms">
            <Field id="reason" label=words.drain_reason optional=true>
                <input class="input input-sm w-full" id="reason" name="reason" maxlength="500" autocomplete="off" form=form/>
            </Field>
            <Field id="deadline_minutes" label=words.drain_minutes hint=words.drain_minutes_hint optional=true>
                <input class="input input-sm w-full" id="deadline_minutes" name="deadline_minutes" type="number" min="0"
                    max="43200" aria-describedby="deadline_minutes-hint" form=form/>
            </Field>
        </div>
    }
    .into_erased()
}

/// Returns the reason and the deadline of a drain, and whether it is complete; empty if nothing is known.
pub(crate) fn describe_drain(worker: &WorkerView, clock: PageClock) -> String {
    let words = &t().worker;
    let reason_text = worker.drain_reason.as_ref().map(|reason| words.drains_because.of(escape(reason)));
    let deadline_text = worker.drain_deadline.map(|at| words.drains_until.of(clock.format_timestamp(at)));
    let notes = drained_notes(worker).into_iter().flatten().map(str::to_owned);
    reason_text.into_iter().chain(deadline_text).chain(notes).collect::<Vec<_>>().join(" · ")
}

/// Returns the notes that a draining worker has no job left, and that it can be powered off unless it is the
/// orchestrator's own machine.
pub(crate) fn drained_notes(worker: &WorkerView) -> [Option<Text>; 2] {
    let words = &t().worker;
    let drained = worker.draining && worker.status == WorkerStatus::Draining && worker.jobs.is_empty();
    [drained.then_some(words.drained), (drained && !worker.local).then_some(words.drained_hint)]
}

/// Changes a worker to the state that it has after the request.
fn apply_drain(worker: &mut WorkerView, is_draining: bool) {
    worker.draining = is_draining;
    worker.status = match (worker.status, is_draining) {
        (WorkerStatus::Idle | WorkerStatus::Busy, true) => WorkerStatus::Draining,
        (WorkerStatus::Draining, false) if worker.jobs.is_empty() => WorkerStatus::Idle,
        (WorkerStatus::Draining, false) => WorkerStatus::Busy,
        (status, _) => status,
    };
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_drained_worker_can_be_powered_off_unless_it_is_the_servers_own_machine() {
        let notes = |status: &str, draining: bool, local: bool, jobs: serde_json::Value| {
            let worker = json!({
                "id": "w_1", "worker_id": "w_1", "name": "gpu-1", "status": status, "local": local,
                "status_since": "2026-11-25T00:00:00Z", "draining": draining, "max_jobs": 1, "gpu_count": 0,
                "labels": {}, "reported_labels": {}, "ignore_reported_labels": false,
                "created_at": "2026-11-25T00:00:00Z", "jobs": jobs,
            });
            drained_notes(&serde_json::from_value(worker).expect("a worker"))
        };
        let job = json!([{"job_id": "j_1", "config_name": "digits", "status": "running"}]);
        let (no_jobs, drained, can_be_powered_off) =
            (json!([]), Some(t().worker.drained), Some(t().worker.drained_hint));
        assert_eq!(notes("draining", true, false, no_jobs.clone()), [drained, can_be_powered_off]);
        assert_eq!(notes("draining", true, true, no_jobs.clone()), [drained, None]);
        assert_eq!(notes("draining", true, false, job), [None, None], "a job is left");
        assert_eq!(notes("offline", true, false, no_jobs.clone()), [None, None], "what it runs is not known");
        assert_eq!(notes("draining", false, false, no_jobs), [None, None], "an ephemeral worker that exits by itself");
    }
}
