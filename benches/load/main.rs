//! The load that the server sustains: many agents without trainers, on real sockets, with the program in `dist/`.
//!
//! `cargo run --release --no-default-features --features worker --example load [sqlite|postgres] [FIGURE…]`, where
//! FIGURE is `dispatch`, `lives`, `heartbeats`, `streams`, `recovery`, `metrics`, `reads`, `access`, `stop` or, on
//! PostgreSQL, `servers`. Load and server share the machine's cores. `SIMPLETUNER_DIST` is the directory of the
//! programs, `SIMPLETUNER_TEST_POSTGRES` the address of a PostgreSQL server. A missed target is not an error: targets
//! are only printed next to the figures.

mod agent;
mod figures;
mod ops;
mod server;
mod servers;

use server::Server;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let postgres = arguments.iter().any(|argument| argument == "postgres");
    let is_selected = |figure: &str| {
        let selected: Vec<&String> =
            arguments.iter().filter(|argument| !["sqlite", "postgres"].contains(&argument.as_str())).collect();
        selected.is_empty() || selected.iter().any(|argument| *argument == figure)
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        println!("on {}", if postgres { "PostgreSQL" } else { "SQLite" });
        if is_selected("dispatch") {
            figures::dispatch(&Server::start(postgres).await).await;
        }
        if is_selected("lives") {
            figures::lives(&Server::start(postgres).await).await;
        }
        if is_selected("heartbeats") {
            figures::heartbeats(&Server::start(postgres).await).await;
        }
        if is_selected("streams") {
            figures::streams(&Server::start(postgres).await).await;
        }
        if is_selected("metrics") {
            ops::metrics(&Server::start(postgres).await).await;
        }
        if is_selected("reads") {
            ops::reads(&Server::start(postgres).await).await;
        }
        if is_selected("access") {
            ops::access(&Server::start(postgres).await).await;
        }
        if is_selected("stop") {
            ops::stop(Server::start(postgres).await).await;
        }
        if postgres && is_selected("servers") {
            servers::servers().await;
        }
        if is_selected("recovery") {
            figures::recovery(Server::start(postgres).await).await;
        }
    });
}
