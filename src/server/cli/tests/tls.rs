//! How a command knows its server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use app::protocol::fingerprint::Fingerprint;
use app::remote::Trust;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use crate::boot::connections::Connections;
use crate::boot::serve::{Patience, serve_within};
use crate::cli::Secret;
use crate::cli::client::Client;
use crate::cli::client::key::Key;
use crate::cli::client::way::Way;
use crate::clock::{Clock, SystemClock};
use crate::tests::harness::{ADMIN, Server};
use crate::tls::{Pair, Tls, self_signed};

fn pair(directory: &Path) -> Pair {
    let names = ["localhost".to_owned()];
    self_signed::keep(directory, &names, SystemClock.now()).expect("a pair")
}

fn client(address: SocketAddr, scheme: &str, trust: Trust) -> Client {
    let way = Way {
        url: format!("{scheme}://localhost:{}/", address.port()).parse().expect("a URL"),
        trust,
        key: Key::Token(Secret(ADMIN.to_owned())),
        warnings: Vec::new(),
    };
    Client::over(way).expect("a client")
}

#[tokio::test]
async fn servers_are_known_by_key_or_authority_and_strangers_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let pair = pair(directory.path());
    let tls = Tls::open(pair.clone(), &SystemClock).expect("a certificate");
    let desk = Desk::with(Server::start_over(tls.clone()).await).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (router, acceptor) = (desk.server.router.clone(), tls.acceptor());
    tokio::spawn(async move {
        let never = CancellationToken::new();
        let room = Arc::new(Connections::new(64, 64, Vec::new()));
        serve_within(Patience::default(), listener, router, Some(acceptor), &room, &never).await;
    });

    let check = ["auth", "login-check", "--quiet"];
    for trust in [Trust::Pinned(tls.fingerprint()), Trust::Only(pair.chain.clone()), Trust::Anything] {
        assert_eq!(desk.run_by(&client(address, "https", trust), &check).await.line(), "admin");
    }
    let wrong = Trust::Pinned(Fingerprint([1; 32]));
    desk.run_by(&client(address, "https", wrong), &check)
        .await
        .refused(69, "another key than --orchestrator-fingerprint");
    let strict = client(address, "https", Trust::System);
    desk.run_by(&strict, &check).await.refused(69, "SSL certificate verify failed");
    desk.run_by(&client(address, "http", Trust::System), &check).await.refused(1, "(speak_tls)");
    desk.run_by(&client(desk.address, "https", Trust::Anything), &check).await.refused(69, "it speaks no TLS there");
}
