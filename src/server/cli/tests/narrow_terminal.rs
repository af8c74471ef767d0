//! Output on terminals of 80 and 120 columns.

use serde_json::json;

use super::harness::CliHarness;

const ERROR: &str =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB";
const WORKER: &str = "mi300-frankfurt-rack-12-node-003";

/// Returns the words of one column, regardless of other columns.
fn column(text: &str, heading: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(heading));
    let start = lines.next().and_then(|line| line.find(heading)).expect("the heading");
    let cells = lines.map(|line| line.chars().skip(start).collect::<String>());
    cells.map(|cell| cell.split("  ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
}

/// Returns the cells of the row that begins with this ID.
fn row<'t>(text: &'t str, id: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.starts_with(id)).unwrap_or_else(|| panic!("no row of {id}: {text}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[tokio::test]
async fn lists_and_explanations_are_readable() {
    let mut harness = CliHarness::start().await;
    harness.server.put_config("flux-lora-portraits").await;
    let (_, key, _stream) = harness.server.connect_worker(WORKER).await;
    let failed = harness.server.submit("flux-lora-portraits").await;
    let report = json!({"status": "failed", "attempt": 1, "exit_code": 1, "error": ERROR});
    harness.server.report_status(&key, &failed, report).await.expect_status(200);
    let args = ["jobs", "submit", "flux-lora-portraits", "--gpus", "16", "--label", "site=graz"];
    let pending = harness.run(&args).await.single_line();
    for width in [80, 120] {
        harness.width = Some(width);
        let list = harness.run(&["jobs", "list"]).await.expect_success();
        let headings: Vec<&str> = list.lines().next().unwrap_or_default().split_whitespace().collect();
        for heading in ["JOB", "STATUS", "CONFIG", "SUBMITTED"] {
            assert!(headings.contains(&heading), "{width}: {heading}: {list}");
        }
        for (job, status) in [(&failed, "failed"), (&pending, "queued")] {
            let cells = row(&list, job);
            for cell in [job.as_str(), status, "flux-lora-portraits", "just now"] {
                assert!(cells.contains(&cell), "{width}: {cell}: {list}");
            }
        }
        assert!(row(&list, &pending).contains(&"no match"), "{width}: {list}");
        assert!(list.contains(&ERROR[..30]), "{width}: the list shows the beginning of the reason: {list}");

        let explained = harness.run(&["jobs", "explain", &pending]).await.expect_success();
        let document = harness.run(&["jobs", "explain", &pending, "--json"]).await.json();
        for blocker in document["workers"][0]["blockers"].as_array().expect("blockers") {
            for (heading, field) in [("BLOCKER", "text"), ("SUGGESTION", "change")] {
                let (words, expected) = (column(&explained, heading), blocker[field].as_str().expect("a sentence"));
                let normalize = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(normalize(&words).contains(&normalize(expected)), "{width}: {expected}: {words}\n{explained}");
            }
        }
        let sentence = document["text"].as_str().expect("a sentence");
        assert!(explained.starts_with(&format!("{sentence}\n")), "{width}: {explained}");
        assert_lines_fit(&harness, width, &failed, &explained).await;
    }
    let explained = harness.run(&["jobs", "explain", &pending]).await.expect_success();
    assert_eq!(row(&explained, WORKER)[0], WORKER, "at 120 columns the full name is shown");
    // At 80 columns the reason of a failure has a line of its own.
    harness.width = Some(80);
    let list = harness.run(&["jobs", "list"]).await.expect_success();
    assert!(list.contains(&ERROR[..70]), "{list}");
}

/// Checks that no line of a table is wider than the terminal.
async fn assert_lines_fit(harness: &CliHarness, width: usize, job: &str, explained: &str) {
    let table = explained.lines().skip_while(|line| !line.starts_with("WORKER"));
    let mut lines: Vec<String> = table.map(str::to_owned).collect();
    assert!(lines.len() > 1, "{explained}");
    for args in [&["jobs", "list"][..], &["jobs", "show", job], &["workers", "list"], &["configs", "list"]] {
        let output = harness.run(args).await.expect_success();
        lines.extend(output.lines().filter(|line| !line.starts_with("reason")).map(str::to_owned));
    }
    for line in lines {
        assert!(line.chars().count() <= width, "{width}: {line}");
    }
}
