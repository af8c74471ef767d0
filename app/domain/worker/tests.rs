//! Tables for single steps, and what holds for all.

use super::*;
use crate::domain::fixtures::{withheld, worker};
use crate::domain::gpu::{Gpu, Withheld};

const NOW: Timestamp = Timestamp(1_000);
const LATER: Timestamp = Timestamp(2_000);

/// A worker that was made and never seen.
pub(crate) fn made() -> Worker {
    Worker::made(WorkerId::new(NOW, [0; 10]), "gpu-1".to_owned(), NOW)
}

/// A worker that listens; an older agent's.
pub(crate) fn online() -> Worker {
    made().registered(NOW, Capability::default(), Kind::Persistent).listening(NOW, "s").expect("registered")
}

#[test]
fn status_table() {
    let connecting = online().stopped_listening(NOW, "s");
    let offline = online().gone(NOW, OfflineCause::Silent);
    let job = JobId::new(NOW, [0; 10]);
    let rows = [
        (made(), 0, Status::Offline),
        (connecting.clone(), 0, Status::Connecting),
        (connecting.clone(), 1, Status::Busy),
        (connecting.drained(NOW, None, None), 0, Status::Draining),
        (online(), 0, Status::Idle),
        (Worker { astray: Some(job), ..online() }, 0, Status::Busy),
        (online(), 2, Status::Busy),
        (online().drained(NOW, None, None), 1, Status::Draining),
        (offline.clone(), 1, Status::Offline),
        (offline.drained(NOW, None, None), 0, Status::Offline),
    ];
    for (worker, jobs, status) in rows {
        assert_eq!(worker.status(jobs), status, "{worker:?} with {jobs} jobs");
    }
}

#[test]
fn nothing_an_agent_does_undoes_a_drain() {
    let drained = online().drained(NOW, Some("driver update".to_owned()), Some(LATER));
    let after = drained
        .clone()
        .stopped_listening(LATER, "s")
        .gone(LATER, OfflineCause::Disconnected)
        .registered(LATER, Capability::default(), Kind::Ephemeral)
        .listening(LATER, "s")
        .expect("registered");
    assert_eq!(after.drain, drained.drain);
    assert_eq!(after.drained(LATER, None, None).drain, Some(Drain { since: NOW, reason: None, deadline: None }));
    assert_eq!(drained.resumed().drain, None);
}

#[test]
fn the_first_registration_fills_an_open_type_and_no_later_one_changes_it() {
    let first = made().registered(NOW, Capability::default(), Kind::Ephemeral);
    assert_eq!(first.kind, Some(Kind::Ephemeral));
    assert_eq!(first.registered(LATER, Capability::default(), Kind::Persistent).kind, Some(Kind::Ephemeral));
}

#[test]
fn only_the_registered_listen_and_only_the_absent_are_deleted() {
    assert_eq!(made().listening(NOW, "s"), Err(Refused::NotRegistered));
    assert_eq!(made().may_beat(), Err(Refused::NotRegistered));
    assert_eq!(online().gone(NOW, OfflineCause::Silent).may_beat(), Err(Refused::NotRegistered));
    assert_eq!(online().may_beat(), Ok(()));
    assert_eq!(online().stopped_listening(NOW, "s").may_beat(), Ok(()));
    assert_eq!(online().gone(NOW, OfflineCause::Silent).listening(NOW, "s"), Err(Refused::NotRegistered));
    assert_eq!(online().listening(LATER, "s").map(|w| w.link_since()), Ok(NOW));
    assert_eq!(made().may_be_deleted(), Ok(()));
    assert_eq!(online().may_be_deleted(), Err(Refused::Connected));
    assert_eq!(online().stopped_listening(NOW, "s").may_be_deleted(), Err(Refused::Connected));
    assert_eq!(online().gone(NOW, OfflineCause::Disconnected).may_be_deleted(), Ok(()));
}

