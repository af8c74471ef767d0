//! Workers and jobs: what is written is read, and a failed guard writes nothing.

use std::cmp::Reverse;

use app::domain::capability::Capability;
use app::domain::gpu::{Gpu, GpuReport, MemoryKind, Unavailable, UnavailableReason};
use app::domain::ids::AttemptNumber;
use app::domain::job::{AttemptLoss, AttemptReport, Job, JobState, Lease};
use app::domain::job_status::JobStatus;
use app::domain::labels::Labels;
use app::domain::plan::urgency;
use app::domain::sandbox::{JobLimits, Sandbox, SandboxLevel};
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::{PreviousSecret, WorkerCredential};
use app::domain::worker::{OfflineCause, Worker, WorkerEdit, WorkerKind};

use super::{LEASE, NOW, TestStore, job, on_every_engine, worker};
use crate::store::workers::LastContact;
use crate::store::{StoreError, Tx};

on_every_engine!(
    workers_round_trip,
    token_is_valid_until_replaced,
    names_and_tokens_are_unique,
    worker_update_is_guarded,
    only_absent_workers_are_deleted,
    last_seen_is_flushed_in_batches,
    every_job_state_round_trips,
    job_update_is_guarded,
    queue_positions_match_planning,
    leases_are_found_by_worker,
    idempotency_key_is_known_until_swept,
);

const SILENT: AttemptLoss = AttemptLoss::WorkerOffline(OfflineCause::HeartbeatTimeout);

fn capability() -> Capability {
    Capability {
        gpus: vec![
            Gpu {
                index: 1,
                uuid: "GPU-1".to_owned(),
                name: "NVIDIA A100".to_owned(),
                vram_gb: Some(79.25),
                memory: Some(MemoryKind::Dedicated),
                ..Gpu::default()
            },
            Gpu { index: 2, uuid: "GPU-2".to_owned(), memory: Some(MemoryKind::Unified), ..Gpu::default() },
            Gpu { uuid: "MIG-1".to_owned(), part_of: Some("GPU-3".to_owned()), ..Gpu::default() },
        ],
        accelerator: "cuda".to_owned(),
        hostname: Some("höst".to_owned()),
        labels: Labels([("rack".to_owned(), "7".to_owned())].into()),
        agent_version: Some("0.1.0".to_owned()),
        protocol: Some(1),
        driver: Some("570.1".to_owned()),
        runtime: Some("13.0".to_owned()),
        install_id: Some("4f".to_owned()),
        paths: Some(vec!["data_root".to_owned()]),
        sandbox: Some(Sandbox {
            least: SandboxLevel::Files,
            most: SandboxLevel::Full,
            why_not_more: Some("no namespaces".to_owned()),
            limits: Some(JobLimits {
                memory_bytes: Some(1 << 36),
                processes: None,
                why_not: Some("no pids".to_owned()),
            }),
        }),
        tls_verify: Some(false),
        max_jobs: 2,
        unhealthy_reason: None,
    }
}

async fn reload(store: &TestStore, worker: &Worker) -> Worker {
    store.read().await.worker(&worker.id).await.expect("readable").expect("it exists").worker
}

