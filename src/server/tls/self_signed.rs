//! A self-signed certificate for a server without one.
//!
//! Its key is created once and stored, so that the fingerprint for agents stays the same. The certificate is renewed at
//! startup when it is about to expire, or when the host has a new name or address.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use app::domain::time::{Millis, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SerialNumber,
};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::certificate::{CertificatePaths, verify_self_signed};
use crate::files::atomic_write;

const DAY: Millis = Millis::from_secs(24 * 3_600);
/// Validity of a certificate: the maximum that browsers accept.
const LIFETIME_DAYS: i64 = 397;
/// Renewed when this many days remain.
const RENEWAL_DAYS: i64 = 60;

/// Returns the pair in this directory, created or renewed if needed.
pub fn load_or_create(directory: &Path, names: &[String], now: Timestamp) -> Result<CertificatePaths, String> {
    let paths = CertificatePaths { chain: directory.join("cert.pem"), key: directory.join("key.pem") };
    let directory_error = |error: io::Error| format!("cannot use {} for a certificate: {error}", directory.display());
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(directory_error)?;
    let key = load_or_create_key(&paths.key)?;
    if !is_current(&paths.chain, &key, names, now) {
        let certificate = issue(&key, names, now).map_err(|error| format!("cannot create a certificate: {error}"))?;
        atomic_write::replace(&paths.chain, 0o644, certificate.as_bytes()).map_err(directory_error)?;
        tracing::info!(names = names.join(", "), "tls: created a self-signed certificate, {}", paths.chain.display());
    }
    Ok(paths)
}

/// Returns the names for the certificate of a server that listens here.
pub fn subject_names(host: IpAddr, interfaces: Vec<IpAddr>, hostname: &str) -> Vec<String> {
    let mut names = vec!["localhost".to_owned()];
    // Some hosts have invalid names.
    if ServerName::try_from(hostname).is_ok() && hostname != "localhost" {
        names.push(hostname.to_owned());
    }
    let mut addresses = if host.is_unspecified() { interfaces } else { vec![host] };
    addresses.sort_unstable();
    addresses.dedup();
    names.extend(addresses.iter().map(ToString::to_string));
    names
}

/// Returns the addresses of this host that others can reach.
pub fn interface_addresses() -> Vec<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let address = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    };
    let is_reachable = |ip: &IpAddr| match ip {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    };
    interfaces.filter_map(|interface| address(interface.address?)).filter(is_reachable).collect()
}

/// Returns the key in the file, or a new one. If several servers share the file and start together, one of them creates
/// it.
fn load_or_create_key(path: &Path) -> Result<KeyPair, String> {
    let key_error = |error: &dyn std::fmt::Display| {
        format!("cannot use the key {}: {error}; remove it to create a new one", path.display())
    };
    if !path.exists() {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| key_error(&error))?;
        atomic_write::write_if_absent(path, 0o600, key.serialize_pem().as_bytes())
            .map_err(|error| key_error(&error))?;
    }
    let text = fs::read_to_string(path).map_err(|error| key_error(&error))?;
    KeyPair::from_pem(&text).map_err(|error| key_error(&error))
}

/// Returns whether the certificate in the file has this key and these names, and does not expire soon.
fn is_current(path: &Path, key: &KeyPair, names: &[String], now: Timestamp) -> bool {
    let Ok(der) = CertificateDer::from_pem_file(path) else { return false };
    let Ok(parsed) = ParsedCertificate::try_from(&der) else { return false };
    let covers = |name: &String| {
        ServerName::try_from(name.as_str()).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    };
    let renewal_time = now + Millis(DAY.0 * RENEWAL_DAYS);
    parsed.subject_public_key_info().as_ref() == key.subject_public_key_info()
        && names.iter().all(covers)
        && [now, renewal_time].iter().all(|time| verify_self_signed(&der, &parsed, *time).is_ok())
}

fn issue(key: &KeyPair, names: &[String], now: Timestamp) -> Result<String, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "simpletuner");
    params.distinguished_name.push(DnType::CommonName, "simpletuner server");
    // Other clocks may be slow.
    params.not_before = to_date_time(now + Millis(-DAY.0));
    params.not_after = to_date_time(now + Millis(DAY.0 * LIFETIME_DAYS));
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Browsers reject a second certificate with the same issuer and serial number.
    let mut number = Sha256::digest(key.subject_public_key_info())[..8].to_vec();
    number[0] &= 0x7f;
    number.extend(now.0.to_be_bytes());
    params.serial_number = Some(SerialNumber::from(number));
    Ok(params.self_signed(key)?.pem())
}

fn to_date_time(time: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(time.0 / 1_000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::certificate::parse;
    use super::*;

    const NOW: Timestamp = Timestamp(1_705_314_600_000);

    fn to_names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn certificate_is_created_once_and_renewed_with_its_key() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().join("tls");
        let at = |names: &[&str], days: i64| {
            let now = NOW + Millis(DAY.0 * days);
            let paths = load_or_create(&directory, &to_names(names), now).expect("a certificate and its key");
            let contents = paths.read().expect("two files");
            let certificate = parse(&contents, now).expect("a certificate");
            assert!(!certificate.is_ca_signed);
            (contents.chain, certificate.fingerprint)
        };
        let first = at(&["localhost", "10.0.0.7"], 0);
        let mode = |file: &str| fs::metadata(directory.join(file)).expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode("key.pem"), fs::read_dir(&directory).expect("a directory").count()), (0o600, 2));

        assert_eq!(at(&["localhost", "10.0.0.7"], 300), first, "unchanged");
        assert_eq!(at(&["10.0.0.7"], 0), first, "more names than needed do no harm");
        let readdressed = at(&["localhost", "10.0.0.8"], 0);
        assert!(readdressed.0 != first.0 && readdressed.1 == first.1, "another address, the same key");
        let renewed = at(&["localhost", "10.0.0.8"], 340);
        assert!(renewed.0 != readdressed.0 && renewed.1 == first.1, "near its end, the same key");
        let later = at(&["localhost", "10.0.0.8"], 5_000);
        assert!(later.0 != renewed.0 && later.1 == first.1, "long expired, the same key");

        fs::remove_file(directory.join("key.pem")).expect("a file");
        let other = at(&["localhost", "10.0.0.8"], 5_000);
        assert!(other.0 != later.0 && other.1 != first.1, "a new key needs a new certificate");
    }

    #[test]
    fn invalid_key_error_says_what_to_do() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("key.pem"), "none").expect("a file");
        let result = load_or_create(directory.path(), &to_names(&["localhost"]), NOW);
        assert!(result.is_err_and(|error| error.contains("key.pem") && error.contains("remove it")));
    }

    #[test]
    fn certificate_names_of_the_host() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let interfaces = || vec![ip("127.0.0.1"), ip("10.0.0.7"), ip("10.0.0.7"), ip("fd00::7")];
        assert_eq!(
            subject_names(ip("10.0.0.9"), interfaces(), "rack-7"),
            to_names(&["localhost", "rack-7", "10.0.0.9"])
        );
        let expected = to_names(&["localhost", "rack_7", "10.0.0.7", "127.0.0.1", "fd00::7"]);
        assert_eq!(subject_names(ip("0.0.0.0"), interfaces(), "rack_7"), expected);
        assert_eq!(subject_names(ip("::1"), interfaces(), "bad name"), to_names(&["localhost", "::1"]));
        assert!(super::interface_addresses().contains(&ip("127.0.0.1")), "this machine has a loopback address");
    }
}
