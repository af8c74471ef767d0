//! A fleet whose server has a self-signed certificate only.

use crate::harness::{TestFleet, trainers, wait_until};

#[tokio::test]
async fn agents_verify_the_server_by_fingerprint() {
    let settings = [
        ("SIMPLETUNER_SSL", "true"),
        ("SIMPLETUNER_LOCAL", "on"),
        ("SIMPLETUNER_LOCAL_SHARES_USER", "true"),
        ("SIMPLETUNER_TRAINER", "true"),
    ];
    let mut fleet = TestFleet::start_with(&settings).await;
    assert!(fleet.api.url().starts_with("https://"));
    let session = fleet.api.get("/api/session").await;
    let fingerprint = session["fingerprint"].as_str().expect("a fingerprint").to_owned();
    // The server's own agent connects automatically.
    let local = wait_until("the local worker", async || {
        let workers = fleet.api.try_get("/api/admin/workers?status=idle").await?;
        workers["workers"].as_array()?.iter().find(|worker| worker["local"] == true).cloned()
    });
    assert_eq!(local.await["tls_verify"], true);

    let host = fleet.add_host("pinned").await.with_python_trainer(trainers::AT_THE_GATE);
    let host = host.with_flags(&["--orchestrator-fingerprint", &fingerprint]);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    fleet.kill_server().await;
    fleet.start_server().await;
    assert_eq!(
        fleet.api.get("/api/session").await["fingerprint"],
        fingerprint,
        "the fingerprint stays the same after a restart"
    );
    fleet.api.wait_for_contact(&host.worker).await;
    host.open_gate();
    fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, host.trainer_log(&job, 1));

    let unconfigured = fleet.add_host_of_type("unconfigured", "ephemeral").await.with_flags(&["--give-up-after", "1"]);
    let mut rejected = unconfigured.start();
    assert_eq!(rejected.wait().await, Some(69));
    assert!(rejected.output().contains("SSL certificate verify failed"), "{}", rejected.output());
}
