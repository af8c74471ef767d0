//! A retry by a user waits for the trainer of the job that it retries, as long as that trainer's agent is answered.

use serde_json::json;

use super::{ExclusiveScenario, LEASE};
use crate::tests::harness::Actor;

impl ExclusiveScenario {
    /// Cancels the job; its agent does not confirm that.
    async fn cancel_without_a_report(&self) {
        let path = format!("/api/queue/{}/cancel", self.job);
        self.server.call(&Actor::Admin, "POST", &path, "").await.expect_status(200);
        self.server.register(&self.key, json!([])).await;
        assert_eq!(self.status().await, "cancelled");
    }

    async fn retry(&self, job: &str) -> String {
        let path = format!("/api/queue/{job}/retry");
        let again = self.server.call(&Actor::Admin, "POST", &path, "").await.expect_status(201);
        assert_eq!(again["status"], "queued", "the previous trainer may still run");
        again["job_id"].as_str().expect("text").to_owned()
    }

    /// The old agent still runs the attempt; the response orders it to stop.
    async fn claim_attempt(&self) {
        let desired = self.server.heartbeat(&self.key, self.attempt_claim()).await;
        assert_eq!(desired.stop.len(), 1, "{desired:?}");
    }

    /// Checks that a retry is delayed for a full lease from now, and is then offered.
    async fn assert_offered_after_a_lease(&self, retry: &str) {
        self.advance(LEASE - 1).await;
        assert_eq!(self.server.job_status(retry).await, "queued", "the previous trainer may still be stopping");
        self.advance(11).await;
        assert_eq!(self.server.job_status(retry).await, "offered");
    }
}

#[tokio::test]
async fn retry_is_delayed_while_the_old_agent_is_answered() {
    let scenario = ExclusiveScenario::start().await;
    scenario.cancel_without_a_report().await;
    let retry = scenario.retry(&scenario.job).await;
    scenario.advance(LEASE / 2).await;
    scenario.claim_attempt().await;
    scenario.assert_offered_after_a_lease(&retry).await;
}

#[tokio::test]
async fn retry_of_a_cancelled_retry_is_delayed_while_the_old_agent_is_answered() {
    let scenario = ExclusiveScenario::start().await;
    scenario.cancel_without_a_report().await;
    let first = scenario.retry(&scenario.job).await;
    scenario.server.call(&Actor::Admin, "POST", &format!("/api/queue/{first}/cancel"), "").await.expect_status(200);
    let second = scenario.retry(&first).await;
    scenario.advance(LEASE / 2).await;
    scenario.claim_attempt().await;
    scenario.assert_offered_after_a_lease(&second).await;
}

#[tokio::test]
async fn retry_of_a_cancelled_retry_is_delayed_after_the_old_agent_was_answered() {
    let scenario = ExclusiveScenario::start().await;
    scenario.cancel_without_a_report().await;
    let first = scenario.retry(&scenario.job).await;
    scenario.server.call(&Actor::Admin, "POST", &format!("/api/queue/{first}/cancel"), "").await.expect_status(200);
    scenario.advance(LEASE / 2).await;
    scenario.claim_attempt().await;
    let second = scenario.retry(&first).await;
    scenario.assert_offered_after_a_lease(&second).await;
}

#[tokio::test]
async fn retry_after_the_old_agent_was_answered_is_delayed() {
    let scenario = ExclusiveScenario::start().await;
    scenario.cancel_without_a_report().await;
    scenario.advance(LEASE / 2).await;
    scenario.claim_attempt().await;
    let retry = scenario.retry(&scenario.job).await;
    scenario.assert_offered_after_a_lease(&retry).await;
}
