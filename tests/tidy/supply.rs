//! Whatever is built or installed has the versions of a lock file.

use std::fs;

use super::{report, root};

/// Files with commands that are run.
const DIRECTORIES: [&str; 7] = ["scripts", "scripts/bench", "deploy", "deploy/docker", "deploy/start", "docs", "."];
/// The commands of cargo that resolve versions. cargo-fuzz and cargo-cyclonedx have no such option, so their scripts
/// call `cargo metadata` first.
const RESOLVES: [&str; 10] =
    ["build", "install", "test", "run", "clippy", "bench", "doc", "metadata", "leptos build", "leptos watch"];

/// The commands of a line that resolve versions and are not bound to a lock file.
fn unlocked_commands(line: &str) -> Vec<String> {
    let is_comment = line.trim_start().starts_with('#') && !line.contains('`');
    let commands = line.split("cargo ").skip(1).filter(|_| !is_comment);
    let commands = commands.filter(|rest| RESOLVES.iter().any(|word| rest.starts_with(&format!("{word} "))));
    commands.filter(|rest| !rest.contains("locked")).map(|rest| format!("cargo {rest}")).collect()
}

#[test]
fn every_build_is_bound_to_its_lock_file() {
    let (mut broken, mut found) = (Vec::new(), 0);
    for directory in DIRECTORIES {
        for entry in fs::read_dir(root().join(directory)).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            found += text.matches("--locked").count();
            for (index, line) in text.lines().enumerate() {
                let position = format!("{}:{}", entry.path().display(), index + 1);
                broken.extend(unlocked_commands(line).into_iter().map(|command| format!("{position}: {command}")));
            }
        }
    }
    report(&broken);
    assert!(found > 15, "commands were looked for and found: {found}");
}

#[test]
fn command_without_a_lock_file_is_found() {
    for line in ["cargo build --release", "  x || cargo install tool --version 1", "`cargo test --bin x` runs it"] {
        assert_eq!(unlocked_commands(line).len(), 1, "{line}");
    }
    for line in [
        "cargo build --locked --release",
        "cargo leptos build --cargo-locked",
        "cargo fmt --check",
        "# as plain cargo build does",
    ] {
        assert!(unlocked_commands(line).is_empty(), "{line}");
    }
}
