//! A certificate and its key with changed bytes: whatever is accepted has the same key. The first byte selects what is
//! changed: the files, or the DER that they encode. Each patch has four bytes: see [`apply_patches`].

use std::sync::LazyLock;

use app::domain::time::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::worker::doctor_certificate::CertificateInfo;
use crate::tls::certificate::{CertificateFiles, parse};

/// A time in 2026.
const NOW: Timestamp = Timestamp(1_780_000_000_000);

/// The header of an Ed25519 key in PKCS#8, before its 32 bytes (RFC 8410). Its signatures are deterministic, so
/// findings are reproducible.
const KEY_HEADER: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

struct TestCertificate {
    chain: Vec<u8>,
    key: Vec<u8>,
}

static CERTIFICATE: LazyLock<TestCertificate> = LazyLock::new(|| {
    let key = [KEY_HEADER.as_slice(), &[7; 32]].concat();
    let key_pair = KeyPair::try_from(&PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()))).expect("a key");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("names");
    params.serial_number = Some(1_u64.into());
    TestCertificate { chain: params.self_signed(&key_pair).expect("a certificate").der().to_vec(), key }
});

fn pem(kind: &str, der: &[u8]) -> Vec<u8> {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(der)).into_bytes()
}

fn encode_files(chain: &[u8], key: &[u8]) -> CertificateFiles {
    CertificateFiles { chain: pem("CERTIFICATE", chain), key: pem("PRIVATE KEY", key) }
}

/// See the module.
pub fn check(data: &[u8]) {
    let Some((change, data)) = data.split_first() else { return };
    let original = parse(&encode_files(&CERTIFICATE.chain, &CERTIFICATE.key), NOW).expect("the original certificate");
    assert!(!original.is_ca_signed);
    assert_doctor_reads(data);
    let changed = match change % 3 {
        // The input is the files.
        0 => {
            let split = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            CertificateFiles { chain: data[..split].to_vec(), key: data[split..].to_vec() }
        }
        1 => encode_files(&apply_patches(&CERTIFICATE.chain, data), &CERTIFICATE.key),
        _ => {
            let CertificateFiles { chain, key } = encode_files(&CERTIFICATE.chain, &CERTIFICATE.key);
            CertificateFiles { chain: apply_patches(&chain, data), key: apply_patches(&key, data) }
        }
    };
    if let Ok(parsed) = parse(&changed, NOW) {
        assert_eq!(parsed.fingerprint, original.fingerprint, "the key is unchanged");
    }
}

/// The agent's doctor reads or rejects each certificate without a panic.
fn assert_doctor_reads(data: &[u8]) {
    let original = CertificateInfo::parse(&CERTIFICATE.chain).expect("the original certificate");
    assert_eq!(original.names, ["localhost"]);
    for der in [data, &apply_patches(&CERTIFICATE.chain, data)] {
        assert!(
            CertificateInfo::parse(der).is_none_or(|info| info.names.iter().all(|name| name.len() <= 3 * der.len()))
        );
    }
}

/// Applies patches of four bytes: two for the position, the number of removed bytes, and the inserted byte.
fn apply_patches(original: &[u8], patches: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for patch in patches.chunks_exact(4) {
        let position = usize::from(u16::from_be_bytes([patch[0], patch[1]])) % (bytes.len() + 1);
        let removed = usize::from(patch[2] % 4).min(bytes.len() - position);
        bytes.splice(position..position + removed, [patch[3]]);
    }
    bytes
}
