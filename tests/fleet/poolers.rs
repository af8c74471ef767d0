//! A connection pooler between servers and PostgreSQL works, or the server names the wrong setting.

use crate::harness::pooler::PgBouncer;
use crate::harness::{Program, TestFleet, command, new_database, trainers};

#[tokio::test]
async fn servers_share_a_database_through_a_pooler_in_session_mode() {
    let database = new_database().await;
    let pooler = PgBouncer::start(&database, "session").await;
    let fleet = TestFleet::start_on(pooler.address(&database)).await;
    let (_second, other) = fleet.second_server().await;
    let host = fleet.add_host("gpu-1").await.with_python_trainer(trainers::AT_THE_GATE);
    let _agent = host.start();
    // Changes of one server reach the other one.
    other.wait_for_worker(&host.worker, "idle").await;
    let job = other.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;

    let pooler = pooler.restart().await;
    host.open_gate();
    let done = other.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    let next = other.submit("digits-quick").await;
    let done = fleet.api.wait_for_job(&next, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#} {}", pooler.output());
}

#[tokio::test]
async fn transaction_mode_pooler_is_rejected_with_advice() {
    let database = new_database().await;
    let pooler = PgBouncer::start(&database, "transaction").await;
    let home = tempfile::TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
    let mut command = command("simpletuner", home.path());
    command.args(["server", "--port", "0", "--local", "off", "--database-url", &pooler.address(&database)]);
    command.arg("--data-dir").arg(home.path().join("data")).env("SIMPLETUNER_LOG", "off");
    let mut server = Program::start(command, home.path().join("server.log"));
    assert_eq!(server.wait().await, Some(78), "{}{}", server.output(), pooler.output());
    let output = server.output();
    for advice in ["behind a pooler in transaction mode", "pool_mode = session", "connect to PostgreSQL itself"] {
        assert!(output.contains(advice), "{output}{}", pooler.output());
    }
}
