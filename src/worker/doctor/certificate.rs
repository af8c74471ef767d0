//! Reads the names, issuer and expiry of a certificate: the part of X.509 that users need.

use app::domain::time::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const DNS_NAME: u8 = 0x82;
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Its alternative names, or else its common name.
    pub names: Vec<String>,
    /// The issuer's common name.
    pub issuer: String,
    pub not_after: Timestamp,
}

impl CertificateInfo {
    /// Parses DER; `None` if it is invalid.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let mut certificate = DerReader(der).enter(SEQUENCE)?;
        let mut body = certificate.enter(SEQUENCE)?;
        if body.peek() == Some(VERSION) {
            body.next()?;
        }
        let (_serial, _algorithm) = (body.next()?, body.next()?);
        let issuer = common_name(body.enter(SEQUENCE)?);
        let mut validity = body.enter(SEQUENCE)?;
        let (_from, until) = (validity.next()?, validity.next()?);
        let subject = common_name(body.enter(SEQUENCE)?);
        let mut names = alternative_names(body).unwrap_or_default();
        if names.is_empty() {
            names.extend(subject);
        }
        Some(Self { names, issuer: issuer.unwrap_or_default(), not_after: parse_time(until)? })
    }
}

/// The unread part of some DER.
#[derive(Clone, Copy)]
struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    fn peek(self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next element: its tag and content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let (bytes, rest) =
                rest.split_at_checked(usize::from(first & 0x7f)).filter(|(bytes, _)| bytes.len() <= 4)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn enter(&mut self, tag: u8) -> Option<Self> {
        let (found, content) = self.next()?;
        (found == tag).then_some(DerReader(content))
    }
}

fn common_name(mut name: DerReader) -> Option<String> {
    while let Some((_, set)) = name.next() {
        let mut attribute = DerReader(set).enter(SEQUENCE)?;
        let (_, oid) = attribute.next()?;
        let (_, value) = attribute.next()?;
        if oid == COMMON_NAME {
            return Some(String::from_utf8_lossy(value).into_owned());
        }
    }
    None
}

fn alternative_names(mut body: DerReader) -> Option<Vec<String>> {
    while let Some((tag, content)) = body.next() {
        if tag != EXTENSIONS {
            continue;
        }
        let mut list = DerReader(content).enter(SEQUENCE)?;
        while let Some(mut extension) = list.enter(SEQUENCE) {
            let (_, oid) = extension.next()?;
            if oid != SUBJECT_ALT_NAME {
                continue;
            }
            let (_, mut value) = extension.next()?;
            // A `critical` flag may precede it.
            while let Some((_, next)) = extension.next() {
                value = next;
            }
            let mut names = DerReader(value).enter(SEQUENCE)?;
            let all = std::iter::from_fn(|| names.next());
            return Some(
                all.filter(|(tag, _)| *tag == DNS_NAME)
                    .map(|(_, name)| String::from_utf8_lossy(name).into_owned())
                    .collect(),
            );
        }
    }
    None
}

fn parse_time((tag, text): (u8, &[u8])) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    let text = match tag {
        // RFC 5280: years from 50 on are in the 20th century.
        UTC_TIME => format!("{}{text}", if text >= "50" { "19" } else { "20" }),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize| text.get(from..from + 2);
    let (year, rest) = (text.get(..4)?, text.get(14..)?);
    let (month, day, hour, minute, second) = (part(4)?, part(6)?, part(8)?, part(10)?, part(12)?);
    Timestamp::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}{rest}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn generate_certificate(names: &[&str], until: (i32, u8, u8)) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, "who");
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate").der().to_vec()
    }

    #[test]
    fn names_and_expiry_are_parsed() {
        let parse = |der: &[u8]| {
            CertificateInfo::parse(der)
                .map(|certificate| (certificate.names, certificate.issuer, certificate.not_after.to_string()))
        };
        let expected = |names: &[&str], until: &str| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Some((names, "who".to_owned(), until.to_owned()))
        };
        assert_eq!(
            parse(&generate_certificate(&["a.example", "b.example"], (2049, 12, 31))),
            expected(&["a.example", "b.example"], "2049-12-31T00:00:00.000Z")
        );
        assert_eq!(parse(&generate_certificate(&[], (2050, 1, 2))), expected(&["who"], "2050-01-02T00:00:00.000Z"));
        assert_eq!(parse(b"not a certificate"), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(mut der in Just(generate_certificate(&["a"], (2030, 1, 1))), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in any::<prop::sample::Index>()) {
            for (index, byte) in changes {
                let index = index.index(der.len());
                der[index] = byte;
            }
            let _ = CertificateInfo::parse(&der);
            let _ = CertificateInfo::parse(&der[..cut.index(der.len())]);
        }
    }
}
