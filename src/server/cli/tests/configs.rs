//! `simpletuner configs …`

use std::fs;

use super::harness::CliHarness;

#[tokio::test]
async fn configuration_is_pushed_listed_shown_and_deleted() {
    let harness = CliHarness::start().await;
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("digits");
    fs::create_dir_all(directory.join("prompts")).expect("created");
    fs::write(directory.join("config.json"), "{\"--model_family\": \"flux\"}").expect("written");
    fs::write(directory.join("prompts/a.json"), "[]").expect("written");
    let path = directory.to_str().expect("text");

    let pushed = harness.run(&["configs", "push", path]).await;
    assert!(pushed.err.contains("Stored digits as revision 1: config.json, prompts/a.json."), "{}", pushed.err);
    assert!(pushed.expect_success().is_empty());
    // Large enough for a progress bar, which is not shown here.
    fs::write(directory.join("large.txt"), "x".repeat(600_000)).expect("written");
    assert_eq!(harness.run(&["configs", "push", path, "--json"]).await.json()["revision"], 2);
    let file = directory.join("config.json");
    assert_eq!(
        harness.run(&["configs", "push", file.to_str().expect("text"), "--name", "alone", "-q"]).await.single_line(),
        "alone"
    );

    let table = "\
NAME    REVISION  FILES  SETTINGS  CHANGED
alone   1         1      flux      just now
digits  2         3      flux      just now
";
    assert_eq!(harness.run(&["configs", "list"]).await.expect_success(), table);
    assert_eq!(harness.run(&["configs", "list", "-q"]).await.expect_success(), "alone\ndigits\n");
    assert_eq!(harness.run(&["configs", "list", "--json"]).await.json()["configs"][1]["name"], "digits");
    let output = harness.run(&["configs", "show", "digits"]).await.expect_success();
    assert!(output.contains("revision      2") && output.contains("large.txt       586 KiB"), "{output}");
    assert_eq!(harness.run(&["configs", "show", "digits", "--file", "prompts/a.json"]).await.expect_success(), "[]");
    assert_eq!(
        harness.run(&["configs", "show", "digits", "--json"]).await.json()["bundle"]["files"]["prompts/a.json"],
        "[]"
    );
    harness
        .run(&["configs", "show", "digits", "--file", "b"])
        .await
        .expect_failure(1, "has no file \"b\"; it has config.json");

    harness.run(&["configs", "delete", "alone"]).await.expect_failure(2, "--yes");
    assert_eq!(harness.run(&["configs", "delete", "alone", "-yq"]).await.single_line(), "alone");
    harness.run(&["configs", "show", "alone"]).await.expect_failure(1, "(config_not_found)");
    fs::remove_file(file).expect("removed");
    harness.run(&["configs", "push", path]).await.expect_failure(78, "it contains no config.json");
    harness.run(&["configs", "push", "/nowhere"]).await.expect_failure(78, "cannot read /nowhere");
}
