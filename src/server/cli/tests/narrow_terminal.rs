//! Output on a terminal of 80 columns.

use serde_json::json;

use super::harness::CliHarness;

const ERROR: &str =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB";

/// Returns the words of one column, regardless of other columns.
fn column(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(heading));
    let start = lines.next().and_then(|line| line.find(heading)).expect("the heading");
    let cells = lines.map(|line| line.chars().skip(start).collect::<String>());
    cells.map(|cell| cell.split("  ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn lists_and_explanations_are_readable() {
    let mut harness = CliHarness::start().await;
    harness.width = Some(80);
    harness.server.put_config("flux-lora-portraits").await;
    let (_, key, _stream) = harness.server.connect_worker("mi300-frankfurt-rack-12-node-003").await;
    let failed = harness.server.submit("flux-lora-portraits").await;
    let report = json!({"status": "failed", "attempt": 1, "exit_code": 1, "error": ERROR});
    harness.server.report_status(&key, &failed, report).await.expect_status(200);
    let asked = ["jobs", "submit", "flux-lora-portraits", "--gpus", "16", "--label", "site=graz"];
    let waits = harness.run(&asked).await.single_line();

    let listed = harness.run(&["jobs", "list"]).await.expect_success();
    for word in [&failed, &waits, "STATUS", "failed", "no match", "flux-lora-port", "just now", &ERROR[..70]] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let explained = harness.run(&["jobs", "explain", &waits]).await.expect_success();
    let document = harness.run(&["jobs", "explain", &waits, "--json"]).await.json();
    for blocker in document["workers"][0]["blockers"].as_array().expect("blockers") {
        for (heading, field) in [("BLOCKER", "text"), ("SUGGESTION", "change")] {
            let (all, said) = (column(&explained, heading), blocker[field].as_str().expect("a sentence"));
            let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(bare(&all).contains(&bare(said)), "{said}: {all}\n{explained}");
        }
    }
    let table =
        |text: &str| text.lines().skip_while(|line| !line.starts_with("WORKER")).map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table(&explained);
    for args in [&["jobs", "list"][..], &["jobs", "show", &failed], &["workers", "list"], &["configs", "list"]] {
        lines.extend(
            harness
                .run(args)
                .await
                .expect_success()
                .lines()
                .filter(|line| !line.starts_with("reason"))
                .map(str::to_owned),
        );
    }
    for line in lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
