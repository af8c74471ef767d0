//! `/docs/api`, and the numbers in the guides.

use app::domain::plan::{AGING_PER_POINT, STARVATION_AFTER};
use app::domain::priority::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::domain::retry::{RetryDecision, after_loss};
use app::domain::time::{Millis, Timestamp};
use app::protocol::bulk;
use app::protocol::jobs::SubmitJob;
use app::protocol::status::JobStatus;
use axum::http::header;

use crate::service::ServerPolicy;
use crate::service::access::REAUTH_LIFETIME;
use crate::tests::harness::{Actor, TestServer};
use crate::tests::openapi::{description, operations};

#[tokio::test]
async fn page_shows_every_operation_without_authentication() {
    let server = TestServer::start().await;
    let page = server.get(&Actor::Unauthenticated, "/docs/api").await;
    assert_eq!(page.status, 200);
    let html = page.text();
    for (_, path, operation) in operations(&description(&server).await) {
        let id = operation["operationId"].as_str().expect("text");
        assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        assert!(html.contains(&format!("<code>{path}</code>")), "{path}");
    }
    assert!(html.contains("curl -s -X DELETE &quot;$ORCHESTRATOR/api/admin/workers/$ID&quot;"));
    assert!(html.contains("Requires <code>admin.workers</code>."));
}

#[tokio::test]
async fn page_loads_no_external_resources_and_has_valid_links() {
    let server = TestServer::start().await;
    let page = server.get(&Actor::Cookie("theme=dark".to_owned()), "/docs/api").await;
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().expect("text").to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; img-src 'self'; "), "{policy}");
    let html = page.text();
    assert!(html.contains("data-theme=\"dark\""));
    for forbidden in ["<script", "style=", "=\"http", "=\"//", "url(", "onclick", "javascript:"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let links: Vec<&str> =
        html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).filter(|link| *link != "/").collect();
    assert!(links.len() > 100);
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => assert!(html.contains(&format!("id=\"{id}\"")), "{link}"),
            None => assert!(
                link.starts_with("/api/openapi") || link.starts_with("/pkg/") || link == "/favicon.svg",
                "{link}"
            ),
        }
    }
}

#[test]
fn guides_contain_the_actual_numbers() {
    let text = |guide: &str| guide.split_whitespace().collect::<Vec<_>>().join(" ");
    let queue = text(include_str!("../../../../docs/QUEUE.md"));
    let api = text(include_str!("../../../../docs/API.md"));
    let submit: SubmitJob = serde_json::from_str(r#"{"config_name": "digits"}"#).expect("a submit");
    let policy = ServerPolicy::default();
    let retry_delays = |losses| match after_loss(Timestamp(0), losses, 100) {
        RetryDecision::RetryAt(at) => at.0 / 1_000,
        RetryDecision::Exhausted => panic!("there are retries"),
    };
    let retry_delays = [1, 2, 3, 99].map(retry_delays);
    for (guide, sentence, is_correct) in [
        (&queue, "an hour of waiting outweighs one point of priority", AGING_PER_POINT == Millis::from_secs(3_600)),
        (&queue, "waited for half an hour reserves one worker", STARVATION_AFTER == Millis::from_secs(1_800)),
        (&queue, "A priority is 0 to 50; 10 if the submit names none", (MAX_PRIORITY, DEFAULT_PRIORITY) == (50, 10)),
        (&queue, "10 at most, leads and admins", DEFAULT_PRIORITY == 10),
        (&queue, "not answered in 30 seconds", policy.offer_timeout == Millis::from_secs(30)),
        (&queue, "`--heartbeat-timeout` (120 seconds)", policy.heartbeat_timeout == Millis::from_secs(120)),
        (&queue, "`max_retries` times (3 if the submit says nothing)", submit.max_retries == 3),
        (
            &queue,
            "10 seconds later at the earliest, then 20, 40 and so on, up to 5 minutes",
            retry_delays == [10, 20, 40, 300],
        ),
        (&api, "after a wait of 10, 20, 40 seconds and so on, 5 minutes at most", retry_delays == [10, 20, 40, 300]),
        (&api, "`{\"ids\": […]}`, 500 at most", bulk::MAX_BULK_IDS == 500),
        (&api, "password from the last 15 minutes", REAUTH_LIFETIME == Millis::from_secs(15 * 60)),
        (
            &api,
            "expires after 90 days (`--api-token-days`)",
            policy.accounts.api_token_lifetime == Millis::from_secs(90 * 86_400),
        ),
    ] {
        assert!(guide.contains(sentence), "the guide does not say: {sentence}");
        assert!(is_correct, "the guide says: {sentence}");
    }
}

#[test]
fn statuses_of_jobs_are_in_the_guide() {
    let queue = include_str!("../../../../docs/QUEUE.md");
    let (_, section) = queue.split_once("## Statuses").expect("a section");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), JobStatus::ALL.len());
    for (status, row) in JobStatus::ALL.into_iter().zip(rows) {
        let begin = format!("| `{}` | `{}` | ", status.as_str(), status.phase().as_str());
        assert!(row.starts_with(&begin), "docs/QUEUE.md needs a row that starts with: {begin}");
    }
}
