//! A server that is away while a trainer talks: what the spool cannot hold is missing, said to be, and nothing else.

use crate::harness::{Fleet, trainers, until};

#[tokio::test]
async fn what_the_spool_could_not_hold_is_a_marked_gap() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("talker").await.training_with(trainers::TALKS_AT_THE_GATE);
    let host = host.flags(&["--spool-limit", "4MiB"]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_log(&job, "first words\n".len() as u64).await;
    fleet.kill_server().await;
    host.open_gate();
    until("the trainer to have talked", async || host.left("talked")).await;
    until("the spool to be what it may be", async || {
        let log = std::fs::metadata(host.attempt(&job, 1).join("trainer.log")).expect("a log");
        let on_disk = std::os::unix::fs::MetadataExt::blocks(&log) * 512;
        (log.len() > 60_000_000 && on_disk < 5 << 20).then_some(())
    })
    .await;
    fleet.start_server().await;
    std::fs::write(host.home().join("leave"), "").expect("a home");
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");

    let log = fleet.api.log(&job).await;
    assert!(!log.contains('\0'), "a hole is no text");
    assert!(log.starts_with("first words\n") && log.ends_with("last words\n"));
    let numbers: Vec<u32> =
        log.lines().filter_map(|line| line.strip_prefix("line ")?.trim_end_matches('.').parse().ok()).collect();
    assert_eq!(numbers.last(), Some(&599_999));
    let gaps: Vec<_> = numbers.windows(2).filter(|two| two[1] != two[0] + 1).collect();
    let others: Vec<_> = log.lines().filter(|line| !line.starts_with("line ") && !line.ends_with(" words")).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    // The mark, and what the cut has left of a line.
    assert!(others.len() <= 2 && others[0].contains("bytes of this log are missing"), "{others:?}");
}
