//! A certificate and its key, with bytes changed: what is still taken is the same key. The bytes say where, and what stands
//! there instead, by threes and fours; the first says whether the text is changed or what it encodes.

use std::sync::LazyLock;

use app::domain::time::Timestamp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::doctor_certificate::CertificateInfo;
use crate::tls::certificate::{CertificateFiles, parse};

/// In 2026.
const NOW: Timestamp = Timestamp(1_780_000_000_000);

/// An Ed25519 key in PKCS#8, up to its 32 bytes (RFC 8410): its signatures are always the same, so that a finding is too.
const KEY: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

struct Pair {
    chain: Vec<u8>,
    key: Vec<u8>,
}

static PAIR: LazyLock<Pair> = LazyLock::new(|| {
    let key = [KEY.as_slice(), &[7; 32]].concat();
    let pair = KeyPair::try_from(&PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.clone()))).expect("a key");
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("names");
    params.serial_number = Some(1_u64.into());
    Pair { chain: params.self_signed(&pair).expect("a certificate").der().to_vec(), key }
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
    let original = parse(&encode_files(&PAIR.chain, &PAIR.key), NOW).expect("nothing was changed");
    assert!(!original.is_ca_signed);
    assert_doctor_reads(data);
    let changed = match change % 3 {
        // What stands for itself.
        0 => {
            let middle = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            CertificateFiles { chain: data[..middle].to_vec(), key: data[middle..].to_vec() }
        }
        1 => encode_files(&apply_patches(&PAIR.chain, data), &PAIR.key),
        _ => {
            let CertificateFiles { chain, key } = encode_files(&PAIR.chain, &PAIR.key);
            CertificateFiles { chain: apply_patches(&chain, data), key: apply_patches(&key, data) }
        }
    };
    if let Ok(parsed) = parse(&changed, NOW) {
        assert_eq!(parsed.fingerprint, original.fingerprint, "of another key nobody has the private half");
    }
}

/// What the agent's doctor shows of a certificate: whatever stands in it, it is read or it is not.
fn assert_doctor_reads(data: &[u8]) {
    let original = CertificateInfo::parse(&PAIR.chain).expect("nothing was changed");
    assert_eq!(original.names, ["localhost"]);
    for der in [data, &apply_patches(&PAIR.chain, data)] {
        assert!(
            CertificateInfo::parse(der).is_none_or(|info| info.names.iter().all(|name| name.len() <= 3 * der.len()))
        );
    }
}

/// Where, how many are gone, and what stands there.
fn apply_patches(original: &[u8], patches: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for patch in patches.chunks_exact(4) {
        let at = usize::from(u16::from_be_bytes([patch[0], patch[1]])) % (bytes.len() + 1);
        let removed = usize::from(patch[2] % 4).min(bytes.len() - at);
        bytes.splice(at..at + removed, [patch[3]]);
    }
    bytes
}
