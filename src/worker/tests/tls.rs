//! Which orchestrators the agent trusts, on real connections.

use std::io;
use std::path::Path;
use std::sync::Arc;

use app::protocol::system::fingerprint::Fingerprint;
use nix::sys::signal::Signal;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

const FAILED: &str = "SSL certificate verify failed";

/// An orchestrator, and its certificate's data for agents.
pub struct TlsOrchestrator {
    pub fake: FakeOrchestrator,
    /// The certificate of the authority that signed the orchestrator's certificate.
    pub authority: String,
    pub fingerprint: Fingerprint,
}

/// An orchestrator whose certificate has this name.
pub async fn orchestrator(name: &str) -> io::Result<TlsOrchestrator> {
    orchestrator_expiring(name, 2100).await
}

/// The same, with a certificate that expires at the beginning of this year.
pub async fn orchestrator_expiring(name: &str, year: i32) -> io::Result<TlsOrchestrator> {
    let authority_key = KeyPair::generate().map_err(io::Error::other)?;
    let mut authority = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    authority.distinguished_name.push(DnType::CommonName, "authority of the tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).map_err(io::Error::other)?;
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let signed = CertificateParams::new(vec![name.to_owned()])
        .and_then(|mut params| {
            params.not_after = date_time_ymd(year, 1, 1);
            params.signed_by(&key, &Issuer::from_params(&authority, &authority_key))
        })
        .map_err(io::Error::other)?;
    serve(&signed, &key, root.pem()).await
}

/// An orchestrator with a self-signed certificate, as `openssl req -x509` creates it.
async fn self_signed() -> io::Result<TlsOrchestrator> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).map_err(io::Error::other)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    serve(&certificate, &key, certificate.pem()).await
}

async fn serve(certificate: &Certificate, key: &KeyPair, authority: String) -> io::Result<TlsOrchestrator> {
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], der)
        })
        .map_err(io::Error::other)?;
    let fake = FakeOrchestrator::start_with_tls(TlsAcceptor::from(Arc::new(config))).await?;
    let fingerprint = Fingerprint(Sha256::digest(key.subject_public_key_info()).into());
    Ok(TlsOrchestrator { fake, authority, fingerprint })
}

fn host(flags: &[&str]) -> io::Result<TestHost> {
    Ok(TestHost::with_script("")?.flags(flags))
}

/// Waits for the agent's registration and stops it. Returns its messages about trust, and all its output.
async fn wait_for_registration_and_stop(
    server: &TlsOrchestrator,
    host: TestHost,
) -> io::Result<(serde_json::Value, String)> {
    let agent = host.start(&server.fake)?;
    let registration = server.fake.wait_until("a registration", |shared| shared.registrations.last().cloned()).await;
    agent.signal(Signal::SIGTERM)?;
    let (_, output) = agent.wait_for_exit().await?;
    Ok((registration["tls_verify"].clone(), output))
}

/// Waits until an ephemeral agent has given up; returns its output.
async fn wait_for_rejection(server: &TlsOrchestrator, host: TestHost) -> io::Result<String> {
    let (code, output) = host.flags(&["--give-up-after", "1"]).start(&server.fake)?.wait_for_exit().await?;
    assert_eq!(code, Some(69), "the agent retries as after any lost connection: {output}");
    assert!(
        server.fake.state().registrations.is_empty(),
        "the agent sends nothing to an unverified server, least of all its token"
    );
    assert!(output.contains(FAILED), "{output}");
    Ok(output)
}

