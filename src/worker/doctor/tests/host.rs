use app::protocol::worker::Gpu;

use super::*;
use crate::doctor::line::Verdict::{self, Fail, Ok as Well, Warn};

fn good_disk() -> Disk {
    Disk {
        dir: "/var/lib/w".into(),
        there: "/var/lib/w".into(),
        writable: Ok(()),
        free_bytes: Some(100 * GIB),
        kept_free: 10 * GIB,
        files_left: Some(1_000),
        holes: Some(true),
        in_use: false,
    }
}

/// The verdicts, and that the words stand in one of the lines.
fn assert_lines(lines: &[Line], verdicts: &[Verdict], words: &str) {
    assert_eq!(lines.iter().map(|line| line.verdict).collect::<Vec<_>>(), verdicts, "{lines:?}");
    assert!(lines.iter().any(|line| line.text(false).contains(words)), "{words}: {lines:?}");
}

#[test]
fn disks() {
    let cases: [(Disk, &[Verdict], &str); 11] = [
        (good_disk(), &[Well, Well], "100.0 GiB free"),
        (Disk { there: "/var/lib".into(), holes: None, ..good_disk() }, &[Well, Well], "can be made"),
        (Disk { writable: Err("No space left on device".to_owned()), ..good_disk() }, &[Fail, Well], "No space left"),
        (Disk { free_bytes: Some(GIB - 1), ..good_disk() }, &[Well, Fail], "1023 MiB free"),
        (Disk { free_bytes: Some(10 * GIB), ..good_disk() }, &[Well, Warn], "checkpoints"),
        (
            Disk { free_bytes: Some(9 * GIB), ..good_disk() },
            &[Well, Fail],
            "9.0 GiB free, and 10.0 GiB are to stay free",
        ),
        (Disk { free_bytes: Some(GIB), kept_free: 0, ..good_disk() }, &[Well, Warn], "checkpoints"),
        (Disk { free_bytes: None, ..good_disk() }, &[Well], "can be written"),
        (Disk { files_left: Some(0), ..good_disk() }, &[Well, Well, Fail], "no inodes left"),
        (Disk { holes: Some(false), ..good_disk() }, &[Well, Well, Warn], "give back parts"),
        (Disk { in_use: true, ..good_disk() }, &[Well, Well, Warn], "an agent uses this work directory"),
    ];
    for (found, verdicts, words) in cases {
        assert_lines(&disk(&found), verdicts, words);
    }
}

#[test]
fn gpus_and_their_driver() {
    let gpu = Gpu { name: "A100".to_owned(), vram_gb: Some(80.0), ..Gpu::default() };
    let (driver, accelerator) = (Some("550.1".to_owned()), "cuda".to_owned());
    let some = Hardware { gpus: vec![gpu], driver, accelerator, ..Hardware::default() };
    let none = Hardware { accelerator: "cpu".to_owned(), ..Hardware::default() };
    assert_lines(&[gpus(&some, Some("550.1"))], &[Well], "cuda, A100 (80 GB), driver 550.1");
    assert_lines(&[gpus(&none, None)], &[Warn], "--gpu-count");
    assert_lines(&[gpus(&none, Some("550.1"))], &[Fail], "--gpus all");
}

#[test]
fn trainers() {
    let found = |program, starts, accelerate| {
        let command = ["python3", "-m", "simpletuner.train"].map(str::to_owned).to_vec();
        trainer(&Trainer { command, program, starts, accelerate })
    };
    assert_lines(&found(true, true, None), &[Well], "is there");
    assert_lines(&found(false, false, None), &[Fail], "no program \"python3\"");
    assert_lines(&found(true, false, None), &[Fail], "no module \"simpletuner.train\"");
    assert_lines(&found(true, true, Some(true)), &[Well, Well], "several GPUs");
    assert_lines(&found(true, true, Some(false)), &[Well, Warn], "install accelerate");
}

#[test]
fn what_trainers_inherit() {
    assert_lines(&[cgroup(&Cgroup::Delegated("/g".into()))], &[Well], "/g is delegated");
    assert_lines(&[cgroup(&Cgroup::NotOurs("/g".into()))], &[Warn], "Delegate=yes");
    assert_lines(&[cgroup(&Cgroup::Absent)], &[Warn], "version 2");
    let held = JobLimits { memory_bytes: Some(3 * GIB), processes: Some(9), why_not: None };
    assert_lines(&[job_limits(&held)], &[Well], "a job has 3.0 GiB of memory and 9 processes");
    let not = JobLimits { why_not: Some("no cgroup v2".to_owned()), ..JobLimits::default() };
    assert_lines(
        &[job_limits(&not)],
        &[Warn],
        "as much as there is of memory and any number of processes: no cgroup v2",
    );
    let of = |open_files, shared_memory| limits(Limits { open_files, shared_memory });
    assert_lines(&of(Some(1_023), Some(64 << 20)), &[Warn, Warn], "--shm-size");
    assert_lines(&of(Some(1_024), Some(GIB)), &[Well, Well], "/dev/shm has 1.0 GiB");
    assert_eq!(of(None, None), []);
}

#[test]
fn memory_that_may_be_used() {
    let of = |total, available, limit| memory(Memory { total, available, limit });
    let line = |total: u64, available: u64, limit: Option<u64>| {
        of(Some(total * GIB), Some(available * GIB), limit).into_iter().collect::<Vec<_>>()
    };
    assert_lines(&line(64, 60, None), &[Well], "64.0 GiB, 60.0 GiB available");
    assert_lines(&line(64, 60, Some(2 * GIB)), &[Warn], "limited to 2.0 GiB");
    assert_lines(&line(64, 3, None), &[Warn], "3.0 GiB available");
    // More than there is, is no limit.
    assert_lines(&line(64, 60, Some(u64::MAX)), &[Well], "64.0 GiB, 60");
    assert_eq!(of(None, None, None), None);
}
