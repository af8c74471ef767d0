use std::path::Path;

use clap::{ArgAction, CommandFactory, Parser};

use super::*;
use crate::cli::Cli;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

fn args(line: &[&str]) -> ServerArgs {
    #[derive(Parser)]
    struct ServerArgsParser {
        #[command(flatten)]
        server: ServerArgs,
    }
    ServerArgsParser::try_parse_from([&["server"], line].concat()).expect("valid flags").server
}

/// Returns the results of `config check`, each with its level.
async fn checks_for(data: &Path, flags: &[&str]) -> Vec<(&'static str, String)> {
    let data = data.to_str().expect("text");
    let checks = check_settings(&args(&[&["--data-dir", data, "--port", "0"], flags].concat())).await;
    checks.iter().map(|check| (check.level(), check.message().to_owned())).collect()
}

fn has_check(checks: &[(&str, String)], level: &str, words: &str) -> bool {
    checks.iter().any(|(check_level, message)| *check_level == level && message.contains(words))
}

#[test]
fn settings_are_shown_with_source_and_without_secrets() {
    let line = ["simpletuner", "config", "show", "--port", "9000", "--database-url", "postgres://ada:secret@h/db"];
    let matches = Cli::command().get_matches_from(line);
    let set_args = matches.subcommand().and_then(|(_, config)| config.subcommand()).expect("show").1;
    let settings = list_settings(set_args);
    let setting_of =
        |flag: &str| settings.iter().find(|setting| setting.flag == flag).unwrap_or_else(|| panic!("no {flag}"));
    assert_eq!((setting_of("--port").value.as_deref(), &*setting_of("--port").source), (Some("9000"), "flag"));
    assert_eq!(
        (setting_of("--disk-min-free").value.as_deref(), &*setting_of("--disk-min-free").source),
        (Some("2GiB"), "default")
    );
    assert_eq!(setting_of("--heartbeat-timeout").variable.as_deref(), Some("SIMPLETUNER_HEARTBEAT_TIMEOUT"));
    assert_eq!(setting_of("--configs-dir").value, None);
    for as_json in [false, true] {
        let mut out = Vec::new();
        print_settings(&settings, as_json, &mut out).expect("a buffer");
        let text = String::from_utf8(out).expect("text");
        assert!(!text.contains("ada:secret") && !text.contains("secret@") && text.contains("(not shown)"), "{text}");
    }
}

#[tokio::test]
async fn valid_settings_pass_the_check() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let checks = checks_for(data.path(), &[]).await;
    assert!(checks.iter().all(|(level, _)| *level == "ok"), "{checks:?}");
    assert!(has_check(&checks, "ok", "a new database will be created"));
    assert_eq!(data.path().read_dir().expect("readable").count(), 0, "the check creates nothing");
    SqliteStore::open(data.path(), "c_1").await.expect("fresh").close().await;
    assert!(has_check(&checks_for(data.path(), &[]).await, "ok", "the database has schema"));
    for new in [&data.path().join("not/yet"), Path::new("not-made-yet")] {
        assert!(has_check(&checks_for(new, &[]).await, "ok", "the data directory is"), "{}", new.display());
    }
}

#[tokio::test]
async fn invalid_settings_are_reported() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let file = data.path().join("file");
    std::fs::write(&file, "short").expect("written");
    let file = file.to_str().expect("text");
    for (flags, words) in [
        (&["--metrics-addr", address.as_str()][..], "is in use"),
        (&["--single-user", "--host", "0.0.0.0"], "--single-user"),
        (&["--ssl-cert", file], "add --ssl"),
        (&["--ssl", "--ssl-cert", file, "--ssl-key", file], "file"),
        (&["--configs-dir", "/nowhere"], "/nowhere"),
        (&["--bootstrap-admin-token-file", file], "too short"),
        (&["--bootstrap-admin-token-file", "/nowhere"], "cannot read"),
        (&["--database-url", "mysql://x"], "postgres://"),
        (&["--data-dir", file], "is not a directory"),
    ] {
        // A flag must not be given twice.
        let data = if flags[0] == "--data-dir" { Path::new(flags[1]) } else { data.path() };
        let flags = if flags[0] == "--data-dir" { &[] } else { flags };
        let checks = checks_for(data, flags).await;
        assert!(has_check(&checks, "error", words), "{flags:?}: {checks:?}");
    }
    drop(listener);
}

