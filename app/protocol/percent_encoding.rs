//! Percent-encoding of URLs (RFC 3986).

/// Encodes a text: everything except letters, digits, `-._~` and the bytes of `unescaped` is escaped.
pub fn encode(text: &str, unescaped: &[u8], output: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || unescaped.contains(&byte) {
            output.push(char::from(byte));
        } else {
            output.push('%');
            output.push(char::from(HEX[usize::from(byte >> 4)]));
            output.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Decodes a text once. A `%` that is not an escape stays; invalid UTF-8 is replaced.
#[must_use]
pub fn decode(text: &str) -> String {
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
    fn encoded_text_round_trips() {
        for text in ["", "plain-._~", "a b/c?d=e&f#g", "100 % sure", "ünï 漢 \u{202e}"] {
            let mut encoded = String::new();
            encode(text, b"", &mut encoded);
            assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)), "{encoded}");
            assert_eq!(decode(&encoded), text);
        }
        let mut path = String::new();
        encode("a/b c", b"/", &mut path);
        assert_eq!(path, "a/b%20c");
        assert_eq!(decode("%zz%4"), "%zz%4");
    }
}