fn write(path: &Path, text: &str) -> io::Result<String> {
    std::fs::write(path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

#[tokio::test]
async fn untrusted_certificate_is_rejected_with_advice() -> io::Result<()> {
    let server = orchestrator("localhost").await?;
    let output = wait_for_rejection(&server, host(&[])?).await?;
    for advice in ["--orchestrator-fingerprint sha256:…", "--ca-file", "--ssl-no-verify is for development only"] {
        assert!(output.contains(advice), "{advice}: {output}");
    }
    Ok(())
}

#[tokio::test]
async fn system_trust_store_is_used() -> io::Result<()> {
    let server = orchestrator("localhost").await?;
    let mut host = host(&[])?;
    let file = write(&host.path().join("system.pem"), &server.authority)?;
    host.variables.push(("SSL_CERT_FILE".to_owned(), file));
    assert_eq!(wait_for_registration_and_stop(&server, host).await?.0, true);
    Ok(())
}

#[tokio::test]
async fn ca_file_replaces_the_system_trust_store() -> io::Result<()> {
    let (server, other) = (orchestrator("localhost").await?, orchestrator("localhost").await?);
    let flag_host = host(&[])?;
    let file = write(&flag_host.path().join("ca.pem"), &server.authority)?;
    assert_eq!(wait_for_registration_and_stop(&server, flag_host.flags(&["--ca-file", &file])).await?.0, true);

    let mut variable_host = host(&[])?;
    let file = write(&variable_host.path().join("ca.pem"), &server.authority)?;
    variable_host.variables.push(("SIMPLETUNER_CA_FILE".to_owned(), file));
    wait_for_rejection(&other, variable_host).await?;
    Ok(())
}

#[tokio::test]
async fn certificate_for_another_name_is_rejected() -> io::Result<()> {
    let server = orchestrator("elsewhere.example").await?;
    let host = host(&[])?;
    let file = write(&host.path().join("ca.pem"), &server.authority)?;
    let output = wait_for_rejection(&server, host.flags(&["--ca-file", &file])).await?;
    assert!(output.contains("a certificate for other names"), "{output}");
    Ok(())
}

#[tokio::test]
async fn only_the_pinned_key_is_trusted() -> io::Result<()> {
    let (server, other) = (orchestrator("elsewhere.example").await?, orchestrator("localhost").await?);
    let pin = server.fingerprint.to_string();
    assert_eq!(wait_for_registration_and_stop(&server, host(&["--orchestrator-fingerprint", &pin])?).await?.0, true);

    let mut variable_host = host(&[])?;
    variable_host.variables.push(("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT".to_owned(), pin));
    let output = wait_for_rejection(&other, variable_host).await?;
    let fingerprint_text = format!("its fingerprint is {}", other.fingerprint);
    assert!(
        output.contains("has a different key than --orchestrator-fingerprint") && output.contains(&fingerprint_text),
        "{output}"
    );
    Ok(())
}

#[tokio::test]
async fn self_signed_certificate_is_rejected_with_advice() -> io::Result<()> {
    let server = self_signed().await?;
    let host_with_ca_file = host(&[])?;
    let file = write(&host_with_ca_file.path().join("ca.pem"), &server.authority)?;
    for host in [host(&[])?, host_with_ca_file.flags(&["--ca-file", &file])] {
        let output = wait_for_rejection(&server, host).await?;
        for advice in ["a CA certificate as its server certificate", "--orchestrator-fingerprint sha256:…", "CA:FALSE"]
        {
            assert!(output.contains(advice), "{advice}: {output}");
        }
    }
    let pin = server.fingerprint.to_string();
    assert_eq!(wait_for_registration_and_stop(&server, host(&["--orchestrator-fingerprint", &pin])?).await?.0, true);
    Ok(())
}

#[tokio::test]
async fn no_verify_warns_at_each_start_and_is_reported() -> io::Result<()> {
    let server = orchestrator("elsewhere.example").await?;
    let (tls_verify, output) = wait_for_registration_and_stop(&server, host(&["--ssl-no-verify"])?).await?;
    assert_eq!(tls_verify, false);
    assert!(output.contains("anyone on the network path can pose as the orchestrator"), "{output}");

    let mut variable_host = host(&[])?;
    variable_host.variables.push(("SIMPLETUNER_SSL_NO_VERIFY".to_owned(), "yes".to_owned()));
    assert_eq!(wait_for_registration_and_stop(&server, variable_host).await?.0, false);
    Ok(())
}

#[tokio::test]
async fn conflicting_flags_are_a_usage_error() -> io::Result<()> {
    let server = orchestrator("localhost").await?;
    let pin = server.fingerprint.to_string();
    for flags in [["--ssl-no-verify", "--orchestrator-fingerprint", &pin], ["--ssl-no-verify", "--ca-file", "ca.pem"]] {
        let (code, output) = host(&flags)?.start(&server.fake)?.wait_for_exit().await?;
        assert_eq!(code, Some(2), "{output}");
        assert!(output.contains("--ssl-no-verify") && output.contains("remove it"), "{output}");
    }
    Ok(())
}
