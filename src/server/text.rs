//! Escaping and checking of text.

use std::fmt::Write;
use std::path::{Component, Path};

use app::domain::text::{is_control_or_invisible, is_deceptive};
use app::protocol::percent_encoding;

/// Escapes a path or a value for a URL: everything but plain characters and slashes.
pub fn percent_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    percent_encoding::encode(text, b"/", &mut escaped);
    escaped
}

/// Quotes a word for a shell command. Characters that a reader would not see, such as line ends or a change of
/// direction, are escaped, which requires bash or zsh.
pub fn shell_quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:@,=".contains(&byte);
    if !text.is_empty() && !text.starts_with('=') && text.bytes().all(plain) {
        return text.to_owned();
    }
    if !text.contains(is_control_or_invisible) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escaped = text.chars().fold(String::new(), |mut escaped, letter| {
        match letter {
            '\'' | '\\' => escaped.extend(['\\', letter]),
            letter if is_control_or_invisible(letter) => _ = write!(escaped, "\\U{:08x}", u32::from(letter)),
            letter => escaped.push(letter),
        }
        escaped
    });
    format!("$'{escaped}'")
}

/// Returns a path on this server for a redirect after a form; anything that could lead elsewhere becomes `/`.
pub fn local_path(text: &str) -> &str {
    let is_external = text.starts_with("//") || text.contains('\\') || text.chars().any(char::is_control);
    if text.starts_with('/') && !is_external { text } else { "/" }
}

/// Returns whether a path stays below its directory: relative, without `..`, printable, and with no part too long to be
/// stored.
pub fn is_plain_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= 512
        && !path.contains('\\')
        && !path.chars().any(is_deceptive)
        && !path.split('/').any(str::is_empty)
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        && !path.split('/').any(|part| part == "." || part == "..")
        && path.split('/').all(|part| stored_length(part) <= MAX_PART_BYTES)
}

/// File systems allow 255 bytes; some are for what a store adds to a name while it writes.
const MAX_PART_BYTES: usize = 240;

/// The length of a path's part in an object store, which writes special characters as `%` and two digits.
fn stored_length(part: &str) -> usize {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.()+,=@!&'$;:".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { 1 } else { 3 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(percent_escaped("/jobs?status=a b&x=ü"), "/jobs%3Fstatus%3Da%20b%26x%3D%C3%BC");
        assert_eq!(shell_quoted("gpu-1"), "gpu-1");
        assert_eq!(shell_quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_quoted(""), "''");
    }

    #[test]
    fn only_local_paths_are_accepted() {
        for good in ["/", "/jobs?status=idle", "/a//b"] {
            assert_eq!(local_path(good), good);
        }
        for bad in ["", "//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/a\nb"] {
            assert_eq!(local_path(bad), "/");
        }
    }

    #[test]
    fn paths_outside_their_directory_are_rejected() {
        for good in ["config.json", "prompts/a.json", "a b.txt", "..x", "ü"] {
            assert!(is_plain_path(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "..", "a/../b", "./a", "a//b", "a/", "a\\b", "a\nb", "a/.", "C:\\x"] {
            assert!(!is_plain_path(bad), "{bad}");
        }
        assert!(!is_plain_path(&"x".repeat(513)));
        for deceiving in ["x\u{202e}gpj.exe", "a/b\u{200b}/c", "model\u{ad}.bin", "\u{61c}a", "a\u{e0041}"] {
            assert!(!is_plain_path(deceiving), "{deceiving:?}");
        }
        // No store could write these, and clients that send them would retry forever.
        let deep = |part: &str, times: usize| format!("samples/{}.png", part.repeat(times));
        for (part, max_repeats) in [("x", 236), ("猫", 26)] {
            assert!(is_plain_path(&deep(part, max_repeats)) && !is_plain_path(&deep(part, max_repeats + 1)), "{part}");
        }
    }
}
