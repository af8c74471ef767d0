//! What goes wrong, and with which exit code.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::response::Redirect;
use axum::routing::any;
use clap::{CommandFactory, Parser};
use tokio::net::TcpListener;

use super::desk::{Desk, client};
use crate::cli::{Cli, Command, generate};
use crate::tests::harness::Server;

/// Somebody who gives this answer to everything.
async fn answering(status: StatusCode, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(any(async move || (status, body)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test]
async fn each_refusal_has_its_exit_code() {
    let desk = Desk::open().await;
    let list = ["jobs", "list"];
    desk.run_by(&client(desk.address, None), &list).await.refused(77, "SIMPLETUNER_API_TOKEN");
    desk.run_by(&desk.client("st_wrong"), &list).await.refused(77, "(wrong_token)");
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    desk.run_by(&client(closed, None), &list).await.refused(69, "cannot reach a server at http://127.0.0.1:");
    for (status, body, code, words) in [
        (StatusCode::OK, "<html>a router's page</html>", 69, "there is no orchestrator at"),
        (StatusCode::NOT_FOUND, "", 69, "check --url"),
        (StatusCode::BAD_GATEWAY, "", 75, "answers 502"),
        (StatusCode::SERVICE_UNAVAILABLE, "", 75, "answers 503"),
        (StatusCode::FOUND, "", 69, "check --url"),
        (StatusCode::OK, "{\"jobs\": 5}", 1, "is the server a newer one?"),
    ] {
        let address = answering(status, body).await;
        desk.run_by(&client(address, None), &list).await.refused(code, words);
    }
    desk.run(&["jobs", "list", "--json", "--quiet"]).await.refused(2, "cannot be used with");
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_token_away() {
    let desk = Desk::open().await;
    let list = ["jobs", "list"];
    let (asked, seen) = tokio::sync::watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let elsewhere = listener.local_addr().expect("an address");
    let router = Router::new().fallback(any(async move || asked.send_replace(true).to_string()));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let first = listener.local_addr().expect("an address");
    let to = format!("http://{elsewhere}/api/queue");
    let router = Router::new().fallback(any(async move || Redirect::temporary(&to)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    desk.run_by(&client(first, Some("st_secret")), &list).await.refused(69, "check --url");
    assert!(!*seen.borrow(), "it was followed");
}

#[tokio::test]
async fn a_server_without_accounts_needs_no_token() {
    let desk = Desk::with(Server::start_as(crate::http::access::Mode::SingleUser).await).await;
    let nobody = client(desk.address, None);
    let check = desk.run_by(&nobody, &["auth", "login-check", "--json"]).await.json();
    assert_eq!(check["name"], "local-user");
    desk.run_by(&nobody, &["auth", "tokens", "create", "x"]).await.refused(1, "(no_accounts)");
}

#[test]
fn the_guide_names_every_command() {
    const GUIDE: &str = include_str!("../../../../docs/CLI.md");

    fn leaves(command: &clap::Command, path: &str) -> Vec<String> {
        let path = format!("{path} {}", command.get_name());
        let below: Vec<String> = command.get_subcommands().flat_map(|below| leaves(below, &path)).collect();
        if below.is_empty() { vec![path.trim().to_owned()] } else { below }
    }

    let nouns = ["workers", "jobs", "configs", "auth", "audit"];
    let commands = Cli::command();
    let named = commands.get_subcommands().filter(|noun| nouns.contains(&noun.get_name()));
    let leaves: Vec<String> = named.flat_map(|noun| leaves(noun, "")).collect();
    assert!(leaves.len() > 30, "{leaves:?}");
    for leaf in &leaves {
        assert!(GUIDE.contains(&format!("| `{leaf}` |")), "docs/CLI.md has no row for `{leaf}`");
    }
    let rows = GUIDE.lines().filter(|line| nouns.iter().any(|noun| line.starts_with(&format!("| `{noun} "))));
    assert_eq!(rows.count(), leaves.len(), "docs/CLI.md has rows of commands that are not there");
}

#[test]
fn the_definition_is_sound_and_describes_itself() {
    Cli::command().debug_assert();
    let mut out = Vec::new();
    let run = |args: &[&str], out: &mut Vec<u8>| {
        let cli = Cli::try_parse_from([&["simpletuner"], args].concat()).expect("well written");
        super::offline_screen(out, |screen| match cli.command {
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