async fn workers_round_trip(store: &TestStore) {
    let initial = worker(1);
    store.insert_worker(&initial, "digest").await.expect("new");
    let connecting = initial.clone().registered(Timestamp(NOW.0 + 1), capability(), WorkerKind::Persistent);
    let online = connecting.clone().stream_opened(Timestamp(NOW.0 + 2), "s").expect("registered");
    let lost = online.clone().stream_closed(Timestamp(NOW.0 + 3), "s");
    let [xid, python] = [(UnavailableReason::Quarantined, "XID 79: \"höst\""), (UnavailableReason::InUse, "")];
    let report = |uuid: &str, (reason, detail): (UnavailableReason, &str)| GpuReport {
        uuid: uuid.to_owned(),
        unavailable: Some(Unavailable { reason, detail: detail.to_owned() }),
    };
    let without_gpu = online.clone().gpus_reported(&[report("GPU-1", xid), report("MIG-1", python)]);
    let with_gpu = without_gpu.clone().gpus_reported(&[GpuReport { uuid: "GPU-1".to_owned(), unavailable: None }]);
    let full = with_gpu.clone().host_health_reported(Some("the disk of \"/höst\" is full".to_owned()));
    let drained =
        full.clone().drained(Timestamp(NOW.0 + 3), Some("driver update".to_owned()), Some(Timestamp(NOW.0 + 9)));
    let disconnected = drained.clone().went_offline(Timestamp(NOW.0 + 4), OfflineCause::Disconnected);
    let silent = connecting.clone().went_offline(Timestamp(NOW.0 + 5), OfflineCause::HeartbeatTimeout);
    let evicted = connecting.clone().went_offline(Timestamp(NOW.0 + 5), OfflineCause::TokenRotated);
    let with_lost_jobs = silent.clone().with_lost_jobs(vec![job(1).id, job(2).id]);
    let returned = with_lost_jobs.clone().registered(Timestamp(NOW.0 + 5), capability(), WorkerKind::Persistent);
    let mut before = initial.clone();
    assert_eq!(reload(store, &initial).await, initial);
    let retired = silent.clone().job_ended(Timestamp(NOW.0 + 6));
    let ephemeral = Worker { kind: Some(WorkerKind::Ephemeral), ..retired }.job_ended(Timestamp(NOW.0 + 7));
    let networks = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("a network")).to_vec();
    let restricted = ephemeral.clone().edited(WorkerEdit { networks: Some(networks), ..WorkerEdit::default() });
    let contended = restricted.clone().token_contended(Timestamp(NOW.0 + 8), "other");
    let resolved = contended.clone().token_rotated();
    let unassigned = Worker { unassigned_run: Some(job(1).id), lease_duration: Some(LEASE), ..resolved.clone() };
    let finishing = Worker { finishing_since: Some(Timestamp(NOW.0 + 9)), ..unassigned.clone() };
    for after in [
        connecting,
        online,
        lost,
        without_gpu,
        with_gpu,
        full,
        drained,
        disconnected,
        evicted,
        with_lost_jobs,
        returned,
        silent,
        ephemeral,
        restricted,
        contended,
        resolved,
        unassigned,
        finishing,
    ] {
        store.update_worker(&before, &after).await.expect("as it was read");
        assert_eq!(reload(store, &initial).await, after);
        before = after;
    }
}

async fn token_is_valid_until_replaced(store: &TestStore) {
    store.insert_worker(&worker(1), "digest").await.expect("new");
    let credential = async |digest: &'static str| {
        let stored = store.read().await.worker_by_token(digest).await.expect("readable");
        stored.map(|stored| WorkerCredential::clone(&stored.credential))
    };
    assert_eq!((credential("digest").await, credential("other").await), (Some(WorkerCredential::new("digest")), None));
    let old = Some(PreviousSecret { digest: "digest".to_owned(), expires_at: Timestamp(NOW.0 + 5) });
    let unused_ends_at = Some(Timestamp(NOW.0 + 5));
    let rotated = WorkerCredential {
        expires_at: Some(Timestamp(NOW.0 + 9)),
        expires_unused_at: unused_ends_at,
        previous: old,
        ..WorkerCredential::issued("next", NOW, "ada/ci")
    };
    let put = store.write({
        let rotated = rotated.clone();
        move |tx| {
            let rotated = rotated.clone();
            Box::pin(async move { tx.put_credential(&worker(1).id, &rotated).await })
        }
    });
    put.await.expect("it exists");
    assert_eq!((credential("digest").await, credential("next").await), (Some(rotated.clone()), Some(rotated)));
    let rotate = store
        .write(|tx| Box::pin(async move { tx.put_credential(&worker(1).id, &WorkerCredential::new("new")).await }));
    rotate.await.expect("it exists");
    assert_eq!((credential("digest").await, credential("next").await), (None, None));
    assert_eq!(credential("new").await, Some(WorkerCredential::new("new")));
}

