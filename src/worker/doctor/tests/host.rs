use app::protocol::agents::Gpu;

use super::*;
use crate::worker::doctor::diagnostic::DiagnosticLevel::{self, Fail, Ok as Well, Warn};

fn good_disk() -> DiskFacts {
    DiskFacts {
        dir: "/var/lib/w".into(),
        existing_dir: "/var/lib/w".into(),
        writable: Ok(()),
        free_bytes: Some(100 * GIB),
        min_free_bytes: 10 * GIB,
        free_inodes: Some(1_000),
        can_punch_holes: Some(true),
        is_locked: false,
    }
}

/// Asserts the levels, and that one of the lines contains the words.
fn assert_lines(lines: &[Diagnostic], verdicts: &[DiagnosticLevel], words: &str) {
    assert_eq!(lines.iter().map(|line| line.verdict).collect::<Vec<_>>(), verdicts, "{lines:?}");
    assert!(lines.iter().any(|line| line.render(false).contains(words)), "{words}: {lines:?}");
}

#[test]
fn disk_facts_are_evaluated() {
    let cases: [(DiskFacts, &[DiagnosticLevel], &str); 11] = [
        (good_disk(), &[Well, Well], "100.0 GiB free"),
        (
            DiskFacts { existing_dir: "/var/lib".into(), can_punch_holes: None, ..good_disk() },
            &[Well, Well],
            "can be created",
        ),
        (
            DiskFacts { writable: Err("No space left on device".to_owned()), ..good_disk() },
            &[Fail, Well],
            "No space left",
        ),
        (DiskFacts { free_bytes: Some(GIB - 1), ..good_disk() }, &[Well, Fail], "1023 MiB free"),
        (DiskFacts { free_bytes: Some(10 * GIB), ..good_disk() }, &[Well, Warn], "checkpoints"),
        (
            DiskFacts { free_bytes: Some(9 * GIB), ..good_disk() },
            &[Well, Fail],
            "9.0 GiB free, but --keep-free is 10.0 GiB",
        ),
        (DiskFacts { free_bytes: Some(GIB), min_free_bytes: 0, ..good_disk() }, &[Well, Warn], "checkpoints"),
        (DiskFacts { free_bytes: None, ..good_disk() }, &[Well], "is writable"),
        (DiskFacts { free_inodes: Some(0), ..good_disk() }, &[Well, Well, Fail], "no free inodes"),
        (DiskFacts { can_punch_holes: Some(false), ..good_disk() }, &[Well, Well, Warn], "punch holes"),
        (DiskFacts { is_locked: true, ..good_disk() }, &[Well, Well, Warn], "an agent uses this work directory"),
    ];
    for (found, verdicts, words) in cases {
        assert_lines(&check_disk(&found), verdicts, words);
    }
}

#[test]
fn gpu_and_driver_facts_are_evaluated() {
    let gpu = Gpu { name: "A100".to_owned(), vram_gb: Some(80.0), ..Gpu::default() };
    let (driver, accelerator) = (Some("550.1".to_owned()), "cuda".to_owned());
    let with_gpu = Hardware { gpus: vec![gpu], driver, accelerator, ..Hardware::default() };
    let without_gpu = Hardware { accelerator: "cpu".to_owned(), ..Hardware::default() };
    assert_lines(&[check_gpus(&with_gpu, Some("550.1"))], &[Well], "cuda, A100 (80 GB), driver 550.1");
    assert_lines(&[check_gpus(&without_gpu, None)], &[Warn], "--gpu-count");
    assert_lines(&[check_gpus(&without_gpu, Some("550.1"))], &[Fail], "--gpus all");
}

#[test]
fn trainer_facts_are_evaluated() {
    let found = |missing, accelerate| {
        let command = ["python3", "-m", "simpletuner.train"].map(str::to_owned).to_vec();
        check_trainer(&TrainerFacts { command, missing, accelerate })
    };
    assert_lines(&found(None, None), &[Well], "found");
    assert_lines(&found(Some(MissingTrainer::Program("python3".to_owned())), None), &[Fail], "the program \"python3\"");
    assert_lines(&found(Some(MissingTrainer::Module("a.b".to_owned())), None), &[Fail], "the module \"a.b\"");
    assert_lines(&found(None, Some(true)), &[Well, Well], "several GPUs");
    assert_lines(&found(None, Some(false)), &[Well, Warn], "install accelerate");
}

#[test]
fn inherited_limits_are_evaluated() {
    assert_lines(&[check_cgroup(&CgroupFacts::Delegated("/g".into()))], &[Well], "/g is delegated");
    assert_lines(&[check_cgroup(&CgroupFacts::NotDelegated("/g".into()))], &[Warn], "Delegate=yes");
    assert_lines(&[check_cgroup(&CgroupFacts::Absent)], &[Warn], "cgroup v2 is not available");
    let limits = JobLimits { memory_bytes: Some(3 * GIB), processes: Some(9), why_not: None };
    assert_lines(&[check_job_limits(&limits)], &[Well], "limits per job: memory 3.0 GiB, processes 9");
    let unlimited = JobLimits { why_not: Some("no cgroup v2".to_owned()), ..JobLimits::default() };
    assert_lines(&[check_job_limits(&unlimited)], &[Warn], "memory unlimited, processes unlimited: no cgroup v2");
    let diagnostics = |open_files, shared_memory| check_limits(InheritedLimits { open_files, shared_memory });
    assert_lines(&diagnostics(Some(1_023), Some(64 << 20)), &[Warn, Warn], "--shm-size");
    assert_lines(&diagnostics(Some(1_024), Some(GIB)), &[Well, Well], "/dev/shm has 1.0 GiB");
    assert_eq!(diagnostics(None, None), []);
}

#[test]
fn memory_facts_are_evaluated() {
    let diagnostic = |total, available, limit| check_memory(MemoryFacts { total, available, limit });
    let line = |total: u64, available: u64, limit: Option<u64>| {
        diagnostic(Some(total * GIB), Some(available * GIB), limit).into_iter().collect::<Vec<_>>()
    };
    assert_lines(&line(64, 60, None), &[Well], "64.0 GiB, 60.0 GiB available");
    assert_lines(&line(64, 60, Some(2 * GIB)), &[Warn], "limited to 2.0 GiB");
    assert_lines(&line(64, 3, None), &[Warn], "3.0 GiB available");
    // A limit above the total is no limit.
    assert_lines(&line(64, 60, Some(u64::MAX)), &[Well], "64.0 GiB, 60");
    assert_eq!(diagnostic(None, None, None), None);
}
