//! What people and programs wrote elsewhere, so that it is only read: no character of it does anything.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Whether a character does something else than to be seen: it controls a terminal, ends a line, turns the direction of
/// writing (Unicode's bidirectional controls, with which `exe.fdp` reads `pdf.exe`), or is not there to the eye.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether a character makes one name look like another: it acts, or nothing of it is seen. Some of these have their use in
/// running text, such as joiners in Hindi and Persian, and none in a name.
pub fn deceives(c: char) -> bool {
    acts(c)
        || matches!(
            c,
            // Soft hyphen, grapheme joiner, fillers of Hangul, Khmer's inherent vowels, Mongolian's separator.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{3164}' | '\u{ffa0}'
            // Spaces and joiners without width, invisible operators, controls that are out of use.
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}'
            // Annotations, and tags.
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether a name can be shown as it is: at most `most` characters, and none that deceives.
pub fn is_plain(text: &str, most: usize) -> bool {
    text.chars().count() <= most && !text.chars().any(deceives)
}

/// Compares names as people sort them: `step_30` comes before `step_120`.
pub fn in_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (number_left, number_right) = (digits(left), digits(right));
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
        let value = |digits: &str| digits.trim_start_matches('0').to_owned();
        let (one, other) = (value(number_left), value(number_right));
        let order = one.len().cmp(&other.len()).then_with(|| one.cmp(&other));
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (&left[number_left.len()..], &right[number_right.len()..]);
    }
}

/// The ASCII digits that a text begins with.
fn digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

/// Text in which nothing acts: what would is written out, as `\u{202e}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    written(text, acts)
}

/// The same, in lines with tabs.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    written(text, |c| acts(c) && !matches!(c, '\n' | '\t'))
}

/// The line that says it, and those below it that belong to it.
pub fn headline(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn written(text: &str, out: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&out) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if out(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_in_names_are_in_order() {
        let mut names =
            ["step_120.png", "step_30.png", "a10b2", "a10b10", "a9", "step_", "", "b", "ü1", "step_030.png"];
        names.sort_by(|a, b| in_order(a, b));
        let sorted = ["", "a9", "a10b2", "a10b10", "b", "step_", "step_030.png", "step_30.png", "step_120.png", "ü1"];
        assert_eq!(names, sorted);
        assert_eq!(in_order("x1", "x1"), Ordering::Equal);
        assert_eq!(in_order("99999999999999999999998", "99999999999999999999999"), Ordering::Less);
    }

    #[test]
    fn what_acts_is_written_out() {
        assert_eq!(escaped("report\u{202e}fdp.exe"), "report\\u{202e}fdp.exe");
        assert_eq!(escaped("a\u{1b}[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(escaped_lines("a\n\tb\r"), "a\n\tb\\r");
        assert!(matches!(escaped("naïve 日本語 हिन्दी"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_first_line_is_the_headline() {
        for (text, headline_and_rest) in [("", ("", "")), ("a", ("a", "")), ("a\n b\nc", ("a", " b\nc"))] {
            assert_eq!(headline(text), headline_and_rest);
        }
    }

    #[test]
    fn a_plain_name_is_short_and_does_nothing() {
        assert!(is_plain("gpu-1", 5));
        assert!(!is_plain("gpu-12", 5));
        assert!(!is_plain("gpu\u{2066}", 64));
    }

    #[test]
    fn a_name_that_looks_like_another_is_not_plain() {
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
        assert_eq!(escaped("می\u{200c}خواهم"), "می\u{200c}خواهم", "text keeps its joiners");
    }

    proptest! {
        #[test]
        fn nothing_acts_afterwards(text in any::<String>()) {
            prop_assert!(!escaped(&text).chars().any(acts));
            prop_assert!(!escaped_lines(&text).chars().any(|c| acts(c) && !matches!(c, '\n' | '\t')));
        }
    }
}