async fn names_and_tokens_are_unique(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    let same_name = Worker { name: "worker-1".to_owned(), ..worker(2) };
    assert_eq!(store.insert_worker(&same_name, "two").await, Err(StoreError::Conflict));
    assert_eq!(store.insert_worker(&worker(3), "one").await, Err(StoreError::Conflict));
    assert_eq!(store.read().await.workers().await.map(|all| all.len()), Ok(1));
}

async fn worker_update_is_guarded(store: &TestStore) {
    let initial = worker(1);
    store.insert_worker(&initial, "digest").await.expect("new");
    let registered = initial.clone().registered(NOW, capability(), WorkerKind::Ephemeral);
    store.update_worker(&initial, &registered).await.expect("as it was read");
    let stale = initial.clone().drained(NOW, None, None);
    assert_eq!(store.update_worker(&initial, &stale).await, Err(StoreError::Conflict));
    assert_eq!(reload(store, &initial).await, registered);
}

async fn only_absent_workers_are_deleted(store: &TestStore) {
    let registered = |n| worker(n).registered(NOW, capability(), WorkerKind::Ephemeral);
    let online = |n| registered(n).stream_opened(NOW, "s").expect("registered");
    let lost = online(3).stream_closed(NOW, "s");
    let offline = online(4).went_offline(NOW, OfflineCause::HeartbeatTimeout);
    let rejected = || Err(StoreError::Conflict);
    for (n, digest, after, expected) in [
        (1, "one", registered(1), rejected()),
        (2, "two", online(2), rejected()),
        (3, "three", lost, Ok(())),
        (4, "four", offline, Ok(())),
    ] {
        let initial = worker(n);
        store.insert_worker(&initial, digest).await.expect("new");
        store.update_worker(&initial, &after).await.expect("as it was read");
        let id = initial.id.clone();
        let deleted = store.write(move |tx| {
            let id = id.clone();
            Box::pin(async move { tx.delete_worker(&id).await })
        });
        assert_eq!(deleted.await, expected, "{after:?}");
        assert_eq!(
            store.read().await.worker(&initial.id).await.map(|deleted_worker| deleted_worker.is_none()),
            Ok(expected.is_ok())
        );
    }
}

async fn last_seen_is_flushed_in_batches(store: &TestStore) {
    store.insert_worker(&worker(1), "one").await.expect("new");
    store.insert_worker(&worker(2), "two").await.expect("new");
    let contact = |at, from: Option<&str>| LastContact {
        at: Timestamp(at),
        from: from.map(|from| from.parse().expect("an address")),
    };
    let all = [
        (worker(1).id, contact(5, Some("2001:db8::1"))),
        (worker(2).id, contact(6, None)),
        (worker(9).id, contact(7, Some("192.0.2.1"))),
    ];
    let flush = store.write(move |tx| {
        let all = all.clone();
        Box::pin(async move { tx.flush_last_seen(&all).await })
    });
    flush.await.expect("a deleted one does not matter");
    let times: Vec<_> = store.read().await.workers().await.expect("readable").iter().map(|w| w.last_seen).collect();
    assert_eq!(times, [Some(contact(5, Some("2001:db8::1"))), Some(contact(6, None))]);
}

