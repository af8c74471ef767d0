//! Tables for single transitions, and general properties.

use super::*;
use crate::domain::fixtures::{unavailable, worker};
use crate::domain::gpu::{Gpu, Unavailable};

const NOW: Timestamp = Timestamp(1_000);
const LATER: Timestamp = Timestamp(2_000);

/// A worker that has never connected.
pub(crate) fn new_worker() -> Worker {
    Worker::new(WorkerId::new(NOW, [0; 10]), "gpu-1".to_owned(), NOW)
}

/// A connected worker with an older agent.
pub(crate) fn online_worker() -> Worker {
    new_worker()
        .registered(NOW, Capability::default(), WorkerKind::Persistent)
        .stream_opened(NOW, "s")
        .expect("registered")
}

#[test]
fn status_table() {
    let connecting = online_worker().stream_closed(NOW, "s");
    let offline = online_worker().went_offline(NOW, OfflineCause::HeartbeatTimeout);
    let job = JobId::new(NOW, [0; 10]);
    let rows = [
        (new_worker(), 0, WorkerState::Offline),
        (connecting.clone(), 0, WorkerState::Connecting),
        (connecting.clone(), 1, WorkerState::Busy),
        (connecting.drained(NOW, None, None), 0, WorkerState::Draining),
        (online_worker(), 0, WorkerState::Idle),
        (Worker { unassigned_run: Some(job), ..online_worker() }, 0, WorkerState::Busy),
        (online_worker(), 2, WorkerState::Busy),
        (online_worker().drained(NOW, None, None), 1, WorkerState::Draining),
        (offline.clone(), 1, WorkerState::Offline),
        (offline.drained(NOW, None, None), 0, WorkerState::Offline),
    ];
    for (worker, jobs, status) in rows {
        assert_eq!(worker.state(jobs), status, "{worker:?} with {jobs} jobs");
    }
}

#[test]
fn agent_cannot_end_a_drain() {
    let drained = online_worker().drained(NOW, Some("driver update".to_owned()), Some(LATER));
    let after = drained
        .clone()
        .stream_closed(LATER, "s")
        .went_offline(LATER, OfflineCause::Disconnected)
        .registered(LATER, Capability::default(), WorkerKind::Ephemeral)
        .stream_opened(LATER, "s")
        .expect("registered");
    assert_eq!(after.drain, drained.drain);
    assert_eq!(after.drained(LATER, None, None).drain, Some(Drain { since: NOW, reason: None, deadline: None }));
    assert_eq!(drained.resumed().drain, None);
}

#[test]
fn first_registration_sets_a_missing_type() {
    let first = new_worker().registered(NOW, Capability::default(), WorkerKind::Ephemeral);
    assert_eq!(first.kind, Some(WorkerKind::Ephemeral));
    assert_eq!(
        first.registered(LATER, Capability::default(), WorkerKind::Persistent).kind,
        Some(WorkerKind::Ephemeral)
    );
}

#[test]
fn only_registered_workers_open_streams() {
    assert_eq!(new_worker().stream_opened(NOW, "s"), Err(WorkerTransitionError::NotRegistered));
    assert_eq!(new_worker().check_heartbeat(), Err(WorkerTransitionError::NotRegistered));
    assert_eq!(
        online_worker().went_offline(NOW, OfflineCause::HeartbeatTimeout).check_heartbeat(),
        Err(WorkerTransitionError::NotRegistered)
    );
    assert_eq!(online_worker().check_heartbeat(), Ok(()));
    assert_eq!(online_worker().stream_closed(NOW, "s").check_heartbeat(), Ok(()));
    assert_eq!(
        online_worker().went_offline(NOW, OfflineCause::HeartbeatTimeout).stream_opened(NOW, "s"),
        Err(WorkerTransitionError::NotRegistered)
    );
    assert_eq!(online_worker().stream_opened(LATER, "s").map(|w| w.connection_since()), Ok(NOW));
}

#[test]
fn ephemeral_worker_runs_one_job() {
    let ephemeral = Worker { kind: Some(WorkerKind::Ephemeral), ..online_worker() };
    assert_eq!(ephemeral.check_registration(&Capability::default(), true, 0), Ok(()));
    let retired = ephemeral.job_ended(LATER);
    assert_eq!(
        (retired.retired_at, retired.state(0), retired.check_registration(&Capability::default(), true, 0)),
        (Some(LATER), WorkerState::Draining, Err(WorkerTransitionError::Retired))
    );
    assert_eq!(
        retired.check_registration(&Capability::default(), true, 1),
        Ok(()),
        "another of its jobs has not ended"
    );
    assert_eq!(retired.clone().job_ended(Timestamp(9_000)), retired);
    assert_eq!(online_worker().job_ended(LATER), online_worker());
    assert_eq!(new_worker().job_ended(LATER), new_worker());
}

