//! What a browser keeps of a page: what is stored there outlives the page, and anybody at the machine can read it.

use std::fs;

use super::{code, root, sources};

/// The only file that stores anything.
const STORES: &str = "app/ui/browser/dom.rs";
/// The only file that has something to be stored: the notes that were shown.
const NOTES: &str = "app/ui/notifications.rs";
/// What browsers call their stores, in Rust and in JavaScript.
const PLACES: [&str; 7] =
    ["local_storage", "session_storage", "indexed_db", "localStorage", "sessionStorage", "indexedDB", "caches."];

/// Scripts of ours.
fn scripts() -> Vec<(String, String)> {
    let mut waiting = vec![root().join("app")];
    let mut found = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).expect("a readable directory").flatten().map(|entry| entry.path()));
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
            let stores = PLACES.iter().any(|storage| line.contains(storage)) && name != STORES;
            let other = line.contains(".set_item(") && !line.contains(".set_item(NOTIFICATIONS_KEY, text)");
            let others = line.contains("browser::save_notifications(") && name != NOTES;
            if stores || other || others {
                broken.push(format!("{name}:{number}: only notes may be stored in the browser: {line}"));
            }
        }
    }
    super::report(&broken);
    let text = fs::read_to_string(root().join(STORES)).expect("readable text");
    assert!(
        text.contains(".session_storage()") && text.contains(".set_item(NOTIFICATIONS_KEY, text)"),
        "the test looks elsewhere"
    );
    assert!(!text.contains("local_storage"), "a tab's own store ends with the tab");
}
