//! `simpletuner configs …`

use std::fs;

use super::desk::Desk;

#[tokio::test]
async fn a_directory_is_pushed_listed_shown_and_deleted() {
    let desk = Desk::open().await;
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("digits");
    fs::create_dir_all(directory.join("prompts")).expect("made");
    fs::write(directory.join("config.json"), "{\"--model_family\": \"flux\"}").expect("written");
    fs::write(directory.join("prompts/a.json"), "[]").expect("written");
    let path = directory.to_str().expect("text");

    let pushed = desk.run(&["configs", "push", path]).await;
    assert!(pushed.err.contains("digits is at revision 1: config.json, prompts/a.json."), "{}", pushed.err);
    assert!(pushed.ok().is_empty());
    // Large enough for a bar, which nobody sees here.
    fs::write(directory.join("large.txt"), "x".repeat(600_000)).expect("written");
    assert_eq!(desk.run(&["configs", "push", path, "--json"]).await.json()["revision"], 2);
    let file = directory.join("config.json");
    assert_eq!(
        desk.run(&["configs", "push", file.to_str().expect("text"), "--name", "alone", "-q"]).await.line(),
        "alone"
    );

    let table = "\
NAME    REVISION  FILES  WHAT  CHANGED
alone   1         1      flux  just now
digits  2         3      flux  just now
";
    assert_eq!(desk.run(&["configs", "list"]).await.ok(), table);
    assert_eq!(desk.run(&["configs", "list", "-q"]).await.ok(), "alone\ndigits\n");
    assert_eq!(desk.run(&["configs", "list", "--json"]).await.json()["configs"][1]["name"], "digits");
    let shown = desk.run(&["configs", "show", "digits"]).await.ok();
    assert!(shown.contains("revision      2") && shown.contains("large.txt       600 kB"), "{shown}");
    assert_eq!(desk.run(&["configs", "show", "digits", "--file", "prompts/a.json"]).await.ok(), "[]");
    assert_eq!(
        desk.run(&["configs", "show", "digits", "--json"]).await.json()["bundle"]["files"]["prompts/a.json"],
        "[]"
    );
    desk.run(&["configs", "show", "digits", "--file", "b"]).await.refused(1, "has no file \"b\"; it has config.json");

    desk.run(&["configs", "delete", "alone"]).await.refused(2, "--yes");
    assert_eq!(desk.run(&["configs", "delete", "alone", "-yq"]).await.line(), "alone");
    desk.run(&["configs", "show", "alone"]).await.refused(1, "(config_not_found)");
    fs::remove_file(file).expect("removed");
    desk.run(&["configs", "push", path]).await.refused(78, "there is no config.json in it");
    desk.run(&["configs", "push", "/nowhere"]).await.refused(78, "/nowhere cannot be read");
}
