//! Makes untrusted text safe to display.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Returns whether a character is not visible text: it controls a terminal, ends a line, changes the direction of
/// text (Unicode's bidirectional controls, with which `fdp.exe` is displayed as `exe.pdf`), or is invisible.
pub fn is_control_or_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns whether a character can make one name look like another: a control character or an invisible one. Some of
/// these are needed in running text, such as joiners in Hindi and Persian, but not in names.
pub fn is_deceptive(c: char) -> bool {
    is_control_or_invisible(c)
        || matches!(
            c,
            // Soft hyphen, grapheme joiner, Hangul fillers, Khmer inherent vowels, Mongolian vowel separator.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
            // Zero-width spaces and joiners, invisible operators, deprecated controls.
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}'
            // Interlinear annotations, and tags.
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns whether a name can be displayed unchanged: at most `max_chars` characters, none of them deceptive.
pub fn is_plain(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && !text.chars().any(is_deceptive)
}

/// Compares names in natural order: `step_30` comes before `step_120`.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    // What is equal at the start, but not a part of a number.
    let common = a.bytes().zip(b.bytes()).take_while(|(one, other)| one == other && !one.is_ascii_digit()).count();
    let common = (0..=common).rev().find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at)).unwrap_or(0);
    let (mut left, mut right) = (&a[common..], &b[common..]);
    loop {
        let (number_left, number_right) = (leading_digits(left), leading_digits(right));
        if number_left.is_empty() || number_right.is_empty() {
            let (Some(one), Some(other)) = (left.chars().next(), right.chars().next()) else {
                return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
            };
            if one != other {
                return one.cmp(&other);
            }
            (left, right) = (&left[one.len_utf8()..], &right[other.len_utf8()..]);
            continue;
        }
        let (one, other) = (number_left.trim_start_matches('0'), number_right.trim_start_matches('0'));
        let order = one.len().cmp(&other.len()).then_with(|| one.cmp(other));
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (&left[number_left.len()..], &right[number_right.len()..]);
    }
}

/// Returns the leading ASCII digits of a text.
fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

/// Escapes control and invisible characters, for example as `\u{202e}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_matching(text, is_control_or_invisible)
}

/// Like [`escape`], but keeps line feeds and tabs.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_matching(text, |c| is_control_or_invisible(c) && !matches!(c, '\n' | '\t'))
}

/// Splits a text into its first line and the rest.
pub fn split_headline(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn escape_matching(text: &str, should_escape: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&should_escape) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if should_escape(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_in_names_sort_naturally() {
        let mut names =
            ["step_120.png", "step_30.png", "a10b2", "a10b10", "a9", "step_", "", "b", "ü1", "step_030.png"];
        names.sort_by(|a, b| natural_cmp(a, b));
        let sorted = ["", "a9", "a10b2", "a10b10", "b", "step_", "step_030.png", "step_30.png", "step_120.png", "ü1"];
        assert_eq!(names, sorted);
        assert_eq!(natural_cmp("x1", "x1"), Ordering::Equal);
        assert_eq!(natural_cmp("99999999999999999999998", "99999999999999999999999"), Ordering::Less);
    }

    #[test]
    fn equal_starts_end_between_characters() {
        // The first bytes of é and è are equal.
        assert_eq!(natural_cmp("aé", "aè"), Ordering::Greater);
        assert_eq!(natural_cmp("a1b2é10", "a1b2é9"), Ordering::Greater);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("report\u{202e}fdp.exe"), "report\\u{202e}fdp.exe");
        assert_eq!(escape("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(escape_lines("a\n\tb\r"), "a\n\tb\\r");
        assert!(matches!(escape("naïve 日本語 हिन्दी"), Cow::Borrowed(_)));
    }

    #[test]
    fn first_line_is_the_headline() {
        for (text, headline_and_rest) in [("", ("", "")), ("a", ("a", "")), ("a\n b\nc", ("a", " b\nc"))] {
            assert_eq!(split_headline(text), headline_and_rest);
        }
    }

    #[test]
    fn plain_name_is_short_and_has_no_control_characters() {
        assert!(is_plain("gpu-1", 5));
        assert!(!is_plain("gpu-12", 5));
        assert!(!is_plain("gpu\u{2066}", 64));
    }

    #[test]
    fn deceptive_name_is_not_plain() {
        let ranges =
            ['\u{200b}'..='\u{200f}', '\u{202a}'..='\u{202e}', '\u{2060}'..='\u{2064}', '\u{2066}'..='\u{2069}'];
        let single = ['\u{61c}', '\u{ad}', '\u{feff}', '\u{180e}', '\u{3164}', '\n', '\u{7f}'];
        let tags = '\u{e0000}'..='\u{e007f}';
        for c in ranges.into_iter().chain([tags]).flatten().chain(single) {
            assert!(!is_plain(&format!("gpu{c}-1"), 64), "{c:?}");
        }
        for name in ["naïve", "日本語", "हिन्दी", "Ελλάδα", "gpu 1", "🚀", "-._"] {
            assert!(is_plain(name, 64), "{name}");
        }
        assert_eq!(escape("می\u{200c}خواهم"), "می\u{200c}خواهم", "text keeps its joiners");
    }

    proptest! {
        #[test]
        fn escaped_text_has_no_control_characters(text in any::<String>()) {
            prop_assert!(!escape(&text).chars().any(is_control_or_invisible));
            prop_assert!(!escape_lines(&text).chars().any(|c| is_control_or_invisible(c) && !matches!(c, '\n' | '\t')));
        }
    }
}
