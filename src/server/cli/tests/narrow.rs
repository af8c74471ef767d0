//! What is printed on a terminal of 80 columns.

use serde_json::json;

use super::desk::Desk;

const ERROR: &str =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB";

/// The words as they follow each other in one column, whatever stands beside it.
fn column(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(heading));
    let start = lines.next().and_then(|line| line.find(heading)).expect("the heading");
    let cells = lines.map(|line| line.chars().skip(start).collect::<String>());
    cells.map(|cell| cell.split("  ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn lists_and_explanations_are_readable() {
    let mut desk = Desk::open().await;
    desk.width = Some(80);
    desk.server.config("flux-lora-portraits").await;
    let (_, key, _stream) = desk.server.online("mi300-frankfurt-rack-12-node-003").await;
    let failed = desk.server.submit("flux-lora-portraits").await;
    let report = json!({"status": "failed", "attempt": 1, "exit_code": 1, "error": ERROR});
    desk.server.report(&key, &failed, report).await.ok(200);
    let asked = ["jobs", "submit", "flux-lora-portraits", "--gpus", "16", "--label", "site=graz"];
    let waits = desk.run(&asked).await.line();

    let listed = desk.run(&["jobs", "list"]).await.ok();
    for word in [&failed, &waits, "STATUS", "failed", "fits no worker", "flux-lora-port", "just now", &ERROR[..70]] {
        assert!(listed.contains(word), "{word}: {listed}");
    }
    let explained = desk.run(&["jobs", "explain", &waits]).await.ok();
    let document = desk.run(&["jobs", "explain", &waits, "--json"]).await.json();
    for blocker in document["workers"][0]["blockers"].as_array().expect("blockers") {
        for (heading, field) in [("IN THE WAY", "text"), ("WHAT WOULD HELP", "change")] {
            let (all, said) = (column(&explained, heading), blocker[field].as_str().expect("a sentence"));
            let bare = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(bare(&all).contains(&bare(said)), "{said}: {all}\n{explained}");
        }
    }
    let table =
        |text: &str| text.lines().skip_while(|line| !line.starts_with("WORKER")).map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table(&explained);
    for args in [&["jobs", "list"][..], &["jobs", "show", &failed], &["workers", "list"], &["configs", "list"]] {
        lines.extend(desk.run(args).await.ok().lines().filter(|line| !line.starts_with("why")).map(str::to_owned));
    }
    for line in lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
