//! Ranks and links in a log.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::logs::gaps::start_running_job;
use crate::tests::logs::lines::put;
use crate::tests::ui::pages::{log_in, page};

async fn get_rank(server: &TestServer, job: &str, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/queue/{job}/logs/lines?{query}")).await.expect_status(200)
}

fn numbers(response: &Value) -> Vec<u64> {
    response["lines"].as_array().expect("lines").iter().filter_map(|line| line["number"].as_u64()).collect()
}

/// Returns a log in which the ranks 0 to 3 write in turns.
fn log_of_ranks(lines: u64) -> Vec<u8> {
    let text: Vec<String> = (0..lines).map(|at| format!("[rank{}]: step {at}", at % 4)).collect();
    format!("{}\n", text.join("\n")).into_bytes()
}

#[tokio::test]
async fn lines_of_a_rank_are_returned_in_parts_in_both_directions() {
    let (server, job, token) = start_running_job().await;
    let mut text = log_of_ranks(40_000);
    text.extend_from_slice(b"\xff\xfe\n 10%\r\x1b[31m[rank3]\x1b[0m: last\r\n[rank1000000000]: x\n");
    put(&server, &job, &token, "offset=0", text).await;
    let last = get_rank(&server, &job, "rank=3&limit=3").await;
    assert_eq!(numbers(&last), [39_996, 40_000, 40_002]);
    assert_eq!((&last["from"], &last["later"], &last["total"]), (&json!(39_996), &Value::Null, &json!(40_003)));
    assert!(last["lines"][2]["text"].as_str().is_some_and(|text| text.ends_with(": last")), "{last}");
    let before = get_rank(&server, &job, &format!("rank=3&limit=3&before={}", last["earlier"])).await;
    assert_eq!((numbers(&before), &before["later"]), (vec![39_984, 39_988, 39_992], &json!(39_996)));
    let first = get_rank(&server, &job, "rank=3&limit=2&from=1").await;
    assert_eq!((numbers(&first), &first["earlier"], &first["later"]), (vec![4, 8], &Value::Null, &json!(9)));
    let next = get_rank(&server, &job, "rank=3&limit=2&from=9").await;
    assert_eq!((numbers(&next), &next["earlier"]), (vec![12, 16], &json!(9)));
    for query in ["rank=7", "rank=1000000000", "rank=7&from=99999999", "rank=7&before=0"] {
        assert_eq!(get_rank(&server, &job, query).await["lines"], json!([]), "{query}");
    }
    server
        .get(&Actor::Admin, &format!("/api/queue/{job}/logs/lines?rank=99999999999"))
        .await
        .expect_problem(400, "invalid_query");
}

#[tokio::test]
async fn attempt_has_the_ranks_and_links_of_its_log() {
    let (server, job, token) = start_running_job().await;
    assert_eq!(server.job(&job).await["attempts"][0].get("links"), None);
    let hostile = "https://wandb.ai.evil.example/a/b/runs/c https://wandb.ai@evil.example/ javascript:alert(1)";
    let text = format!(
        "wandb: View run at \u{1b}[34mhttps://wandb.ai/ada/digits/runs/x1\u{1b}[0m\n{hostile}\n\
         TensorBoard 2.16 at http://localhost:6006/\n[rank1]: a\n[rank0]: https://huggingface.co/ada/lo"
    );
    put(&server, &job, &token, "offset=0", text.clone().into_bytes()).await;
    let attempt = server.job(&job).await["attempts"][0].clone();
    let links = json!([
        {"service": "wandb", "url": "https://wandb.ai/ada/digits/runs/x1"},
        {"service": "tensorboard", "url": "http://localhost:6006/"},
    ]);
    assert_eq!((&attempt["links"], &attempt["ranks"]), (&links, &json!([1])), "the last line is not complete");
    put(&server, &job, &token, &format!("offset={}", text.len()), b"ra\n".to_vec()).await;
    let attempt = server.job(&job).await["attempts"][0].clone();
    assert_eq!(attempt["links"][2]["url"], "https://huggingface.co/ada/lora");
    assert_eq!(attempt["ranks"], json!([0, 1]));
    let html = page(&server, &log_in(&server).await, &format!("/jobs/{job}")).await;
    assert!(html.contains("href=\"https://wandb.ai/ada/digits/runs/x1\""), "{html}");
    assert!(!html.contains("href=\"http://localhost:6006/") && !html.contains("href=\"javascript"), "{html}");
}
