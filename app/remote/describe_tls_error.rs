//! Describes why a TLS certificate was rejected, and what to do.

use std::error::Error;
use std::io;

use reqwest::Url;
use rustls::CertificateError;

use super::server_trust::FingerprintMismatch;

/// Describes why the certificate of `base` is not trusted; none if the error has another cause.
pub fn untrusted_certificate_text(error: &(dyn Error + 'static), base: &Url) -> Option<String> {
    let certificate_error = find_certificate_error(error)?;
    Some(format!(
        "SSL certificate verify failed: the orchestrator at {base} {}",
        describe_certificate_error(certificate_error)
    ))
}

fn describe_certificate_error(error: &CertificateError) -> String {
    if let CertificateError::Other(other) = error {
        if let Some(FingerprintMismatch { presented }) = other.0.downcast_ref() {
            return format!(
                "has a different key than --orchestrator-fingerprint: its fingerprint is {presented}. If the orchestrator has a \
                 new key, copy the new fingerprint from its dashboard or log; otherwise this may be an attack"
            );
        }
        if other.to_string().contains("CaUsedAsEndEntity") {
            return "uses a CA certificate as its server certificate. Set --orchestrator-fingerprint sha256:… to the \
                    fingerprint from its dashboard or log, or give the orchestrator a certificate that is not a CA \
                    (basicConstraints CA:FALSE)"
                .to_owned();
        }
    }
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has an expired certificate. Renew it on the orchestrator, or check this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "has a certificate that is not valid yet. Check this machine's clock".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "has a certificate for other names. Use one of its names in the URL, or set --orchestrator-fingerprint \
             to the fingerprint from its dashboard"
                .to_owned()
        }
        other => format!(
            "has an untrusted certificate ({other:?}). If it is self-signed, set --orchestrator-fingerprint sha256:… to the \
             fingerprint from its dashboard or log; if your own CA signed it, add the CA to the system's trust store \
             or set --ca-file. (--ssl-no-verify is for development only)"
        ),
    }
}

/// Finds the verifier's error, which network libraries wrap several times.
fn find_certificate_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(rustls::Error::InvalidCertificate(certificate_error)) = cause.downcast_ref() {
            return Some(certificate_error);
        }
        // `io::Error::source` skips the wrapped error itself.
        let wrapped =
            cause.downcast_ref().and_then(io::Error::get_ref).map(|wrapped| wrapped as &(dyn Error + 'static));
        next = wrapped.or_else(|| cause.source());
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;
    use crate::protocol::system::fingerprint::Fingerprint;

    /// The verifier's error for a certificate made by `openssl req -x509`.
    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(to, "CaUsedAsEndEntity")
        }
    }

    impl Error for CaUsedAsEndEntity {}

    #[test]
    fn each_reason_suggests_a_remedy() {
        let base = Url::parse("https://h:8001/").expect("a URL");
        let sentence_for = |error: CertificateError| {
            let wrapped = io::Error::other(io::Error::other(rustls::Error::InvalidCertificate(error)));
            untrusted_certificate_text(&wrapped, &base).expect("a sentence")
        };
        let wrong_key = FingerprintMismatch { presented: Fingerprint([0xab; 32]) };
        for (error, part) in [
            (CertificateError::UnknownIssuer, "--orchestrator-fingerprint sha256:…"),
            (CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity))), "--orchestrator-fingerprint sha256:…"),
            (CertificateError::Expired, "expired"),
            (CertificateError::NotValidYet, "clock"),
            (CertificateError::NotValidForName, "other names"),
            (CertificateError::Other(OtherError(Arc::new(wrong_key))), "its fingerprint is sha256:abab"),
        ] {
            let sentence = sentence_for(error);
            let start = "SSL certificate verify failed: the orchestrator at https://h:8001/ ";
            assert!(sentence.starts_with(start) && sentence.contains(part), "{sentence}");
        }
        assert_eq!(untrusted_certificate_text(&io::Error::other("refused"), &base), None);
        let other = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert_eq!(untrusted_certificate_text(&other, &base), None);
    }
}
