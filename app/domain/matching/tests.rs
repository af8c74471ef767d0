//! Every rule with what it lets through and what it stops.

use proptest::prelude::*;

use super::*;
use crate::domain::fixtures::{NOW, job_id, label, spec, unseen, wants, withheld, withholding, worker};
use crate::domain::sandbox::{Sandbox, SandboxLevel};
use crate::domain::worker::OfflineCause;

fn found(demand: Demand, worker: &Worker) -> Vec<Blocker> {
    blockers(&spec(demand), &free(worker)).collect()
}

fn free(worker: &Worker) -> Candidate<'_> {
    Candidate::new(worker, Vec::new())
}

fn holding<'w>(worker: &'w Worker, held: &[&[&'w str]]) -> Candidate<'w> {
    Candidate::new(worker, held.iter().map(|gpus| gpus.to_vec()).collect())
}

fn memory(gb: f64) -> Demand {
    Demand { min_vram_gb: Some(gb), ..Demand::default() }
}

fn kind_of(accelerator: &str) -> Demand {
    Demand { accelerator: Some(accelerator.to_owned()), ..Demand::default() }
}

#[test]
fn what_a_job_may_ask_for() {
    let idle = Worker { labels: label("team", "nlp"), ..worker(1, &[80, 40, 0], 1) };
    let vram = |wanted_gb, gpus, found_gb| vec![Blocker::Vram { wanted_gb, gpus, found_gb }];
    let team = |wanted: &str| Demand { labels: label("team", wanted), ..Demand::default() };
    let rows = [
        (Demand::default(), vec![]),
        (team("n*"), vec![]),
        (
            team("vision"),
            vec![Blocker::Label { key: "team".to_owned(), wanted: "vision".to_owned(), found: Some("nlp".to_owned()) }],
        ),
        (
            Demand { labels: label("rack", "*"), ..Demand::default() },
            vec![Blocker::Label { key: "rack".to_owned(), wanted: "*".to_owned(), found: None }],
        ),
        (wants(3), vec![]),
        (wants(4), vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (memory(80.0), vec![]),
        (memory(80.5), vram(80.5, 1, Some(80.0))),
        (Demand { gpu_count: Some(2), ..memory(40.0) }, vec![]),
        (Demand { gpu_count: Some(2), ..memory(41.0) }, vram(41.0, 2, Some(40.0))),
        (Demand { gpu_count: Some(3), ..memory(40.0) }, vram(40.0, 3, None)),
        (Demand { gpu_count: Some(4), ..memory(40.0) }, vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (kind_of("cuda"), vec![]),
        (kind_of("rocm"), vec![Blocker::Accelerator { wanted: "rocm".to_owned(), found: "cuda".to_owned() }]),
    ];
    for (demand, expected) in rows {
        assert_eq!(found(demand.clone(), &idle), expected, "{demand:?}");
    }
}

#[test]
fn a_worker_confines_as_closely_as_a_job_asks() {
    use SandboxLevel::{Files, Full, None as Not};
    let wants = |sandbox| Demand { sandbox, ..Demand::default() };
    let most = |most: Option<SandboxLevel>| {
        let mut host = worker(1, &[80], 1);
        let (Link::Online { capability, .. } | Link::Connecting { capability, .. }) = &mut host.link else {
            panic!("it is there")
        };
        let why_not_more = Some("no namespaces".to_owned());
        capability.sandbox = most.map(|most| Sandbox { most, why_not_more, ..Sandbox::default() });
        host
    };
    for wanted in SandboxLevel::ALL {
        for (has, found_level) in [(None, Not), (Some(Not), Not), (Some(Files), Files), (Some(Full), Full)] {
            let why = has.map(|_| "no namespaces".to_owned());
            let blockers = (wanted > found_level).then_some(Blocker::Sandbox { wanted, found: found_level, why });
            assert_eq!(found(wants(wanted), &most(has)), Vec::from_iter(blockers), "{wanted:?} of {has:?}");
        }
    }
}

#[test]
fn a_host_without_gpus_is_one_slot() {
    let host = worker(1, &[], 1);
    assert_eq!(found(Demand::default(), &host), []);
    assert_eq!(found(kind_of("cpu"), &host), []);
    assert_eq!(found(wants(1), &host), [Blocker::Gpus { wanted: 1, found: 0 }]);
    assert_eq!(found(memory(1.0), &host), [Blocker::Gpus { wanted: 1, found: 0 }]);
    assert_eq!(grant(&Demand::default(), &free(&host)), Some(vec![]));
}

#[test]
fn what_a_worker_may_be_like() {
    let idle = || worker(1, &[80], 1);
    let rows = [
        (idle().drained(NOW, None, None), vec![Blocker::Draining]),
        (Worker { spent: Some(NOW), ..idle() }, vec![Blocker::Spent]),
        (idle().stopped_listening(NOW, "s"), vec![Blocker::Connecting]),
        (idle().gone(NOW, OfflineCause::Silent), vec![Blocker::Offline]),
        (Worker { astray: Some(job_id(1)), ..idle() }, vec![Blocker::Astray { job: job_id(1) }]),
        (Worker { finishing: Some(NOW), ..idle() }, vec![Blocker::Finishing]),
        (unseen(1), vec![Blocker::NeverConnected]),
        (unseen(1).drained(NOW, None, None), vec![Blocker::NeverConnected, Blocker::Draining]),
    ];
    for (worker, expected) in rows {
        assert_eq!(found(Demand::default(), &worker), expected, "{worker:?}");
    }
    // Of a worker that was never seen nobody knows what it has.
    assert_eq!(
        found(Demand { gpu_count: Some(8), accelerator: Some("cuda".to_owned()), ..memory(80.0) }, &unseen(1)),
        [Blocker::NeverConnected]
    );
    // But for the labels that an admin gave it.
    let vision = Worker { labels: label("team", "vision"), ..unseen(1) };
    let demand = Demand { labels: label("team", "nlp"), ..wants(8) };
    let other = Blocker::Label { key: "team".to_owned(), wanted: "nlp".to_owned(), found: Some("vision".to_owned()) };
    assert_eq!(found(demand, &vision), [other, Blocker::NeverConnected]);
}

#[test]
fn a_host_that_is_unfit_gets_nothing_with_gpus_or_without() {
    let why = "the disk is full";
    for host in [worker(1, &[80], 2), worker(1, &[], 2)] {
        let unfit = host.clone().fitness_said(Some(why.to_owned()));
        assert_eq!(found(Demand::default(), &unfit), [Blocker::Unfit { why: why.to_owned() }]);
        assert!(!has_room(&unfit, 0) && has_room(&host, 0));
        assert_eq!(found(Demand::default(), &unfit.clone().gone(NOW, OfflineCause::Silent)), [Blocker::Offline]);
        assert_eq!(unfit.fitness_said(None), host);
    }
}

#[test]
fn slots_and_gpus_that_others_hold() {
    let two_jobs = worker(1, &[80, 80, 40], 2);
    let blocked = |demand: Demand, held: &[&[&str]]| blockers(&spec(demand), &holding(&two_jobs, held)).next();
    assert_eq!(blocked(wants(2), &[&["GPU-1-0"]]), None);
    assert_eq!(blocked(wants(3), &[&["GPU-1-0"]]), Some(Blocker::GpusBusy { wanted: 3, free: 2 }));
    assert_eq!(blocked(memory(80.0), &[&["GPU-1-0", "GPU-1-1"]]), Some(Blocker::GpusBusy { wanted: 1, free: 0 }));
    assert_eq!(
        blocked(Demand::default(), &[&["GPU-1-0", "GPU-1-1", "GPU-1-2"]]),
        Some(Blocker::GpusBusy { wanted: 1, free: 0 })
    );
    assert_eq!(blocked(wants(1), &[&["GPU-1-0"], &["GPU-1-1"]]), Some(Blocker::Occupied { max_jobs: 2 }));
    let one_job = worker(2, &[80], 1);
    assert_eq!(
        blockers(&spec(Demand::default()), &holding(&one_job, &[&[]])).next(),
        Some(Blocker::Occupied { max_jobs: 1 })
    );
}

#[test]
fn gpus_that_their_agent_withholds() {
    let host = |max_jobs, numbers: &[u32]| withholding(worker(1, &[80, 80, 40], max_jobs), numbers);
    let held = |wanted, left, numbers: &[u32]| Blocker::GpusWithheld {
        wanted,
        left,
        why: numbers.iter().map(|number| (*number, withheld("XID 79"))).collect(),
    };
    let rows = [
        (host(3, &[0]), wants(2), vec![]),
        (host(3, &[0]), wants(3), vec![held(3, 2, &[0])]),
        (host(3, &[0, 1, 2]), Demand::default(), vec![held(1, 0, &[0, 1, 2])]),
        (host(3, &[0, 1]), memory(60.0), vec![held(1, 0, &[0, 1])]),
        (host(3, &[2]), memory(60.0), vec![]),
        (host(1, &[0, 2]), Demand::default(), vec![]),
        (host(3, &[0]), wants(4), vec![Blocker::Gpus { wanted: 4, found: 3 }]),
        (host(3, &[0, 1, 2]).drained(NOW, None, None), wants(1), vec![Blocker::Draining, held(1, 0, &[0, 1, 2])]),
        (host(3, &[0, 1, 2]).stopped_listening(NOW, "s"), wants(1), vec![held(1, 0, &[0, 1, 2]), Blocker::Connecting]),
        (host(3, &[0, 1, 2]).gone(NOW, OfflineCause::Silent), wants(1), vec![Blocker::Offline]),
    ];
    for (n, (worker, demand, expected)) in rows.into_iter().enumerate() {
        assert_eq!(found(demand, &worker), expected, "row {n}");
    }
    // What is with other jobs comes back by itself; what is withheld does not.
    let some = host(3, &[0]);
    let blocked = |demand: Demand, held: &[&[&str]]| blockers(&spec(demand), &holding(&some, held)).collect::<Vec<_>>();
    assert_eq!(blocked(wants(2), &[&["GPU-1-1"]]), [Blocker::GpusBusy { wanted: 2, free: 1 }]);
    assert_eq!(blocked(wants(3), &[&["GPU-1-1"]]), [held(3, 2, &[0])]);
    assert_eq!(blocked(wants(2), &[&["GPU-1-0"]]), [], "a job keeps what it has, and takes nothing else");
}

#[test]
fn what_is_granted() {
    fn granted<'w>(worker: &'w Worker, demand: &Demand, held: &[&[&'w str]]) -> Option<Vec<&'w str>> {
        grant(demand, &holding(worker, held))
    }
    let uuids = |list: &[&'static str]| Some(list.to_vec());
    let whole = worker(1, &[80, 40], 1);
    assert_eq!(granted(&whole, &Demand::default(), &[]), uuids(&["GPU-1-0", "GPU-1-1"]));
    assert_eq!(granted(&whole, &wants(1), &[]), uuids(&["GPU-1-0", "GPU-1-1"]), "one job has the whole host");
    assert_eq!(granted(&whole, &memory(60.0), &[]), uuids(&["GPU-1-0"]), "less what would not do");
    let shared = worker(1, &[80, 40, 80, 24], 4);
    assert_eq!(granted(&shared, &Demand::default(), &[]), uuids(&["GPU-1-3"]), "one, the smallest");
    assert_eq!(granted(&shared, &memory(30.0), &[]), uuids(&["GPU-1-1"]));
    assert_eq!(granted(&shared, &wants(2), &[]), uuids(&["GPU-1-0", "GPU-1-2"]), "of one model");
    assert_eq!(granted(&shared, &wants(2), &[&["GPU-1-2"]]), uuids(&["GPU-1-3", "GPU-1-1"]), "else the smallest");
    assert_eq!(granted(&shared, &wants(4), &[]), uuids(&["GPU-1-3", "GPU-1-1", "GPU-1-0", "GPU-1-2"]));
    assert_eq!(granted(&shared, &wants(4), &[&["GPU-1-2"]]), None);
    assert_eq!(granted(&unseen(1), &wants(4), &[]), Some(vec![]));
    let broken = withholding(shared, &[0, 3]);
    assert_eq!(granted(&broken, &Demand::default(), &[]), uuids(&["GPU-1-1"]), "not what is withheld");
    assert_eq!(granted(&broken, &wants(3), &[]), None);
    assert_eq!(granted(&withholding(whole, &[1]), &Demand::default(), &[]), uuids(&["GPU-1-0"]), "the host's rest");
}

#[test]
fn what_a_configuration_needs_of_a_host() {
    let needs = |files: &[&str], paths: &[&str]| Spec {
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        paths: paths.iter().map(|name| (*name).to_owned()).collect(),
        ..spec(Demand::default())
    };
    let agent = |protocol, paths: Option<&[&str]>| {
        let mut host = worker(1, &[80], 1);
        if let Link::Online { capability, .. } = &mut host.link {
            capability.protocol = protocol;
            capability.paths = paths.map(|paths| paths.iter().map(|name| (*name).to_owned()).collect());
        }
        host
    };
    let found = |spec: &Spec, host: &Worker| -> Vec<Blocker> { blockers(spec, &free(host)).collect() };
    let lacks = |names: &[&str]| Blocker::LacksPaths { names: names.iter().map(|name| (*name).to_owned()).collect() };
    let data = needs(&[], &["cache", "data_root"]);
    assert_eq!(found(&data, &agent(Some(1), Some(&["cache", "data_root"]))), []);
    assert_eq!(found(&data, &agent(Some(1), Some(&["cache"]))), [lacks(&["data_root"])]);
    assert_eq!(found(&data, &agent(Some(1), None)), [], "it does not say");
    assert_eq!(found(&data, &agent(None, None)), [lacks(&["cache", "data_root"])], "an older one has none");
    let more = needs(&["lycoris.json"], &[]);
    assert_eq!(found(&more, &agent(Some(1), None)), []);
    assert_eq!(found(&more, &agent(None, None)), [Blocker::LacksFiles { files: vec!["lycoris.json".to_owned()] }]);
}

#[test]
fn targets() {
    let remote = worker(1, &[80], 1);
    let local = Worker { local: true, ..remote.clone() };
    let fits = |target, worker| fits(&Spec { target, ..spec(Demand::default()) }, &free(worker));
    assert!(fits(Target::Auto, &remote) && fits(Target::Auto, &local));
    assert!(fits(Target::Worker, &remote) && !fits(Target::Worker, &local));
    assert!(!fits(Target::Local, &remote) && fits(Target::Local, &local));
}

#[test]
fn what_helps() {
    let rows = [
        (Blocker::Connecting, Remedy::Time),
        (Blocker::Astray { job: job_id(1) }, Remedy::Time),
        (Blocker::Finishing, Remedy::Time),
        (Blocker::Occupied { max_jobs: 1 }, Remedy::Time),
        (Blocker::GpusBusy { wanted: 1, free: 0 }, Remedy::Time),
        (Blocker::Reserved { job: job_id(1) }, Remedy::Time),
        (Blocker::Draining, Remedy::Worker),
        (Blocker::GpusWithheld { wanted: 1, left: 0, why: vec![] }, Remedy::Worker),
        (Blocker::LacksFiles { files: vec![] }, Remedy::Worker),
        (Blocker::LacksPaths { names: vec![] }, Remedy::Worker),
        (Blocker::Offline, Remedy::Worker),
        (Blocker::NeverConnected, Remedy::Worker),
        (Blocker::Spent, Remedy::Demand),
        (Blocker::WrongTarget { wanted: Target::Local }, Remedy::Demand),
        (Blocker::Label { key: String::new(), wanted: String::new(), found: None }, Remedy::Demand),
        (Blocker::Accelerator { wanted: String::new(), found: String::new() }, Remedy::Demand),
        (Blocker::Gpus { wanted: 1, found: 0 }, Remedy::Demand),
        (Blocker::Vram { wanted_gb: 1.0, gpus: 1, found_gb: None }, Remedy::Demand),
    ];
    for (blocker, remedy) in rows {
        assert_eq!(blocker.remedy(), remedy, "{blocker:?}");
    }
    assert!(Remedy::Time < Remedy::Worker && Remedy::Worker < Remedy::Demand);
}

#[test]
fn who_is_away_or_busy_matches_and_who_is_not_known_to_do_does_not() {
    let matching = [Blocker::Draining, Blocker::Offline, Blocker::Finishing, Blocker::Occupied { max_jobs: 1 }];
    assert!(!matching.iter().any(Blocker::is_mismatch));
    let lasting = [Blocker::NeverConnected, Blocker::CannotStop, Blocker::LacksFiles { files: vec![] }, Blocker::Spent];
    assert!(lasting.iter().all(Blocker::is_mismatch));
}

#[test]
fn who_has_room() {
    let host = worker(1, &[80, 80], 2);
    assert_eq!([0, 1, 2, 3].map(|jobs| has_room(&host, jobs)), [true, true, false, false]);
    let away = [
        host.clone().drained(NOW, None, None),
        host.clone().stopped_listening(NOW, "s"),
        host.clone().gone(NOW, OfflineCause::Silent),
        Worker { astray: Some(job_id(1)), ..host.clone() },
        withholding(host.clone(), &[0, 1]),
        unseen(1),
    ];
    assert!(away.iter().all(|worker| !has_room(worker, 0)));
    assert!(has_room(&withholding(host.clone(), &[0]), 0) && has_room(&worker(2, &[], 1), 0));
    assert!(free(&host).has_room() && !holding(&host, &[&[], &[]]).has_room());
}

prop_compose! {
    /// A host as a planner may meet it: sizes of its GPUs, how many jobs it takes, what is withheld, what is held.
    fn any_host()(
        sizes in prop::collection::vec(prop_oneof![Just(0_u32), Just(24), Just(80)], 0..5),
        max_jobs in 1_u32..4,
        withheld in prop::collection::vec(0_u32..5, 0..4),
        held in prop::collection::vec(0_usize..5, 0..3),
    ) -> (Worker, Vec<String>) {
        let held = held.into_iter().filter(|number| *number < sizes.len()).map(|number| format!("GPU-1-{number}"));
        (withholding(worker(1, &sizes, max_jobs), &withheld), held.collect())
    }
}

proptest! {
    #[test]
    fn a_job_fits_if_nothing_is_in_the_way_and_then_it_is_granted_what_it_takes(
        (worker, held) in any_host(),
        gpu_count in prop::option::of(1_u32..5),
        min_vram_gb in prop::option::of(prop_oneof![Just(20.0), Just(60.0)]),
    ) {
        let demand = Demand { gpu_count, min_vram_gb, ..Demand::default() };
        let candidate = Candidate::new(&worker, held.iter().map(|uuid| vec![uuid.as_str()]).collect());
        let fits = fits(&spec(demand.clone()), &candidate);
        prop_assert_eq!(fits, blockers(&spec(demand.clone()), &candidate).next().is_none());
        let granted = grant(&demand, &candidate);
        let slot = candidate.held.len() < worker.capability().map_or(0, |capability| capability.max_jobs as usize);
        prop_assert_eq!(fits, slot && granted.is_some());
        prop_assert!(!fits || candidate.has_room(), "the planner looks at those with room only");
        let of_any_use = |uuid: &str| {
            let gpus = &worker.capability().expect("registered").gpus;
            let gpu = gpus.iter().find(|gpu| gpu.uuid == uuid).expect("one of its own");
            gpu.withheld.is_none() && !held.iter().any(|held| held == uuid)
        };
        prop_assert!(granted.unwrap_or_default().into_iter().all(of_any_use));
    }
}
