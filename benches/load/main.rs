//! What the server bears: many agents that train nothing, on real sockets, against the program in `dist/`.
//!
//! `cargo run --release --no-default-features --features worker --example load [sqlite|postgres] [FIGURE…]`, with FIGUREs out of `dispatch`, `lives`, `heartbeats`,
//! `streams`, `recovery`, `metrics`, `access`, `stop`. Load and server share the machine's cores. `SIMPLETUNER_DIST` names the programs;
//! `SIMPLETUNER_TEST_POSTGRES` a PostgreSQL server. Nothing fails because of a figure: the targets stand beside them.

mod agent;
mod figures;
mod ops;
mod server;

use server::Server;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let postgres = arguments.iter().any(|argument| argument == "postgres");
    let wanted = |figure: &str| {
        let named: Vec<&String> =
            arguments.iter().filter(|argument| !["sqlite", "postgres"].contains(&argument.as_str())).collect();
        named.is_empty() || named.iter().any(|argument| *argument == figure)
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        println!("on {}", if postgres { "PostgreSQL" } else { "SQLite" });
        if wanted("dispatch") {
            figures::dispatch(&Server::start(postgres).await).await;
        }
        if wanted("lives") {
            figures::lives(&Server::start(postgres).await).await;
        }
        if wanted("heartbeats") {
            figures::heartbeats(&Server::start(postgres).await).await;
        }
        if wanted("streams") {
            figures::streams(&Server::start(postgres).await).await;
        }
        if wanted("metrics") {
            ops::metrics(&Server::start(postgres).await).await;
        }
        if wanted("access") {
            ops::access(&Server::start(postgres).await).await;
        }
        if wanted("stop") {
            ops::stop(Server::start(postgres).await).await;
        }
        if wanted("recovery") {
            figures::recovery(Server::start(postgres).await).await;
        }
    });
}
