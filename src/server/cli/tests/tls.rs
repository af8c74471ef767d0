//! How a command verifies its server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use app::protocol::system::fingerprint::Fingerprint;
use app::remote::ServerTrust;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::harness::CliHarness;
use crate::args::SecretString;
use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::cli::client::Client;
use crate::cli::client::connection::Connection;
use crate::cli::client::credential::ApiCredential;
use crate::clock::{Clock, SystemClock};
use crate::tests::harness::{ADMIN, TestServer};
use crate::tls::{CertificatePaths, Tls, self_signed};

fn certificate_paths(directory: &Path) -> CertificatePaths {
    let names = ["localhost".to_owned()];
    self_signed::load_or_create(directory, &names, SystemClock.now()).expect("a certificate and its key")
}

fn client(address: SocketAddr, scheme: &str, trust: ServerTrust) -> Client {
    let connection = Connection {
        url: format!("{scheme}://localhost:{}/", address.port()).parse().expect("a URL"),
        trust,
        credential: ApiCredential::Token(SecretString(ADMIN.to_owned())),
        warnings: Vec::new(),
    };
    Client::new(connection).expect("a client")
}

#[tokio::test]
async fn servers_are_verified_by_key_or_authority() {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = certificate_paths(directory.path());
    let tls = Tls::open(paths.clone(), &SystemClock).expect("a certificate");
    let harness = CliHarness::with_server(TestServer::start_with_tls(tls.clone()).await).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (router, acceptor) = (harness.server.router.clone(), tls.acceptor());
    tokio::spawn(async move {
        let never = CancellationToken::new();
        let connections = Arc::new(ConnectionLimiter::new(64, 64, Vec::new()));
        serve_with_timeouts(ConnectionTimeouts::default(), listener, router, Some(acceptor), &connections, &never)
            .await;
    });

    let check = ["auth", "login-check", "--quiet"];
    for trust in
        [ServerTrust::PinnedKey(tls.fingerprint()), ServerTrust::CaFile(paths.chain.clone()), ServerTrust::AcceptAny]
    {
        assert_eq!(harness.run_as(&client(address, "https", trust), &check).await.single_line(), "admin");
    }
    let other_key = ServerTrust::PinnedKey(Fingerprint([1; 32]));
    harness
        .run_as(&client(address, "https", other_key), &check)
        .await
        .expect_failure(69, "different key than --orchestrator-fingerprint");
    let client_without_trust = client(address, "https", ServerTrust::SystemRoots);
    harness.run_as(&client_without_trust, &check).await.expect_failure(69, "SSL certificate verify failed");
    harness
        .run_as(&client(address, "http", ServerTrust::SystemRoots), &check)
        .await
        .expect_failure(1, "(tls_required)");
    harness
        .run_as(&client(harness.address, "https", ServerTrust::AcceptAny), &check)
        .await
        .expect_failure(69, "the server does not use TLS");
}
