//! Whom the agent believes to be its orchestrator, on real connections.

use std::io;
use std::path::Path;
use std::sync::Arc;

use app::protocol::fingerprint::Fingerprint;
use nix::sys::signal::Signal;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PublicKeyData, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;

use super::fake::Fake;
use super::host::Host;

const FAILED: &str = "SSL certificate verify failed";

/// An orchestrator, and what agents could know of it.
pub struct Known {
    pub fake: Fake,
    /// The certificate of the authority that has signed its own.
    pub authority: String,
    pub fingerprint: Fingerprint,
}

/// An orchestrator whose certificate is for this name.
pub async fn orchestrator(name: &str) -> io::Result<Known> {
    orchestrator_until(name, 2100).await
}

/// The same, whose certificate ends with the beginning of this year.
pub async fn orchestrator_until(name: &str, year: i32) -> io::Result<Known> {
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
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            builder.with_no_client_auth().with_single_cert(vec![signed.der().clone()], der)
        })
        .map_err(io::Error::other)?;
    let fake = Fake::start_over(TlsAcceptor::from(Arc::new(config))).await?;
    let fingerprint = Fingerprint(Sha256::digest(key.subject_public_key_info()).into());
    Ok(Known { fake, authority: root.pem(), fingerprint })
}

fn host(flags: &[&str]) -> io::Result<Host> {
    Ok(Host::with_script("")?.flags(flags))
}

/// Waits for the agent's registration and ends it; answers with what it had said of its trust, and then with all it said.
async fn accepted(known: &Known, host: Host) -> io::Result<(serde_json::Value, String)> {
    let agent = host.start(&known.fake)?;
    let told = known.fake.until("a registration", |shared| shared.registers.last().cloned()).await;
    agent.signal(Signal::SIGTERM)?;
    let (_, said) = agent.end().await?;
    Ok((told["tls_verify"].clone(), said))
}

/// Waits until an ephemeral agent has given up; answers with what it said.
async fn refused(known: &Known, host: Host) -> io::Result<String> {
    let (code, said) = host.flags(&["--give-up-after", "1"]).start(&known.fake)?.end().await?;
    assert_eq!(code, Some(69), "it tries again, as after any lost connection: {said}");
    assert!(known.fake.shared().registers.is_empty(), "nothing was told to a stranger, least of all the token");
    assert!(said.contains(FAILED), "{said}");
    Ok(said)
}

fn write(path: &Path, text: &str) -> io::Result<String> {
    std::fs::write(path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

#[tokio::test]
async fn a_stranger_is_refused_with_advice() -> io::Result<()> {
    let known = orchestrator("localhost").await?;
    let said = refused(&known, host(&[])?).await?;
    for advice in ["--orchestrator-fingerprint sha256:…", "--ca-file", "--ssl-no-verify is for development only"] {
        assert!(said.contains(advice), "{advice}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn the_systems_authorities_are_trusted() -> io::Result<()> {
    let known = orchestrator("localhost").await?;
    let mut host = host(&[])?;
    let file = write(&host.path().join("system.pem"), &known.authority)?;
    host.variables.push(("SSL_CERT_FILE".to_owned(), file));
    assert_eq!(accepted(&known, host).await?.0, true);
    Ok(())
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_and_no_other() -> io::Result<()> {
    let (known, other) = (orchestrator("localhost").await?, orchestrator("localhost").await?);
    let flag = host(&[])?;
    let file = write(&flag.path().join("ca.pem"), &known.authority)?;
    assert_eq!(accepted(&known, flag.flags(&["--ca-file", &file])).await?.0, true);

    let mut variable = host(&[])?;
    let file = write(&variable.path().join("ca.pem"), &known.authority)?;
    variable.variables.push(("SIMPLETUNER_CA_FILE".to_owned(), file));
    refused(&other, variable).await?;
    Ok(())
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() -> io::Result<()> {
    let known = orchestrator("elsewhere.example").await?;
    let host = host(&[])?;
    let file = write(&host.path().join("ca.pem"), &known.authority)?;
    let said = refused(&known, host.flags(&["--ca-file", &file])).await?;
    assert!(said.contains("a certificate for other names"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_pinned_key_is_trusted_whatever_the_name_and_no_other_key() -> io::Result<()> {
    let (known, other) = (orchestrator("elsewhere.example").await?, orchestrator("localhost").await?);
    let pin = known.fingerprint.to_string();
    assert_eq!(accepted(&known, host(&["--orchestrator-fingerprint", &pin])?).await?.0, true);

    let mut variable = host(&[])?;
    variable.variables.push(("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT".to_owned(), pin));
    let said = refused(&other, variable).await?;
    let shown = format!("it shows {}", other.fingerprint);
    assert!(said.contains("has another key than --orchestrator-fingerprint says") && said.contains(&shown), "{said}");
    Ok(())
}

#[tokio::test]
async fn who_verifies_nothing_is_warned_at_each_start_and_says_so() -> io::Result<()> {
    let known = orchestrator("elsewhere.example").await?;
    let (told, said) = accepted(&known, host(&["--ssl-no-verify"])?).await?;
    assert_eq!(told, false);
    assert!(said.contains("anyone on the network path can pose as the orchestrator"), "{said}");

    let mut variable = host(&[])?;
    variable.variables.push(("SIMPLETUNER_SSL_NO_VERIFY".to_owned(), "yes".to_owned()));
    assert_eq!(accepted(&known, variable).await?.0, false);
    Ok(())
}

#[tokio::test]
async fn flags_that_contradict_each_other_are_wrong_usage() -> io::Result<()> {
    let known = orchestrator("localhost").await?;
    let pin = known.fingerprint.to_string();
    for flags in [["--ssl-no-verify", "--orchestrator-fingerprint", &pin], ["--ssl-no-verify", "--ca-file", "ca.pem"]] {
        let (code, said) = host(&flags)?.start(&known.fake)?.end().await?;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("--ssl-no-verify") && said.contains("leave it out"), "{said}");
    }
    Ok(())
}
