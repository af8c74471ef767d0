//! Percent-encoding, as RFC 3986 has it: what stands in an address and is not part of its grammar.

/// Writes a text for an address: all but letters, digits, `-._~` and the bytes of `also` is escaped.
pub fn encode(text: &str, also: &[u8], into: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            into.push(char::from(byte));
        } else {
            into.push('%');
            into.push(char::from(HEX[usize::from(byte >> 4)]));
            into.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// What was encoded, once. A `%` that escapes nothing stays; bytes that are no UTF-8 are replaced.
#[must_use]
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.get(..2).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        if let Some(byte) = escaped.filter(|_| *first == b'%') {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_again() {
        for text in ["", "plain-._~", "a b/c?d=e&f#g", "100 % sure", "ünï 漢 \u{202e}"] {
            let mut encoded = String::new();
            encode(text, b"", &mut encoded);
            assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)), "{encoded}");
            assert_eq!(decoded(&encoded), text);
        }
        let mut path = String::new();
        encode("a/b c", b"/", &mut path);
        assert_eq!(path, "a/b%20c");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
