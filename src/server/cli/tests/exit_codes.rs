//! Errors and their exit codes.

use std::net::SocketAddr;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::Redirect;
use axum::routing::any;
use clap::{CommandFactory, Parser};
use tokio::net::TcpListener;

use super::harness::{CliHarness, client};
use crate::cli::{Cli, Command, generate};
use crate::tests::harness::{Actor, TestServer};

/// A server that returns this response to every request.
async fn serve_response(status: StatusCode, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(any(async move || (status, body)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn each_error_has_its_exit_code() {
    let harness = CliHarness::start().await;
    let list = ["jobs", "list"];
    harness.run_as(&client(harness.address, None), &list).await.expect_failure(77, "SIMPLETUNER_API_TOKEN");
    harness.run_as(&harness.client("st_wrong"), &list).await.expect_failure(77, "(wrong_token)");
    let unused_address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    harness
        .run_as(&client(unused_address, None), &list)
        .await
        .expect_failure(69, "cannot reach a server at http://127.0.0.1:");
    for (status, body, code, message) in [
        (StatusCode::OK, "<html>a router's page</html>", 69, "no orchestrator at"),
        (StatusCode::NOT_FOUND, "", 69, "check --url"),
        (StatusCode::BAD_GATEWAY, "", 75, "responds with 502"),
        (StatusCode::SERVICE_UNAVAILABLE, "", 75, "responds with 503"),
        (StatusCode::FOUND, "", 69, "check --url"),
        (StatusCode::OK, "{\"jobs\": 5}", 1, "unexpected response"),
    ] {
        let address = serve_response(status, body).await;
        harness.run_as(&client(address, None), &list).await.expect_failure(code, message);
    }
    harness.run(&["jobs", "list", "--json", "--quiet"]).await.expect_failure(2, "cannot be used with");
}

#[tokio::test]
async fn redirect_does_not_leak_the_token() {
    let harness = CliHarness::start().await;
    let list = ["jobs", "list"];
    let (requested, was_requested) = tokio::sync::watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = listener.local_addr().expect("an address");
    let router = Router::new().fallback(any(async move || requested.send_replace(true).to_string()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let first = listener.local_addr().expect("an address");
    let target_url = format!("http://{target}/api/queue");
    let router = Router::new().fallback(any(async move || Redirect::temporary(&target_url)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    harness.run_as(&client(first, Some("st_secret")), &list).await.expect_failure(69, "check --url");
    assert!(!*was_requested.borrow(), "the redirect was followed");
}

#[tokio::test]
async fn a_server_without_accounts_needs_no_token() {
    let harness = CliHarness::with_server(TestServer::start_as(crate::http::state::AuthMode::SingleUser).await).await;
    let anonymous = client(harness.address, None);
    let check = harness.run_as(&anonymous, &["auth", "login-check", "--json"]).await.json();
    assert_eq!(check["name"], "local-user");
    harness.run_as(&anonymous, &["auth", "tokens", "create", "x"]).await.expect_failure(1, "(no_accounts)");
}

#[test]
fn guide_lists_every_command() {
    const GUIDE: &str = include_str!("../../../../docs/CLI.md");

    fn leaf_commands(command: &clap::Command, path: &str) -> Vec<String> {
        let path = format!("{path} {}", command.get_name());
        let subcommands: Vec<String> =
            command.get_subcommands().flat_map(|subcommand| leaf_commands(subcommand, &path)).collect();
        if subcommands.is_empty() { vec![path.trim().to_owned()] } else { subcommands }
    }

    let nouns = ["workers", "jobs", "configs", "auth", "audit"];
    let root = Cli::command();
    let named = root.get_subcommands().filter(|noun| nouns.contains(&noun.get_name()));
    let commands: Vec<String> = named.flat_map(|noun| leaf_commands(noun, "")).collect();
    assert!(commands.len() > 30, "{commands:?}");
    for command in &commands {
        assert!(GUIDE.contains(&format!("| `{command}` |")), "docs/CLI.md has no row for `{command}`");
    }
    let rows = GUIDE.lines().filter(|line| nouns.iter().any(|noun| line.starts_with(&format!("| `{noun} "))));
    assert_eq!(rows.count(), commands.len(), "docs/CLI.md has rows of commands that do not exist");
}

#[test]
fn command_line_definition_is_valid_and_documented() {
    Cli::command().debug_assert();
    let mut out = Vec::new();
    let run = |args: &[&str], out: &mut Vec<u8>| {
        let cli = Cli::try_parse_from([&["simpletuner"], args].concat()).expect("a valid command");
        super::with_offline_output(out, |screen| match cli.command {
            Command::Completions(args) => generate::completions(&args, Cli::command(), screen),
            Command::Man(args) => generate::man(&args, Cli::command(), screen),
            other => panic!("{other:?}"),
        })
    };
    for shell in ["bash", "zsh", "fish"] {
        out.clear();
        run(&["completions", shell], &mut out).expect("written");
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("simpletuner") && text.contains("reset-password"), "{shell}");
    }
    out.clear();
    run(&["man"], &mut out).expect("written");
    assert!(String::from_utf8_lossy(&out).contains(".TH simpletuner"), "{}", String::from_utf8_lossy(&out));
    out.clear();
    run(&["man", "jobs", "submit"], &mut out).expect("written");
    let text = String::from_utf8_lossy(&out);
    assert!(text.contains("idempotency") && !text.contains("st_"), "{text}");
    assert_eq!(run(&["man", "jobs", "sbmit"], &mut out).expect_err("no command").code(), 2);
}

#[tokio::test]
async fn unauthenticated_error_names_existing_commands() {
    let server = TestServer::start().await;
    let response = server.get(&Actor::Unauthenticated, "/api/queue").await;
    assert_eq!(response.headers[header::WWW_AUTHENTICATE], "Bearer");
    let problem = response.expect_problem(401, "not_authenticated");
    let detail = problem["detail"].as_str().expect("text");
    for words in ["`Authorization: Bearer …`", "`X-API-Key: …`", "on the account page"] {
        assert!(detail.contains(words), "{words}: {detail}");
    }
    let quoted = detail.split('`').skip(1).step_by(2);
    let commands: Vec<&str> = quoted.filter(|words| words.starts_with("simpletuner ")).collect();
    let [creates_token, needs_no_token] = commands[..] else { panic!("two commands are named: {detail}") };
    assert!(
        creates_token.contains("auth tokens create") && needs_no_token.ends_with("server --single-user"),
        "{detail}"
    );
    for command in commands {
        Cli::try_parse_from(command.split(' ')).unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}