/// Jobs with the transitions that lead to them: each way in which an attempt ends.
fn job_lifecycles() -> Vec<Vec<Job>> {
    let now = NOW;
    let queued = job(1);
    let offered =
        queued.clone().offered(now, worker(1).id, vec!["GPU-1".to_owned()], Timestamp(now.0 + 9)).expect("waits");
    let report =
        |job: &Job, report| job.clone().reported(now, &worker(1).id, AttemptNumber(1), report).expect("current");
    let starting = report(&offered, AttemptReport::Starting);
    let running = report(&starting, AttemptReport::Running);
    let cancelling = running.clone().cancelled(now).expect("runs");
    let failed_report = || AttemptReport::Failed { exit_code: Some(-9), error: "out of memory".to_owned() };
    let minute_later = Timestamp(now.0 + 60_000);
    let over_time = running.clone().reported(minute_later, &worker(1).id, AttemptNumber(1), AttemptReport::Cancelled);
    let over_time = over_time.expect("current");
    let mut final_failure = running.clone();
    final_failure.spec.retry_on_failure = false;
    let mut exhausted = running.clone();
    exhausted.losses = 3;
    vec![
        vec![
            queued.clone(),
            offered.clone(),
            starting.clone(),
            running.clone(),
            report(&running, AttemptReport::Completed),
        ],
        vec![
            queued.clone(),
            offered.clone(),
            running.clone(),
            cancelling.clone(),
            report(&cancelling, AttemptReport::Cancelled),
        ],
        vec![queued.clone(), offered.clone(), running.clone(), over_time],
        vec![queued.clone(), queued.clone().cancelled(now).expect("waits")],
        vec![queued.clone(), offered.clone(), offered.clone().offer_expired(Timestamp(i64::MAX))],
        vec![queued.clone(), offered.clone(), running.clone(), report(&running, failed_report())],
        vec![
            queued.clone(),
            offered.clone(),
            running.clone(),
            running.clone().lost(now, AttemptLoss::UnknownToAgent, LEASE),
        ],
        vec![
            queued.clone(),
            offered.clone(),
            running.clone(),
            running.clone().lost(now, AttemptLoss::WorkerOffline(OfflineCause::Disconnected), LEASE),
        ],
        vec![
            queued.clone(),
            offered.clone(),
            running.clone(),
            report(&running, AttemptReport::Requeue { error: "spot".to_owned() }),
        ],
        vec![queued.clone(), queued.clone().prioritized(50).expect("waits")],
        vec![queued.clone(), offered.clone(), running.clone(), report(&running, AttemptReport::Evicted)],
        vec![
            queued.clone(),
            offered.clone(),
            running.clone(),
            report(&running, AttemptReport::Preempted { by: job(7).id, lost: Millis(5), step: Some(500) }),
        ],
        vec![final_failure.clone(), report(&final_failure, failed_report())],
        vec![exhausted.clone(), report(&exhausted, failed_report())],
        vec![running.clone(), running.clone().lost(now, AttemptLoss::StoppedByAgent, LEASE)],
        vec![running.clone(), running.lost(now, AttemptLoss::NeverStarted, LEASE)],
        vec![cancelling.clone(), cancelling.lost(now, SILENT, LEASE)],
        vec![exhausted.clone(), exhausted.lost(now, SILENT, LEASE)],
    ]
}

/// A job in each status, written over a queued one.
fn jobs_in_each_status() -> impl Iterator<Item = Vec<Job>> {
    JobStatus::ALL.into_iter().map(|status| {
        let lease = Lease {
            worker: worker(1).id,
            attempt: AttemptNumber(1),
            gpus: vec!["GPU-1".to_owned()],
            since: Timestamp(NOW.0 - 5),
        };
        let state = JobState::example(status, lease, NOW);
        vec![job(1), Job { attempt: AttemptNumber(1), state, ..job(1) }]
    })
}

async fn every_job_state_round_trips(store: &TestStore) {
    for (n, mut lifecycle) in (10..).zip(job_lifecycles().into_iter().chain(jobs_in_each_status())) {
        for step in &mut lifecycle {
            step.id = job(n).id;
        }
        // A life cycle that begins in the middle is written over a row in the state before.
        let initial = Job { spec: lifecycle[0].spec.clone(), ..job(n) };
        store.insert_job(&initial).await;
        store.update_job(&initial, &lifecycle[0]).await.expect("as it was read");
        for pair in lifecycle.windows(2) {
            store.update_job(&pair[0], &pair[1]).await.expect("as it was read");
            let read = store.read().await.job(&pair[1].id).await.expect("readable").expect("it exists");
            assert_eq!(read, Job { submitted_at: initial.submitted_at, ..pair[1].clone() });
        }
    }
}

