//! A fleet whose server has nothing but the certificate of its own making.

use crate::harness::{Fleet, trainers, until};

#[tokio::test]
async fn agents_know_their_server_by_its_fingerprint() {
    let settings = [
        ("SIMPLETUNER_SSL", "true"),
        ("SIMPLETUNER_LOCAL", "on"),
        ("SIMPLETUNER_LOCAL_SHARES_USER", "true"),
        ("SIMPLETUNER_TRAINER", "true"),
    ];
    let mut fleet = Fleet::start_with(&settings).await;
    assert!(fleet.api.url().starts_with("https://"));
    let session = fleet.api.get("/api/session").await;
    let fingerprint = session["fingerprint"].as_str().expect("a fingerprint").to_owned();
    // The server's own agent finds it by itself.
    let local = until("the local worker", async || {
        let workers = fleet.api.try_get("/api/admin/workers?status=idle").await?;
        workers["workers"].as_array()?.iter().find(|worker| worker["local"] == true).cloned()
    });
    assert_eq!(local.await["tls_verify"], true);

    let host = fleet.host("pinned").await.training_with(trainers::AT_THE_GATE);
    let host = host.flags(&["--orchestrator-fingerprint", &fingerprint]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_job(&job, "running").await;
    fleet.kill_server().await;
    fleet.start_server().await;
    assert_eq!(fleet.api.get("/api/session").await["fingerprint"], fingerprint, "kept over a restart");
    fleet.api.until_heard_again(&host.worker).await;
    host.open_gate();
    fleet.api.until_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, host.trainer_log(&job, 1));

    let stranger = fleet.host_of("stranger", "ephemeral").await.flags(&["--give-up-after", "1"]);
    let mut refused = stranger.start();
    assert_eq!(refused.ended().await, Some(69));
    assert!(refused.said().contains("SSL certificate verify failed"), "{}", refused.said());
}