#[test]
fn an_ephemeral_workers_first_job_is_its_last() {
    let ephemeral = Worker { kind: Some(Kind::Ephemeral), ..online() };
    assert_eq!(ephemeral.may_register(&Capability::default(), true, 0), Ok(()));
    let spent = ephemeral.job_ended(LATER);
    assert_eq!(
        (spent.spent, spent.status(0), spent.may_register(&Capability::default(), true, 0)),
        (Some(LATER), Status::Draining, Err(Refused::Spent))
    );
    assert_eq!(spent.may_register(&Capability::default(), true, 1), Ok(()), "another job of its is not over");
    assert_eq!(spent.clone().job_ended(Timestamp(9_000)), spent);
    assert_eq!(online().job_ended(LATER), online());
    assert_eq!(made().job_ended(LATER), made());
}

#[test]
fn since_follows_the_link() {
    assert_eq!(made().link_since(), NOW);
    assert_eq!(online().stopped_listening(LATER, "s").link_since(), LATER);
    let gone = online().gone(LATER, OfflineCause::Silent);
    assert_eq!(gone.link_since(), LATER);
    assert_eq!(gone.clone().gone(Timestamp(9_000), OfflineCause::Disconnected), gone);
    assert_eq!(made().stopped_listening(LATER, "s"), made());
}

#[test]
fn labels_of_the_admin_come_before_reported_ones_before_facts() {
    let label = |key: &str, value: &str| Labels(std::iter::once((key.to_owned(), value.to_owned())).collect());
    let capability = Capability {
        accelerator: "cuda".to_owned(),
        hostname: Some("reported".to_owned()),
        labels: label("hostname", "label"),
        gpus: vec![Gpu { uuid: "u".to_owned(), name: "A100".to_owned(), ..Gpu::default() }],
        ..Capability::default()
    };
    let mut worker = made().registered(NOW, capability, Kind::Persistent);
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
    assert_eq!(worker.label("hostname", false), Some("reported"), "a fact is no label that the agent chose");
    assert_eq!(value(&made(), "nothing"), None);
    assert_eq!(value(&made(), "name").as_deref(), Some("gpu-1"));
}

#[test]
fn one_token_serves_one_host_at_a_time() {
    let from = |install: &str| Capability { install_id: Some(install.to_owned()), ..Capability::default() };
    let connecting = made().registered(NOW, from("a"), Kind::Persistent);
    let online = connecting.clone().listening(NOW, "s").expect("registered");
    for worker in [connecting, online.clone()] {
        assert_eq!(worker.may_register(&from("b"), true, 0), Err(Refused::TokenInUse));
        assert_eq!(worker.may_register(&from("b"), false, 0), Ok(()), "who is silent gives way");
        assert_eq!(worker.may_register(&from("a"), true, 0), Ok(()), "a new start of the same");
        assert_eq!(worker.may_register(&Capability::default(), true, 0), Ok(()), "older agents do not say");
    }
    assert_eq!(online.gone(NOW, OfflineCause::Disconnected).may_register(&from("b"), true, 0), Ok(()));
    assert_eq!(super::tests::online().may_register(&from("b"), true, 0), Ok(()));
    assert_eq!(made().may_register(&from("b"), true, 0), Ok(()));
}

#[test]
fn a_drains_deadline_comes() {
    assert!(!online().evicts(LATER));
    assert!(!online().drained(NOW, None, None).evicts(LATER));
    let drained = online().drained(NOW, None, Some(LATER));
    assert!(!drained.evicts(NOW) && drained.evicts(LATER) && !drained.resumed().evicts(LATER));
}

#[test]
fn an_edit_changes_what_it_names() {
    let before = Worker { labels: Labels([("a".to_owned(), "b".to_owned())].into()), ..online() };
    assert_eq!(before.clone().edited(Edit::default()), before);
    let edit = Edit {
        name: Some("new".to_owned()),
        kind: Some(Kind::Ephemeral),
        labels: Some(Labels::default()),
        ignores_reported: Some(true),
        allows_older: Some(false),
        networks: Some(vec!["10.0.0.0/8".parse().expect("a network")]),
        conflict_is_settled: false,
    };
    let after = before.clone().edited(edit);
    assert_eq!((after.name.as_str(), after.kind, after.labels.0.len()), ("new", Some(Kind::Ephemeral), 0));
    assert_eq!(after.link, before.link);
}

