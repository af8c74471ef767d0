//! What each rule accepts and rejects.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{
    NOW, gpu_demand, job_id, label, spec, unavailable, unseen_worker, with_unavailable_gpus, worker,
};
use crate::domain::sandbox::{Sandbox, SandboxLevel};
use crate::domain::worker::OfflineCause;

fn found_blockers<'a>(spec: &'a JobSpec, worker: &'a Worker) -> Vec<Blocker<'a>> {
    blockers_when_leased(spec, worker, &[])
}

fn blockers_when_leased<'a>(spec: &'a JobSpec, worker: &'a Worker, held: &[&[&'a str]]) -> Vec<Blocker<'a>> {
    blockers(spec, &leased_candidate(worker, held)).collect()
}

fn idle_candidate(worker: &Worker) -> Candidate<'_> {
    Candidate::new(worker, Vec::new())
}

fn leased_candidate<'w>(worker: &'w Worker, held: &[&[&'w str]]) -> Candidate<'w> {
    Candidate::new(worker, held.iter().map(|gpus| gpus.to_vec()).collect())
}

fn vram_demand(gb: f64) -> Demand {
    Demand { min_vram_gb: Some(gb), ..Demand::default() }
}

fn accelerator_demand(accelerator: &str) -> Demand {
    Demand { accelerator: Some(accelerator.to_owned()), ..Demand::default() }
}

#[test]
fn requirements_table() {
    let idle = Worker { labels: label("team", "nlp"), ..worker(1, &[80, 40, 0], 1) };
    let vram = |wanted_gb, gpus, found_gb| vec![Blocker::Vram { wanted_gb, gpus, found_gb }];
    let team = |wanted: &str| Demand { labels: label("team", wanted), ..Demand::default() };
    let rows = [
        (Demand::default(), vec![]),
        (team("n*"), vec![]),
        (team("vision"), vec![Blocker::Label { key: "team", wanted: "vision", found: Some("nlp") }]),
        (
            Demand { labels: label("rack", "*"), ..Demand::default() },
            vec![Blocker::Label { key: "rack", wanted: "*", found: None }],
        ),
        (gpu_demand(3), vec![]),
        (gpu_demand(4), vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (vram_demand(80.0), vec![]),
        (vram_demand(80.5), vram(80.5, 1, Some(80.0))),
        (Demand { gpu_count: Some(2), ..vram_demand(40.0) }, vec![]),
        (Demand { gpu_count: Some(2), ..vram_demand(41.0) }, vram(41.0, 2, Some(40.0))),
        (Demand { gpu_count: Some(3), ..vram_demand(40.0) }, vram(40.0, 3, None)),
        (Demand { gpu_count: Some(4), ..vram_demand(40.0) }, vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (accelerator_demand("cuda"), vec![]),
        (accelerator_demand("rocm"), vec![Blocker::Accelerator { wanted: "rocm", found: "cuda" }]),
    ];
    for (demand, expected) in rows {
        assert_eq!(found_blockers(&spec(demand.clone()), &idle), expected, "{demand:?}");
    }
}

#[test]
fn sandbox_level_must_be_supported() {
    use SandboxLevel::{Files, Full, None as Not};
    let with_level = |sandbox| Demand { sandbox, ..Demand::default() };
    let host_with = |level: Option<SandboxLevel>| {
        let mut host = worker(1, &[80], 1);
        let (ConnectionState::Online { capability, .. } | ConnectionState::Connecting { capability, .. }) =
            &mut host.connection
        else {
            panic!("not connected")
        };
        let why_not_more = Some("no namespaces".to_owned());
        capability.sandbox = level.map(|level| Sandbox { most: level, why_not_more, ..Sandbox::default() });
        host
    };
    for wanted in SandboxLevel::ALL {
        for (supported, found_level) in [(None, Not), (Some(Not), Not), (Some(Files), Files), (Some(Full), Full)] {
            let why = supported.map(|_| "no namespaces");
            let blockers = (wanted > found_level).then_some(Blocker::Sandbox { wanted, found: found_level, why });
            assert_eq!(
                found_blockers(&spec(with_level(wanted)), &host_with(supported)),
                Vec::from_iter(blockers),
                "{wanted:?} of {supported:?}"
            );
        }
    }
}

#[test]
fn host_without_gpus_has_one_slot() {
    let host = worker(1, &[], 1);
    assert_eq!(found_blockers(&spec(Demand::default()), &host), []);
    assert_eq!(found_blockers(&spec(accelerator_demand("cpu")), &host), []);
    assert_eq!(found_blockers(&spec(gpu_demand(1)), &host), [Blocker::Gpus { wanted: 1, found: 0 }]);
    assert_eq!(found_blockers(&spec(vram_demand(1.0)), &host), [Blocker::Gpus { wanted: 1, found: 0 }]);
    assert_eq!(grant_gpus(&Demand::default(), &idle_candidate(&host)), Some(vec![]));
}

#[test]
fn worker_state_table() {
    let (idle, run) = (|| worker(1, &[80], 1), job_id(1));
    let rows = [
        (idle().drained(NOW, None, None), vec![Blocker::Draining]),
        (Worker { retired_at: Some(NOW), ..idle() }, vec![Blocker::Retired]),
        (idle().stream_closed(NOW, "s"), vec![Blocker::Connecting]),
        (idle().went_offline(NOW, OfflineCause::HeartbeatTimeout), vec![Blocker::Offline]),
        (Worker { unassigned_run: Some(job_id(1)), ..idle() }, vec![Blocker::UnassignedRun { job: &run }]),
        (Worker { finishing_since: Some(NOW), ..idle() }, vec![Blocker::Finishing]),
        (unseen_worker(1), vec![Blocker::NeverConnected]),
        (unseen_worker(1).drained(NOW, None, None), vec![Blocker::NeverConnected, Blocker::Draining]),
    ];
    for (worker, expected) in rows {
        assert_eq!(found_blockers(&spec(Demand::default()), &worker), expected, "{worker:?}");
    }
    // The capability of a worker that never connected is not known,
    assert_eq!(
        found_blockers(
            &spec(Demand { gpu_count: Some(8), accelerator: Some("cuda".to_owned()), ..vram_demand(80.0) }),
            &unseen_worker(1)
        ),
        [Blocker::NeverConnected]
    );
    // except for the labels that an admin set.
    let vision = Worker { labels: label("team", "vision"), ..unseen_worker(1) };
    let demand = Demand { labels: label("team", "nlp"), ..gpu_demand(8) };
    let other = Blocker::Label { key: "team", wanted: "nlp", found: Some("vision") };
    assert_eq!(found_blockers(&spec(demand), &vision), [other, Blocker::NeverConnected]);
}

#[test]
fn unhealthy_host_gets_no_jobs() {
    let reason = "the disk is full";
    for host in [worker(1, &[80], 2), worker(1, &[], 2)] {
        let unhealthy = host.clone().host_health_reported(Some(reason.to_owned()));
        assert_eq!(found_blockers(&spec(Demand::default()), &unhealthy), [Blocker::HostUnhealthy { why: reason }]);
        assert!(!has_capacity(&unhealthy, 0) && has_capacity(&host, 0));
        assert_eq!(
            found_blockers(
                &spec(Demand::default()),
                &unhealthy.clone().went_offline(NOW, OfflineCause::HeartbeatTimeout)
            ),
            [Blocker::Offline]
        );
        assert_eq!(unhealthy.host_health_reported(None), host);
    }
}

#[test]
fn busy_slots_and_gpus_block() {
    let two_jobs = worker(1, &[80, 80, 40], 2);
    let default = spec(Demand::default());
    assert_eq!(blockers_when_leased(&spec(gpu_demand(2)), &two_jobs, &[&["GPU-1-0"]]), []);
    assert_eq!(
        blockers_when_leased(&spec(gpu_demand(3)), &two_jobs, &[&["GPU-1-0"]]),
        [Blocker::GpusBusy { wanted: 3, free: 2 }]
    );
    assert_eq!(
        blockers_when_leased(&spec(vram_demand(80.0)), &two_jobs, &[&["GPU-1-0", "GPU-1-1"]]),
        [Blocker::GpusBusy { wanted: 1, free: 0 }]
    );
    assert_eq!(
        blockers_when_leased(&default, &two_jobs, &[&["GPU-1-0", "GPU-1-1", "GPU-1-2"]]),
        [Blocker::GpusBusy { wanted: 1, free: 0 }]
    );
    assert_eq!(
        blockers_when_leased(&spec(gpu_demand(1)), &two_jobs, &[&["GPU-1-0"], &["GPU-1-1"]]),
        [Blocker::AtCapacity { max_jobs: 2 }]
    );
    assert_eq!(blockers_when_leased(&default, &worker(2, &[80], 1), &[&[]]), [Blocker::AtCapacity { max_jobs: 1 }]);
}

#[test]
fn unavailable_gpus_block() {
    let host = |max_jobs, numbers: &[u32]| with_unavailable_gpus(worker(1, &[80, 80, 40], max_jobs), numbers);
    let reason = unavailable("XID 79");
    let blocker = |wanted, left, numbers: &[u32]| Blocker::GpusUnavailable {
        wanted,
        left,
        why: numbers.iter().map(|number| (*number, &reason)).collect(),
    };
    let rows = [
        (host(3, &[0]), gpu_demand(2), vec![]),
        (host(3, &[0]), gpu_demand(3), vec![blocker(3, 2, &[0])]),
        (host(3, &[0, 1, 2]), Demand::default(), vec![blocker(1, 0, &[0, 1, 2])]),
        (host(3, &[0, 1]), vram_demand(60.0), vec![blocker(1, 0, &[0, 1])]),
        (host(3, &[2]), vram_demand(60.0), vec![]),
        (host(1, &[0, 2]), Demand::default(), vec![]),
        (host(3, &[0]), gpu_demand(4), vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (
            host(3, &[0, 1, 2]).drained(NOW, None, None),
            gpu_demand(1),
            vec![Blocker::Draining, blocker(1, 0, &[0, 1, 2])],
        ),
        (
            host(3, &[0, 1, 2]).stream_closed(NOW, "s"),
            gpu_demand(1),
            vec![blocker(1, 0, &[0, 1, 2]), Blocker::Connecting],
        ),
        (host(3, &[0, 1, 2]).went_offline(NOW, OfflineCause::HeartbeatTimeout), gpu_demand(1), vec![Blocker::Offline]),
    ];
    for (n, (worker, demand, expected)) in rows.into_iter().enumerate() {
        assert_eq!(found_blockers(&spec(demand), &worker), expected, "row {n}");
    }
    // GPUs of other jobs become free by waiting; unavailable GPUs do not.
    let with_unavailable = host(3, &[0]);
    let (two, three) = (spec(gpu_demand(2)), spec(gpu_demand(3)));
    assert_eq!(
        blockers_when_leased(&two, &with_unavailable, &[&["GPU-1-1"]]),
        [Blocker::GpusBusy { wanted: 2, free: 1 }]
    );
    assert_eq!(blockers_when_leased(&three, &with_unavailable, &[&["GPU-1-1"]]), [blocker(3, 2, &[0])]);
    assert_eq!(
        blockers_when_leased(&two, &with_unavailable, &[&["GPU-1-0"]]),
        [],
        "a job keeps its GPUs and gets no others"
    );
}

#[test]
fn allocated_gpus_table() {
    fn granted<'w>(worker: &'w Worker, demand: &Demand, held: &[&[&'w str]]) -> Option<Vec<&'w str>> {
        grant_gpus(demand, &leased_candidate(worker, held))
    }
    let uuids = |list: &[&'static str]| Some(list.to_vec());
    let host = worker(1, &[80, 40], 1);
    assert_eq!(granted(&host, &Demand::default(), &[]), uuids(&["GPU-1-0", "GPU-1-1"]));
    assert_eq!(granted(&host, &gpu_demand(1), &[]), uuids(&["GPU-1-0", "GPU-1-1"]), "one job has the whole host");
    assert_eq!(granted(&host, &vram_demand(60.0), &[]), uuids(&["GPU-1-0"]), "except unsuitable GPUs");
    let four_jobs = worker(1, &[80, 40, 80, 24], 4);
    assert_eq!(granted(&four_jobs, &Demand::default(), &[]), uuids(&["GPU-1-3"]), "one, the smallest");
    assert_eq!(granted(&four_jobs, &vram_demand(30.0), &[]), uuids(&["GPU-1-1"]));
    assert_eq!(granted(&four_jobs, &gpu_demand(2), &[]), uuids(&["GPU-1-0", "GPU-1-2"]), "of one model");
    assert_eq!(
        granted(&four_jobs, &gpu_demand(2), &[&["GPU-1-2"]]),
        uuids(&["GPU-1-3", "GPU-1-1"]),
        "else the smallest"
    );
    assert_eq!(granted(&four_jobs, &gpu_demand(4), &[]), uuids(&["GPU-1-3", "GPU-1-1", "GPU-1-0", "GPU-1-2"]));
    assert_eq!(granted(&four_jobs, &gpu_demand(4), &[&["GPU-1-2"]]), None);
    assert_eq!(granted(&unseen_worker(1), &gpu_demand(4), &[]), Some(vec![]));
    let partly_unavailable = with_unavailable_gpus(four_jobs, &[0, 3]);
    assert_eq!(granted(&partly_unavailable, &Demand::default(), &[]), uuids(&["GPU-1-1"]), "not unavailable GPUs");
    assert_eq!(granted(&partly_unavailable, &gpu_demand(3), &[]), None);
    assert_eq!(
        granted(&with_unavailable_gpus(host, &[1]), &Demand::default(), &[]),
        uuids(&["GPU-1-0"]),
        "the host's other GPUs"
    );
}

#[test]
fn configuration_requirements_on_a_host() {
    let spec_with = |files: &[&str], paths: &[&str]| JobSpec {
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        paths: paths.iter().map(|name| (*name).to_owned()).collect(),
        ..spec(Demand::default())
    };
    let agent = |protocol, paths: Option<&[&str]>| {
        let mut host = worker(1, &[80], 1);
        if let ConnectionState::Online { capability, .. } = &mut host.connection {
            capability.protocol = protocol;
            capability.paths = paths.map(|paths| paths.iter().map(|name| (*name).to_owned()).collect());
        }
        host
    };
    let lacks_paths = |names: &[&'static str]| Blocker::LacksPaths { names: names.to_vec() };
    let needs_paths = spec_with(&[], &["cache", "data_root"]);
    assert_eq!(found_blockers(&needs_paths, &agent(Some(1), Some(&["cache", "data_root"]))), []);
    assert_eq!(found_blockers(&needs_paths, &agent(Some(1), Some(&["cache"]))), [lacks_paths(&["data_root"])]);
    assert_eq!(found_blockers(&needs_paths, &agent(Some(1), None)), [], "it does not report directories");
    assert_eq!(
        found_blockers(&needs_paths, &agent(None, None)),
        [lacks_paths(&["cache", "data_root"])],
        "an older agent has none"
    );
    let needs_files = spec_with(&["lycoris.json"], &[]);
    assert_eq!(found_blockers(&needs_files, &agent(Some(1), None)), []);
    assert_eq!(
        found_blockers(&needs_files, &agent(None, None)),
        [Blocker::LacksFiles { files: &["lycoris.json".to_owned()] }]
    );
}

#[test]
fn targets() {
    let remote = worker(1, &[80], 1);
    let local = Worker { local: true, ..remote.clone() };
    let fits = |target, worker| fits(&JobSpec { target, ..spec(Demand::default()) }, &idle_candidate(worker));
    assert!(fits(JobTarget::Auto, &remote) && fits(JobTarget::Auto, &local));
    assert!(fits(JobTarget::Worker, &remote) && !fits(JobTarget::Worker, &local));
    assert!(!fits(JobTarget::Local, &remote) && fits(JobTarget::Local, &local));
}

#[test]
fn remedies_of_blockers() {
    let other = job_id(1);
    let rows = [
        (Blocker::Connecting, Remedy::Wait),
        (Blocker::UnassignedRun { job: &other }, Remedy::Wait),
        (Blocker::Finishing, Remedy::Wait),
        (Blocker::AtCapacity { max_jobs: 1 }, Remedy::Wait),
        (Blocker::GpusBusy { wanted: 1, free: 0 }, Remedy::Wait),
        (Blocker::Reserved { job: &other }, Remedy::Wait),
        (Blocker::Draining, Remedy::FixWorker),
        (Blocker::GpusUnavailable { wanted: 1, left: 0, why: vec![] }, Remedy::FixWorker),
        (Blocker::LacksFiles { files: &[] }, Remedy::FixWorker),
        (Blocker::LacksPaths { names: vec![] }, Remedy::FixWorker),
        (Blocker::Offline, Remedy::FixWorker),
        (Blocker::NeverConnected, Remedy::FixWorker),
        (Blocker::Retired, Remedy::ChangeJob),
        (Blocker::WrongTarget { wanted: JobTarget::Local }, Remedy::ChangeJob),
        (Blocker::Label { key: "", wanted: "", found: None }, Remedy::ChangeJob),
        (Blocker::Accelerator { wanted: "", found: "" }, Remedy::ChangeJob),
        (Blocker::Gpus { wanted: 1, found: 0 }, Remedy::ChangeJob),
        (Blocker::Vram { wanted_gb: 1.0, gpus: 1, found_gb: None }, Remedy::ChangeJob),
    ];
    for (blocker, remedy) in rows {
        assert_eq!(blocker.remedy(), remedy, "{blocker:?}");
    }
    assert!(Remedy::Wait < Remedy::FixWorker && Remedy::FixWorker < Remedy::ChangeJob);
}

#[test]
fn offline_or_busy_worker_matches_and_unknown_does_not() {
    let matching = [Blocker::Draining, Blocker::Offline, Blocker::Finishing, Blocker::AtCapacity { max_jobs: 1 }];
    assert!(!matching.iter().any(Blocker::is_mismatch));
    let mismatches =
        [Blocker::NeverConnected, Blocker::CannotSelfStop, Blocker::LacksFiles { files: &[] }, Blocker::Retired];
    assert!(mismatches.iter().all(Blocker::is_mismatch));
}

#[test]
fn workers_with_capacity() {
    let host = worker(1, &[80, 80], 2);
    assert_eq!([0, 1, 2, 3].map(|jobs| has_capacity(&host, jobs)), [true, true, false, false]);
    let without_capacity = [
        host.clone().drained(NOW, None, None),
        host.clone().stream_closed(NOW, "s"),
        host.clone().went_offline(NOW, OfflineCause::HeartbeatTimeout),
        Worker { unassigned_run: Some(job_id(1)), ..host.clone() },
        with_unavailable_gpus(host.clone(), &[0, 1]),
        unseen_worker(1),
    ];
    assert!(without_capacity.iter().all(|worker| !has_capacity(worker, 0)));
    assert!(has_capacity(&with_unavailable_gpus(host.clone(), &[0]), 0) && has_capacity(&worker(2, &[], 1), 0));
    assert!(idle_candidate(&host).has_capacity() && !leased_candidate(&host, &[&[], &[]]).has_capacity());
}

prop_compose! {
    /// A random host: GPU sizes, maximum number of jobs, unavailable GPUs, allocated GPUs.
    fn any_host()(
        sizes in prop::collection::vec(prop_oneof![Just(0_u32), Just(24), Just(80)], 0..5),
        max_jobs in 1_u32..4,
        unavailable in prop::collection::vec(0_u32..5, 0..4),
        held in prop::collection::vec(0_usize..5, 0..3),
    ) -> (Worker, Vec<String>) {
        let held = held.into_iter().filter(|number| *number < sizes.len()).map(|number| format!("GPU-1-{number}"));
        (with_unavailable_gpus(worker(1, &sizes, max_jobs), &unavailable), held.collect())
    }
}

proptest! {
    #[test]
    fn job_without_blockers_gets_its_gpus(
        (worker, held) in any_host(),
        gpu_count in prop::option::of(1_u32..5),
        min_vram_gb in prop::option::of(prop_oneof![Just(20.0), Just(60.0)]),
    ) {
        let demand = Demand { gpu_count, min_vram_gb, ..Demand::default() };
        let candidate = Candidate::new(&worker, held.iter().map(|uuid| vec![uuid.as_str()]).collect());
        let fits = fits(&spec(demand.clone()), &candidate);
        prop_assert_eq!(fits, blockers(&spec(demand.clone()), &candidate).next().is_none());
        let granted = grant_gpus(&demand, &candidate);
        let max_jobs = worker.capability().map_or(0, |capability| capability.max_jobs as usize);
        let has_slot = candidate.held_gpus.len() < max_jobs;
        prop_assert_eq!(fits, has_slot && granted.is_some());
        prop_assert!(!fits || candidate.has_capacity(), "the planner considers only workers with capacity");
        let is_free = |uuid: &str| {
            let gpus = &worker.capability().expect("registered").gpus;
            let gpu = gpus.iter().find(|gpu| gpu.uuid == uuid).expect("a GPU of the worker");
            gpu.unavailable.is_none() && !held.iter().any(|held| held == uuid)
        };
        prop_assert!(granted.unwrap_or_default().into_iter().all(is_free));
    }
}
