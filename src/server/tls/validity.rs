//! Reads the expiry of a certificate, which the libraries in use do not expose.

use app::domain::time::Timestamp;

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the end of a certificate's validity (RFC 5280, 4.1); `None` if it is not valid DER.
pub fn ends_at(certificate: &[u8]) -> Option<Timestamp> {
    let signed = element_content(certificate, SEQUENCE)?;
    let mut rest = element_content(signed, SEQUENCE)?;
    if rest.first() == Some(&EXPLICIT_VERSION) {
        rest = read_element(rest)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = read_element(rest)?.2;
    }
    let (_, _, after_begin) = read_element(element_content(rest, SEQUENCE)?)?;
    let (tag, text, _) = read_element(after_begin)?;
    parse_time(tag, std::str::from_utf8(text).ok()?)
}

/// Parses `YYMMDDhhmmssZ` (until 2049) or `YYYYMMDDhhmmssZ` (from 2050).
fn parse_time(tag: u8, text: &str) -> Option<Timestamp> {
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            (if year < "50" { format!("20{year}") } else { format!("19{year}") }, rest)
        }
        GENERALIZED_TIME => text.split_at_checked(4).map(|(year, rest)| (year.to_owned(), rest))?,
        _ => return None,
    };
    let part = |from: usize| rest.get(from..from + 2);
    let [month, day, hour, minute, second] = [part(0)?, part(2)?, part(4)?, part(6)?, part(8)?];
    Timestamp::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

fn element_content(der: &[u8], expected_tag: u8) -> Option<&[u8]> {
    read_element(der).filter(|(tag, ..)| *tag == expected_tag).map(|(_, content, _)| content)
}

/// Reads the first element: tag, content, and the remaining bytes.
fn read_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 4)?;
        (digits.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_read_in_both_formats() {
        for (year, text) in [(2031, "2031-05-06T07:08:09Z"), (2061, "2061-05-06T07:08:09Z")] {
            let key = rcgen::KeyPair::generate().expect("a key");
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
            let end = Timestamp::parse_rfc3339(text).expect("a time");
            params.not_after =
                rcgen::date_time_ymd(year, 5, 6) + std::time::Duration::from_secs(7 * 3_600 + 8 * 60 + 9);
            let certificate = params.self_signed(&key).expect("a certificate");
            assert_eq!(ends_at(certificate.der()), Some(end));
            for length in 0..40 {
                assert_eq!(ends_at(&certificate.der()[..length]), None);
            }
        }
        assert_eq!(ends_at(b"-----BEGIN CERTIFICATE-----"), None);
    }
}