#[test]
fn connection_since_follows_the_connection() {
    assert_eq!(new_worker().connection_since(), NOW);
    assert_eq!(online_worker().stream_closed(LATER, "s").connection_since(), LATER);
    let offline = online_worker().went_offline(LATER, OfflineCause::HeartbeatTimeout);
    assert_eq!(offline.connection_since(), LATER);
    assert_eq!(offline.clone().went_offline(Timestamp(9_000), OfflineCause::Disconnected), offline);
    assert_eq!(new_worker().stream_closed(LATER, "s"), new_worker());
}

#[test]
fn admin_labels_precede_reported_labels_and_facts() {
    let label = |key: &str, value: &str| Labels(std::iter::once((key.to_owned(), value.to_owned())).collect());
    let capability = Capability {
        accelerator: "cuda".to_owned(),
        hostname: Some("reported".to_owned()),
        labels: label("hostname", "label"),
        gpus: vec![Gpu { uuid: "u".to_owned(), name: "A100".to_owned(), ..Gpu::default() }],
        ..Capability::default()
    };
    let mut worker = new_worker().registered(NOW, capability, WorkerKind::Persistent);
    let value = |worker: &Worker, key: &str| worker.label(key, true).map(str::to_owned);
    assert_eq!(value(&worker, "hostname").as_deref(), Some("label"));
    assert_eq!(value(&worker, "accelerator_type").as_deref(), Some("cuda"));
    assert_eq!(value(&worker, "gpu_name").as_deref(), Some("A100"));
    assert_eq!(value(&worker, "worker_type").as_deref(), Some("persistent"));
    assert_eq!(value(&worker, "name").as_deref(), Some("gpu-1"));
    worker.labels = label("hostname", "admin");
    assert_eq!(value(&worker, "hostname").as_deref(), Some("admin"));
    assert_eq!(worker.label("hostname", false), Some("admin"));
    worker.labels = Labels::default();
    assert_eq!(worker.label("hostname", false), Some("reported"), "facts cannot be overridden by reported labels");
    assert_eq!(value(&new_worker(), "nothing"), None);
    assert_eq!(value(&new_worker(), "name").as_deref(), Some("gpu-1"));
}

#[test]
fn one_token_serves_one_host_at_a_time() {
    let capability = |install: &str| Capability { install_id: Some(install.to_owned()), ..Capability::default() };
    let connecting = new_worker().registered(NOW, capability("a"), WorkerKind::Persistent);
    let online = connecting.clone().stream_opened(NOW, "s").expect("registered");
    for worker in [connecting, online.clone()] {
        assert_eq!(worker.check_registration(&capability("b"), true, 0), Err(WorkerTransitionError::TokenInUse));
        assert_eq!(worker.check_registration(&capability("b"), false, 0), Ok(()), "a silent agent is replaced");
        assert_eq!(worker.check_registration(&capability("a"), true, 0), Ok(()), "a restart of the same agent");
        assert_eq!(worker.check_registration(&Capability::default(), true, 0), Ok(()), "older agents do not report it");
    }
    assert_eq!(
        online.went_offline(NOW, OfflineCause::Disconnected).check_registration(&capability("b"), true, 0),
        Ok(())
    );
    assert_eq!(super::tests::online_worker().check_registration(&capability("b"), true, 0), Ok(()));
    assert_eq!(new_worker().check_registration(&capability("b"), true, 0), Ok(()));
}

#[test]
fn drain_deadline_evicts_jobs() {
    assert!(!online_worker().should_evict(LATER));
    assert!(!online_worker().drained(NOW, None, None).should_evict(LATER));
    let drained = online_worker().drained(NOW, None, Some(LATER));
    assert!(!drained.should_evict(NOW) && drained.should_evict(LATER) && !drained.resumed().should_evict(LATER));
}

#[test]
fn edit_changes_the_named_fields() {
    let before = Worker { labels: Labels([("a".to_owned(), "b".to_owned())].into()), ..online_worker() };
    assert_eq!(before.clone().edited(WorkerEdit::default()), before);
    let edit = WorkerEdit {
        name: Some("new".to_owned()),
        kind: Some(WorkerKind::Ephemeral),
        labels: Some(Labels::default()),
        ignores_reported_labels: Some(true),
        allows_older_agents: Some(false),
        networks: Some(vec!["10.0.0.0/8".parse().expect("a network")]),
        resolves_conflict: false,
    };
    let after = before.clone().edited(edit);
    assert_eq!((after.name.as_str(), after.kind, after.labels.0.len()), ("new", Some(WorkerKind::Ephemeral), 0));
    assert_eq!(after.connection, before.connection);
}

#[test]
fn newer_stream_replaces_an_older_one() {
    let old = online_worker();
    let new = old.clone().stream_opened(LATER, "new").expect("registered");
    assert_eq!((new.stream_id(), new.connection_since()), (Some("new"), NOW), "it was connected all the time");
    assert_eq!(new.clone().stream_closed(LATER, "s"), new, "the end of the old stream changes nothing");
    assert_eq!(new.stream_closed(LATER, "new").stream_id(), None);
    assert_eq!(old.clone().stream_opened(LATER, "s"), Ok(old));
}