async fn job_update_is_guarded(store: &TestStore) {
    let queued = job(1);
    store.insert_job(&queued).await;
    let offered = queued.clone().offered(NOW, worker(1).id, vec![], NOW).expect("waits");
    store.update_job(&queued, &offered).await.expect("as it was read");
    let other_offer = queued.clone().offered(NOW, worker(2).id, vec![], NOW).expect("waits");
    assert_eq!(store.update_job(&queued, &other_offer).await, Err(StoreError::Conflict));
    let other_attempt = Job { attempt: AttemptNumber(7), ..offered.clone() };
    assert_eq!(store.update_job(&other_attempt, &other_offer).await, Err(StoreError::Conflict));
    assert_eq!(store.read().await.job(&queued.id).await, Ok(Some(offered)));
}

async fn queue_positions_match_planning(store: &TestStore) {
    let with_priority = |n: u8, priority| Job { priority, ..job(n) };
    let jobs =
        [with_priority(1, 5), with_priority(2, 20), with_priority(3, 20), with_priority(4, 50), with_priority(5, 0)];
    for job in &jobs {
        store.insert_job(job).await;
    }
    let raised = jobs[4].clone().prioritized(50).expect("waits");
    store.update_job(&jobs[4], &raised).await.expect("as it was read");
    let mut waiting = [jobs[0].clone(), jobs[1].clone(), jobs[2].clone(), jobs[3].clone(), raised];
    waiting.sort_by_key(|job| (Reverse(urgency(job)), job.submitted_at, job.id.clone()));
    for (position, job) in (1..).zip(&waiting) {
        let mut tx = store.recent().await;
        let position_of = async |tx: &mut dyn Tx| {
            let positions = tx.with_state(|state| state.queue_positions(&[job], NOW)).await.expect("readable");
            positions.get(&job.id).copied()
        };
        let by_memory = position_of(&mut *tx).await;
        tx.setting("begins").await.expect("readable");
        assert_eq!((by_memory, position_of(&mut *tx).await), (Some(position), Some(position)), "{}", job.id);
    }
}

async fn leases_are_found_by_worker(store: &TestStore) {
    for n in [1, 2, 3] {
        store.insert_job(&job(n)).await;
    }
    let offer = |n: u8, to: u8| job(n).offered(NOW, worker(to).id, vec![], NOW).expect("waits");
    store.update_job(&job(1), &offer(1, 1)).await.expect("as it was read");
    store.update_job(&job(2), &offer(2, 2)).await.expect("as it was read");
    let lost = offer(3, 1).lost(NOW, SILENT, LEASE);
    store.update_job(&job(3), &offer(3, 1)).await.expect("as it was read");
    store.update_job(&offer(3, 1), &lost).await.expect("as it was read");
    let mut tx = store.read().await;
    assert_eq!(tx.leased_jobs(None).await, Ok(vec![offer(1, 1), offer(2, 2)]));
    assert_eq!(tx.leased_jobs(Some(&worker(1).id)).await, Ok(vec![offer(1, 1)]));
    assert_eq!(tx.leased_jobs(Some(&worker(9).id)).await, Ok(vec![]));
}

async fn idempotency_key_is_known_until_swept(store: &TestStore) {
    store.insert_job(&job(1)).await;
    let insert =
        || store.write(|tx| Box::pin(async move { tx.insert_idempotency_key("ada", "k", "digest", &job(1)).await }));
    insert().await.expect("new");
    assert_eq!(insert().await, Err(StoreError::Conflict));
    let stored_key = async |actor: &str| store.read().await.idempotency_key(actor, "k").await.expect("readable");
    assert_eq!(stored_key("ada").await, Some((job(1).id, "digest".to_owned())));
    assert_eq!(stored_key("bob").await, None);
    let submitted = job(1).submitted_at;
    let sweep = |before| store.write(move |tx| Box::pin(async move { tx.sweep_idempotency_keys(before).await }));
    sweep(submitted).await.expect("written");
    assert!(stored_key("ada").await.is_some());
    sweep(Timestamp(submitted.0 + 1)).await.expect("written");
    assert_eq!(stored_key("ada").await, None);
}