#[test]
fn a_newer_stream_takes_the_place_of_an_older_one() {
    let old = online();
    let new = old.clone().listening(LATER, "new").expect("registered");
    assert_eq!((new.stream(), new.link_since()), (Some("new"), NOW), "it has listened all the time");
    assert_eq!(new.clone().stopped_listening(LATER, "s"), new, "the end of the old one is nothing");
    assert_eq!(new.stopped_listening(LATER, "new").stream(), None);
    assert_eq!(old.clone().listening(LATER, "s"), Ok(old));
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_else() {
    let networks: Vec<Network> = ["10.0.0.0/8"].map(|text| text.parse().expect("one")).to_vec();
    let before = Worker { networks: networks.clone(), ..online().contended(NOW, "elsewhere") };
    assert_eq!(before.clone().edited(Edit::default()), before);
    let settled = before.clone().edited(Edit { conflict_is_settled: true, ..Edit::default() });
    assert_eq!(settled, Worker { conflict: None, ..before.clone() });
    let anywhere = before.clone().edited(Edit { networks: Some(Vec::new()), ..Edit::default() });
    assert_eq!(anywhere, Worker { networks: Vec::new(), ..before });
    assert_eq!(online().edited(Edit { networks: Some(networks.clone()), ..Edit::default() }).networks, networks);
}

#[test]
fn two_agents_on_one_token_are_an_alarm_until_it_is_another_token() {
    let alarm = online().contended(LATER, "elsewhere");
    assert_eq!(alarm.conflict, Some(Conflict { at: LATER, host: "elsewhere".to_owned() }));
    assert_eq!(alarm.rekeyed(), online());
}

#[test]
fn only_an_older_agent_of_an_ephemeral_worker_is_dismissed_by_a_drain_or_its_jobs_end() {
    let agent = |protocol, kind| made().registered(NOW, Capability { protocol, ..Capability::default() }, kind);
    let rows = [
        (None, Kind::Ephemeral, true),
        (None, Kind::Persistent, false),
        (Some(1), Kind::Ephemeral, false),
        (Some(1), Kind::Persistent, false),
    ];
    for (protocol, kind, told) in rows {
        let worker = agent(protocol, kind);
        assert_eq!(worker.dismissed(), None);
        assert_eq!(worker.clone().job_ended(NOW).dismissed().is_some(), told, "{protocol:?} {kind:?}");
        let drained = worker.drained(NOW, Some("price".to_owned()), None);
        assert_eq!(drained.dismissed(), told.then_some("price"), "{protocol:?} {kind:?}");
    }
}

#[test]
fn an_older_agent_finishes_for_two_seconds() {
    let agent = |protocol| made().registered(NOW, Capability { protocol, ..Capability::default() }, Kind::Persistent);
    assert_eq!(agent(Some(1)).released(NOW).finishing, None);
    let finishing = agent(None).released(NOW);
    assert_eq!(finishing.finishing, Some(NOW));
    assert_eq!(finishing.clone().settled(Timestamp(NOW.0 + 1_999)), finishing);
    assert_eq!(finishing.clone().settled(Timestamp(NOW.0 + 2_000)), agent(None));
    assert_eq!(finishing.clone().gone(NOW, OfflineCause::Silent).finishing, None);
    assert_eq!(finishing.registered(NOW, Capability::default(), Kind::Persistent).finishing, None);
}

#[test]
fn an_agent_says_which_of_its_gpus_no_job_may_have() {
    let said = |withheld: Option<Withheld>| [Word { uuid: "GPU-1-1".to_owned(), withheld }];
    let listens = worker(1, &[80, 80], 1);
    let withholds = listens.clone().gpus_said(&said(Some(withheld("XID 79"))));
    let of = |worker: &Worker| {
        worker.capability().expect("registered").gpus.iter().map(|gpu| gpu.withheld.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(&withholds), [None, Some(withheld("XID 79"))]);
    assert_eq!(withholds.clone().gpus_said(&[]), withholds, "what nothing is said of stays");
    assert_eq!(withholds.clone().gpus_said(&said(None)), listens);
    assert_eq!(of(&withholds.clone().stopped_listening(NOW, "s")), of(&withholds));
    let gone = listens.clone().gone(NOW, OfflineCause::Silent);
    assert_eq!(gone.clone().gpus_said(&said(Some(withheld("XID 79")))), gone, "who is gone says nothing");
    let again = withholds.registered(NOW, listens.capability().expect("registered").clone(), Kind::Persistent);
    assert_eq!(of(&again), [None, None], "who registers says anew");
}
