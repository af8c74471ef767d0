//! The server is down while a trainer prints: what exceeds the spool is a marked gap, and nothing else is lost.

use crate::harness::{TestFleet, trainers, wait_until};

#[tokio::test]
async fn output_over_the_spool_limit_is_a_marked_gap() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("talker").await.with_python_trainer(trainers::LARGE_OUTPUT_AT_THE_GATE);
    let host = host.with_flags(&["--spool-limit", "4MiB"]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_log(&job, "first words\n".len() as u64).await;
    fleet.kill_server().await;
    host.open_gate();
    wait_until("the trainer to have printed", async || host.trainer_file("talked")).await;
    wait_until("the spool to be within its limit", async || {
        let log = std::fs::metadata(host.attempt_dir(&job, 1).join("trainer.log")).expect("a log");
        let on_disk = std::os::unix::fs::MetadataExt::blocks(&log) * 512;
        (log.len() > 60_000_000 && on_disk < 5 << 20).then_some(())
    })
    .await;
    fleet.start_server().await;
    std::fs::write(host.home().join("meet/leave"), "").expect("a home");
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");

    let log = fleet.api.log(&job).await;
    assert!(!log.contains('\0'), "the log contains a hole");
    assert!(log.starts_with("first words\n") && log.ends_with("last words\n"));
    let (complete, others): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| line.starts_with("line ") && line.len() == 100);
    let numbers = complete.iter().filter_map(|line| line["line ".len()..].trim_end_matches('.').parse().ok());
    // Line -1 stands for the beginning, which may be missing, too.
    let numbers: Vec<i32> = std::iter::once(-1).chain(numbers).collect();
    assert_eq!((numbers.len(), numbers.last()), (complete.len() + 1, Some(&599_999)));
    let gaps: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let marks = others.iter().filter(|line| line.contains("bytes of this log are missing")).count();
    // Besides the mark, only the parts of lines that were cut at both sides.
    let partial_lines = others.iter().filter(|line| !line.is_empty() && !line.ends_with(" words")).count();
    assert!(marks == 1 && partial_lines <= 3, "{others:?}");
}
