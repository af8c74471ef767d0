//! A refused certificate in words: what is wrong with it, and what to do.

use std::error::Error;
use std::io;

use reqwest::Url;
use rustls::CertificateError;

use super::trust::WrongKey;

/// The sentence, if a certificate was the reason.
pub fn sentence(error: &(dyn Error + 'static), base: &Url) -> Option<String> {
    let why = certificate_error(error)?;
    Some(format!("SSL certificate verify failed: the orchestrator at {base} {}", wrong_and_remedy(why)))
}

fn wrong_and_remedy(why: &CertificateError) -> String {
    if let CertificateError::Other(other) = why {
        if let Some(WrongKey { shown }) = other.0.downcast_ref() {
            return format!(
                "has another key than --orchestrator-fingerprint says: it shows {shown}. If the orchestrator was given \
                 a new key, copy the new fingerprint from its dashboard or its log; if not, somebody poses as it"
            );
        }
        if other.to_string().contains("CaUsedAsEndEntity") {
            return "shows a CA's own certificate as its own. Give the fingerprint that its dashboard or log shows with \
                    --orchestrator-fingerprint sha256:…, or give the orchestrator a certificate that is no CA \
                    (basicConstraints CA:FALSE)"
                .to_owned();
        }
    }
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "shows a certificate that has expired. Renew it there, or check this machine's clock".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "shows a certificate that is not valid yet. Check this machine's clock".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "shows a certificate for other names. Use one of its names in the URL, or give the fingerprint \
             that its dashboard shows with --orchestrator-fingerprint"
                .to_owned()
        }
        other => format!(
            "shows a certificate that nobody here vouches for ({other:?}). If it is its own, give the fingerprint that \
             its dashboard or log shows with --orchestrator-fingerprint sha256:…; if a CA of yours has signed it, add \
             the CA to the system's trust store or give it with --ca-file. (--ssl-no-verify is for development only)"
        ),
    }
}

/// The verifier's own error, which network libraries wrap several times.
fn certificate_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(rustls::Error::InvalidCertificate(why)) = cause.downcast_ref() {
            return Some(why);
        }
        // An I/O error passes over what it wraps when it is asked for its source.
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
    use crate::protocol::fingerprint::Fingerprint;

    /// As the verifier says it of a certificate from `openssl req -x509`.
    #[derive(Debug)]
    struct CaUsedAsEndEntity;

    impl std::fmt::Display for CaUsedAsEndEntity {
        fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(to, "CaUsedAsEndEntity")
        }
    }

    impl Error for CaUsedAsEndEntity {}

    #[test]
    fn each_reason_has_its_remedy() {
        let base = Url::parse("https://h:8001/").expect("a URL");
        let said = |why: CertificateError| {
            let wrapped = io::Error::other(io::Error::other(rustls::Error::InvalidCertificate(why)));
            sentence(&wrapped, &base).expect("a sentence")
        };
        let wrong_key = WrongKey { shown: Fingerprint([0xab; 32]) };
        for (why, words) in [
            (CertificateError::UnknownIssuer, "--orchestrator-fingerprint sha256:…"),
            (CertificateError::Other(OtherError(Arc::new(CaUsedAsEndEntity))), "--orchestrator-fingerprint sha256:…"),
            (CertificateError::Expired, "expired"),
            (CertificateError::NotValidYet, "clock"),
            (CertificateError::NotValidForName, "other names"),
            (CertificateError::Other(OtherError(Arc::new(wrong_key))), "it shows sha256:abab"),
        ] {
            let said = said(why);
            let start = "SSL certificate verify failed: the orchestrator at https://h:8001/ ";
            assert!(said.starts_with(start) && said.contains(words), "{said}");
        }
        assert_eq!(sentence(&io::Error::other("refused"), &base), None);
        let other = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert_eq!(sentence(&other, &base), None);
    }
}
