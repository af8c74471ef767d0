//! What a page stores in a browser: it outlives the page, and any user of the machine can read it.

use std::fs;

use super::{code, root, sources};

/// The only file that stores anything.
const STORAGE_FILE: &str = "app/ui/browser/dom.rs";
/// The only file that stores something: the notifications that were shown.
const NOTIFICATIONS_FILE: &str = "app/ui/notifications.rs";
/// What browsers call their stores, in Rust and in JavaScript.
const STORAGE_APIS: [&str; 7] =
    ["local_storage", "session_storage", "indexed_db", "localStorage", "sessionStorage", "indexedDB", "caches."];

/// Scripts of ours.
fn scripts() -> Vec<(String, String)> {
    let mut pending = vec![root().join("app")];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).expect("a readable directory").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "js") {
            found.push((path.display().to_string(), fs::read_to_string(&path).expect("readable text")));
        }
    }
    found
}

#[test]
fn a_tab_stores_its_notifications_and_nothing_else() {
    let mut broken = Vec::new();
    let all = ["app", "browser"].iter().flat_map(|folder| sources(folder)).chain(scripts());
    for (name, text) in all {
        for (number, line) in (1..).zip(text.lines().map(code)) {
            let uses_storage = STORAGE_APIS.iter().any(|storage| line.contains(storage)) && name != STORAGE_FILE;
            let stores_other_item = line.contains(".set_item(") && !line.contains(".set_item(NOTIFICATIONS_KEY, text)");
            let saves_notifications = line.contains("browser::save_notifications(") && name != NOTIFICATIONS_FILE;
            if uses_storage || stores_other_item || saves_notifications {
                broken.push(format!("{name}:{number}: only notes may be stored in the browser: {line}"));
            }
        }
    }
    super::report(&broken);
    let text = fs::read_to_string(root().join(STORAGE_FILE)).expect("readable text");
    assert!(
        text.contains(".session_storage()") && text.contains(".set_item(NOTIFICATIONS_KEY, text)"),
        "the test checks the wrong file"
    );
    assert!(!text.contains("local_storage"), "a tab's own store ends with the tab");
}
