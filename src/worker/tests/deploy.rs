//! Compares the shipped files and documents with the program.

use clap::{CommandFactory, Parser};

use crate::worker::args::input_limits;
use crate::worker::cli::Cli;
use crate::worker::exit;

const GUIDE: &str = include_str!("../../../docs/WORKER.md");
const UNIT: &str = include_str!("../../../deploy/systemd/simpletuner-worker.service");

/// Flags and their variables, from the command line's definition.
fn flags() -> Vec<(String, Option<String>)> {
    let command = Cli::command();
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let named = visible.filter_map(|argument| {
        let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
        Some((format!("--{}", argument.get_long()?), variable))
    });
    named.filter(|(flag, _)| !["--help", "--version"].contains(&flag.as_str())).collect()
}

#[test]
fn guide_lists_exactly_the_flags() {
    let flags = flags();
    assert!(flags.len() > 15, "{flags:?}");
    for (flag, variable) in &flags {
        let variable = variable.as_ref().map(|name| format!("`{name}` ")).unwrap_or_default();
        let row = format!("| `{flag}` | {variable}| ");
        assert!(GUIDE.contains(&row), "docs/WORKER.md has no row for {row}");
    }
    let rows = GUIDE.lines().filter(|line| line.starts_with("| `--") && !line.contains("| asks |"));
    let row_count = rows.filter(|line| line.matches(" |").count() == 3).count();
    assert_eq!(row_count, flags.len(), "docs/WORKER.md has rows for flags that do not exist");
}

#[test]
fn guide_lists_every_default() {
    let command = Cli::command();
    let settings = command.get_arguments().filter(|flag| !flag.is_hide_set() && !flag.is_hide_default_value_set());
    let mut count = 0;
    for flag in settings {
        let (name, default) = (flag.get_long().unwrap_or_default(), flag.get_default_values().first());
        let Some(default) = default.map(|value| value.to_string_lossy()) else { continue };
        let is_setting = |line: &&str| line.starts_with(&format!("| `--{name}` | ")) && !line.contains("| asks |");
        let row = GUIDE.lines().find(is_setting);
        let is_separator = |c: char| c.is_whitespace() || "`;,|".contains(c);
        let is_documented = row.is_some_and(|row| {
            row.contains(&format!("`{default}`")) || row.split(is_separator).any(|word| word == default)
        });
        assert!(is_documented, "docs/WORKER.md does not give the default {default} of --{name}: {row:?}");
        count += 1;
    }
    assert!(count > 15, "{count}");
}

#[test]
fn guide_lists_the_input_limits() {
    let command = Cli::command();
    let limits: Vec<_> =
        command.get_arguments().filter(|flag| flag.get_help_heading() == Some(input_limits::HELP_HEADING)).collect();
    assert!(limits.len() >= 10, "{limits:?}");
    for limit in limits {
        let flag = limit.get_long().unwrap_or_default();
        let default = limit.get_default_values().first().map(|value| value.to_string_lossy()).unwrap_or_default();
        let variable = limit.get_env().map(|name| name.to_string_lossy()).unwrap_or_default();
        assert_eq!(variable, format!("SIMPLETUNER_{}", flag.to_uppercase().replace('-', "_")));
        let row = GUIDE.lines().find(|line| line.starts_with(&format!("| `--{flag}` | `{variable}` | ")));
        let is_documented = row.is_some_and(|row| row.ends_with(&format!("; `{default}` |")));
        assert!(
            is_documented && !default.is_empty(),
            "docs/WORKER.md does not give the default {default} of --{flag}: {row:?}"
        );
    }
}

#[test]
fn guide_lists_every_exit_code_and_heading() {
    for code in [exit::OK, exit::ERROR, exit::USAGE, exit::UNAVAILABLE, exit::TOKEN_REJECTED, exit::CONFIG] {
        assert!(GUIDE.contains(&format!("\n| {code} | ")), "{code}");
    }
    for headline in [
        "Connection refused",
        "Invalid token",
        "SSL certificate verify failed",
        "Heartbeat timeout (120s)",
        "Process crash",
        "No idle workers",
        "GPU requirements not met",
    ] {
        assert!(GUIDE.lines().any(|line| line.starts_with("### ") && line.contains(headline)), "{headline}");
    }
}

/// The value of a setting in the systemd unit.
fn unit(name: &str) -> &'static str {
    let found = UNIT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("the unit has no {name}"))
}

#[test]
fn systemd_unit_matches_the_program() {
    let permanent = format!("{} {}", exit::TOKEN_REJECTED, exit::CONFIG);
    assert_eq!(unit("RestartPreventExitStatus"), permanent);
    assert_eq!((unit("KillMode"), unit("Delegate"), unit("Type")), ("process", "yes", "notify"));
    assert_eq!(unit("DelegateSubgroup"), crate::worker::limits::cgroups::AGENT_CGROUP);
    let mut command = unit("ExecStart").split_ascii_whitespace();
    assert_eq!(command.next(), Some("/usr/local/bin/simpletuner-worker"));
    let parsed = Cli::try_parse_from(std::iter::once("simpletuner-worker").chain(command));
    assert!(parsed.is_ok_and(|cli| cli.agent.worker_token_file.is_some_and(|file| file.ends_with("worker-token"))));
    let known_flags = flags();
    for line in UNIT.lines().filter_map(|line| line.strip_prefix("Environment=SIMPLETUNER_")) {
        let name = format!("SIMPLETUNER_{}", line.split('=').next().unwrap_or_default());
        assert!(known_flags.iter().any(|(_, variable)| variable.as_ref() == Some(&name)), "{name}");
    }
}

#[test]
fn systemd_unit_allows_the_full_sandbox() {
    let mount_settings = ["ProtectHostname", "ProtectKernelLogs", "ProtectKernelTunables", "ProtectProc", "ProcSubset"];
    let forbidden = [&mount_settings[..], &["RestrictNamespaces"]].concat();
    let setting = UNIT.lines().find(|line| forbidden.iter().any(|name| line.starts_with(&format!("{name}="))));
    assert_eq!(setting, None, "no job could mount a /proc of its own");
}