#[test]
fn edit_changes_only_the_named_fields() {
    let networks: Vec<Network> = ["10.0.0.0/8"].map(|text| text.parse().expect("one")).to_vec();
    let before = Worker { networks: networks.clone(), ..online_worker().token_contended(NOW, "elsewhere") };
    assert_eq!(before.clone().edited(WorkerEdit::default()), before);
    let resolved = before.clone().edited(WorkerEdit { resolves_conflict: true, ..WorkerEdit::default() });
    assert_eq!(resolved, Worker { token_conflict: None, ..before.clone() });
    let without_networks = before.clone().edited(WorkerEdit { networks: Some(Vec::new()), ..WorkerEdit::default() });
    assert_eq!(without_networks, Worker { networks: Vec::new(), ..before });
    assert_eq!(
        online_worker().edited(WorkerEdit { networks: Some(networks.clone()), ..WorkerEdit::default() }).networks,
        networks
    );
}

#[test]
fn token_conflict_lasts_until_the_token_is_rotated() {
    let conflict = online_worker().token_contended(LATER, "elsewhere");
    assert_eq!(conflict.token_conflict, Some(TokenConflict { at: LATER, host: "elsewhere".to_owned() }));
    assert_eq!(conflict.token_rotated(), online_worker());
}

#[test]
fn only_older_ephemeral_agents_are_shut_down_by_a_drain_or_job_end() {
    let agent = |protocol, kind| new_worker().registered(NOW, Capability { protocol, ..Capability::default() }, kind);
    let rows = [
        (None, WorkerKind::Ephemeral, true),
        (None, WorkerKind::Persistent, false),
        (Some(1), WorkerKind::Ephemeral, false),
        (Some(1), WorkerKind::Persistent, false),
    ];
    for (protocol, kind, is_shut_down) in rows {
        let worker = agent(protocol, kind);
        assert_eq!(worker.shutdown_reason(), None);
        assert_eq!(worker.clone().job_ended(NOW).shutdown_reason().is_some(), is_shut_down, "{protocol:?} {kind:?}");
        let drained = worker.drained(NOW, Some("price".to_owned()), None);
        assert_eq!(drained.shutdown_reason(), is_shut_down.then_some("price"), "{protocol:?} {kind:?}");
    }
}

#[test]
fn older_agent_is_finishing_for_two_seconds() {
    let agent = |protocol| {
        new_worker().registered(NOW, Capability { protocol, ..Capability::default() }, WorkerKind::Persistent)
    };
    assert_eq!(agent(Some(1)).lease_released(NOW).finishing_since, None);
    let finishing = agent(None).lease_released(NOW);
    assert_eq!(finishing.finishing_since, Some(NOW));
    assert_eq!(finishing.clone().clear_finishing(Timestamp(NOW.0 + 1_999)), finishing);
    assert_eq!(finishing.clone().clear_finishing(Timestamp(NOW.0 + 2_000)), agent(None));
    assert_eq!(finishing.clone().went_offline(NOW, OfflineCause::HeartbeatTimeout).finishing_since, None);
    assert_eq!(finishing.registered(NOW, Capability::default(), WorkerKind::Persistent).finishing_since, None);
}

#[test]
fn agent_reports_unavailable_gpus() {
    let reports = |unavailable: Option<Unavailable>| [GpuReport { uuid: "GPU-1-1".to_owned(), unavailable }];
    let online = worker(1, &[80, 80], 1);
    let reported = online.clone().gpus_reported(&reports(Some(unavailable("XID 79"))));
    let unavailable_gpus = |worker: &Worker| {
        worker.capability().expect("registered").gpus.iter().map(|gpu| gpu.unavailable.clone()).collect::<Vec<_>>()
    };
    assert_eq!(unavailable_gpus(&reported), [None, Some(unavailable("XID 79"))]);
    assert_eq!(reported.clone().gpus_reported(&[]), reported, "GPUs without a report stay unchanged");
    assert_eq!(reported.clone().gpus_reported(&reports(None)), online);
    assert_eq!(unavailable_gpus(&reported.clone().stream_closed(NOW, "s")), unavailable_gpus(&reported));
    let offline = online.clone().went_offline(NOW, OfflineCause::HeartbeatTimeout);
    assert_eq!(
        offline.clone().gpus_reported(&reports(Some(unavailable("XID 79")))),
        offline,
        "reports of an offline worker are ignored"
    );
    let registered = reported.registered(NOW, online.capability().expect("registered").clone(), WorkerKind::Persistent);
    assert_eq!(unavailable_gpus(&registered), [None, None], "a registration resets the reports");
}