#[tokio::test]
async fn database_of_a_newer_version_is_reported() {
    let data = tempfile::tempdir().expect("a temporary directory");
    SqliteStore::open(data.path(), "c_1").await.expect("fresh").close().await;
    let file = format!("sqlite://{}/orchestrator.db", data.path().display());
    let pool = sqlx::SqlitePool::connect(&file).await.expect("a database");
    sqlx::query(
        "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )
    .execute(&pool)
    .await
    .expect("written");
    assert!(has_check(&checks_for(data.path(), &[]).await, "warning", "newer version"));
    sqlx::query("UPDATE generation SET oldest_schema = 9999").execute(&pool).await.expect("written");
    pool.close().await;
    assert!(has_check(&checks_for(data.path(), &[]).await, "error", "newer version"));
}

/// Returns the switches of a command and its subcommands that have a variable.
fn switches(command: &Command) -> Vec<Arg> {
    let is_switch =
        |argument: &&Arg| matches!(argument.get_action(), ArgAction::SetTrue) && argument.get_env().is_some();
    let direct = command.get_arguments().filter(is_switch).cloned();
    direct.chain(command.get_subcommands().flat_map(switches)).collect()
}

#[test]
fn every_switch_accepts_the_same_values_from_its_variable() {
    let switches = switches(&Cli::command());
    for flag in ["ssl", "single-user", "ignore-reported-labels"] {
        assert!(switches.iter().any(|switch| switch.get_long() == Some(flag)), "--{flag}");
    }
    for switch in switches {
        // Variables go through the value parser. The test sets none, as they belong to the whole process.
        let id = switch.get_id().to_string();
        let flag = format!("--{}", switch.get_long().expect("a long name"));
        let command = Command::new("server").arg(switch.action(ArgAction::Set));
        let read = |value| {
            let matches = command.clone().try_get_matches_from(["server", &flag, value]);
            matches.ok().and_then(|matches| matches.get_one::<bool>(&id).copied())
        };
        for (yes, no) in [("1", "0"), ("true", "false"), ("yes", "no"), ("on", "off"), ("TRUE", "False")] {
            assert_eq!((read(yes), read(no)), (Some(true), Some(false)), "{flag} {yes} {no}");
        }
        assert_eq!(read("maybe"), None, "{flag}");
    }
}

#[test]
fn unknown_variables_are_reported() {
    let names = ["SIMPLETUNER_PORT", "SIMPLETUNER_PROT", "SIMPLETUNER_WORKER_TOKEN", "PATH"].map(str::to_owned);
    let found = unknown_variables(names.into_iter());
    assert_eq!(found.len(), 1);
    assert!(found[0].message().contains("SIMPLETUNER_PROT"));
}

#[test]
fn guide_lists_exactly_all_settings_with_defaults() {
    const GUIDE: &str = include_str!("../../../../docs/SETTINGS.md");
    let rows = GUIDE.lines().filter_map(|line| line.strip_prefix("| `--")?.strip_suffix('|'));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let rows: Vec<Vec<&str>> = rows.into_iter().filter(|row| row.len() == 4).collect();
    let cli = Cli::command();
    let server = cli.find_subcommand("server").expect("a server");
    let flags: Vec<&Arg> =
        server.get_arguments().filter(|flag| flag.get_env().is_some() && !flag.is_hide_set()).collect();
    assert_eq!(rows.len(), flags.len(), "a row for each setting");
    for flag in flags {
        let name = flag.get_long().expect("a long name");
        let variable = format!("`{}`", flag.get_env().expect("a variable").to_string_lossy());
        let row = rows.iter().find(|row| row[0] == format!("{name}`")).unwrap_or_else(|| panic!("no row of --{name}"));
        assert_eq!(row[1], variable, "--{name}");
        let default = flag.get_default_values().first().map(|value| format!("`{}`", value.to_string_lossy()));
        let is_documented = match flag.get_action() {
            ArgAction::SetTrue => row[2] == "off",
            // A default that depends on the host is described in words, or is a path.
            _ => default.as_deref().map_or(!row[2].contains(|c: char| c.is_ascii_digit()), |default| row[2] == default),
        };
        assert!(is_documented, "docs/SETTINGS.md has for --{name}: {:?}; the default is {default:?}", row[2]);
    }
}
