use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::worker::clock;

/// What may interrupt two characters of a secret.
const CUTS: [&str; 12] = [
    "",
    "",
    "",
    "\u{1b}[31m",
    "\u{1b}[0m",
    "\u{1b}[38;2;255;128;0m",
    "\u{1b}[2K\u{1b}[1A",
    "\u{1b}]8;;https://x.y/\u{1b}\\",
    "\u{1b}(B",
    "\u{7}",
    "\r\n",
    "\u{85}",
];

fn mask(values: &[&str]) -> Mask {
    Mask::from_values(values.iter().copied())
}

fn masked(values: &[&str], text: &str) -> String {
    mask(values).mask_text(text)
}

/// A text as it is sent in chunks of up to `max_chunk` bytes, while it grows by these steps.
fn masked_in_steps(mask: &Mask, text: &[u8], max_chunk: usize, steps: &[usize]) -> Vec<u8> {
    let (mut sent, mut written) = (Vec::new(), 0);
    let mut steps = steps.iter().cycle();
    while sent.len() < text.len() {
        written = (written + steps.next().unwrap_or(&1)).min(text.len());
        let start = sent.len().saturating_sub(mask.context_bytes());
        let end = written.min(sent.len() + max_chunk + mask.context_bytes());
        let is_growing = end == written && written < text.len();
        let tail = if is_growing { TailState::Growing } else { TailState::Complete };
        sent.extend(mask.mask_window(text[start..end].to_vec(), sent.len() - start, max_chunk, tail));
    }
    sent
}

/// A value in one encoding, and which of its characters are the value's own.
fn encode_secret(value: &str, encoding: usize, before: &str, after: &str) -> (String, Range<usize>) {
    let with_full_range = |text: String| {
        let length = text.len();
        (text, 0..length)
    };
    let hex = || clock::encode_hex(value.as_bytes());
    let address = || reqwest::Url::parse_with_params("http://h/", [("", value)]).ok();
    let base64 = |engine: &base64::engine::GeneralPurpose| {
        let text = engine.encode([before, value, after].concat());
        let known = (before.len() * 8).div_ceil(6)..(before.len() + value.len()) * 8 / 6;
        (text, known)
    };
    match encoding {
        0 => with_full_range(value.to_owned()),
        1 => with_full_range(hex()),
        2 => with_full_range(hex().to_uppercase()),
        3 => base64(&STANDARD),
        4 => base64(&URL_SAFE_NO_PAD),
        5 => with_full_range(
            address().and_then(|url| Some(url.query()?.trim_start_matches('=').to_owned())).unwrap_or_default(),
        ),
        6 => with_full_range(
            json!(value)
                .to_string()
                .strip_suffix('"')
                .and_then(|json| json.strip_prefix('"'))
                .unwrap_or_default()
                .to_owned(),
        ),
        _ => with_full_range(STANDARD.encode(value).trim_end_matches('=').to_owned()),
    }
}

#[test]
fn every_encoding_is_masked_and_offsets_stay() {
    let value = "p@ss \"word\"";
    for spelling in [value, "p@ss \\\"word\\\"", "p%40ss%20%22word%22", "cEBzcyAid29yZCI", "704073732022776F726422"] {
        let text = format!("a {spelling} b");
        assert_eq!(masked(&[value], &text), format!("a {} b", "*".repeat(spelling.len())));
    }
    assert_eq!(masked(&["-----BEGIN-----\nabcdefgh\n"], "x abcdefgh x"), "x ******** x");
    assert_eq!(masked(&["12345678", "56789012"], "123456789012"), "*".repeat(12));
    assert_eq!(masked(&["short"], "short"), "short", "a short value is not a secret");
    assert_eq!(masked(&[], "text"), "text");
}

#[test]
fn secret_interrupted_by_colors_or_line_breaks_is_masked() {
    let value = "Zq7-canary/secret+value_0042";
    for (text, expected) in [
        ("Zq7-\u{1b}[1;36mcanary\u{1b}[0m/secret+value_0042!", "****\u{1b}[1;36m******\u{1b}[0m******************!"),
        ("Zq7-canary/sec\n  ret", "Zq7-canary/sec\n  ret"),
        ("Zq7-canary/sec\nret+value_0042", "**************\n**************"),
        (
            "\u{1b}]8;;http://Zq7-canary/secret+value_0042\u{7}here",
            "\u{1b}]8;;http://****************************\u{7}here",
        ),
        ("\u{1b}[Zq7-canary/secret+value_0042", "\u{1b}[****************************"),
        // The header of `user:SECRET`.
        ("Basic dXNlcjpacTctY2FuYXJ5L3NlY3JldCt2YWx1ZV8wMDQy", "Basic dXNlcjp*************************************"),
    ] {
        assert_eq!(masked(&[value], text), expected, "{text:?}");
    }
}

#[test]
fn texts_and_field_names_of_events_are_masked() {
    let mut event = json!({"type": "x", "stage": {"label": "with abc\u{1b}[0mdefgh", "n": 5}, "m": [{"abcdefgh": 0.5}, null, "ok"]});
    mask(&["abcdefgh"]).mask_json(&mut event);
    let expected = json!({"type": "x", "stage": {"label": "with ***\u{1b}[0m*****", "n": 5}, "m": [{"********": 0.5}, null, "ok"]});
    assert_eq!(event, expected);
}

#[test]
fn possible_beginning_of_a_secret_is_held_back() {
    let mask = mask(&["hf_abcdefgh", "hf_hf_xyzw"]);
    for (text, certain_len) in [
        ("step h", 5),
        ("hf_abcdefg", 0),
        ("hf_abcdefgh", 10),
        ("x hf_hf_", 2),
        ("x hf_\u{1b}[3", 2),
        ("x \u{1b}[31mh\u{1b}[0mf\r\n", 7),
        ("x \u{1b}[31", 6),
        ("do.", 3),
        ("", 0),
    ] {
        assert_eq!(mask.certain_len(text.as_bytes(), TailState::Growing), certain_len, "{text:?}");
        assert_eq!(mask.certain_len(text.as_bytes(), TailState::Complete), text.len(), "{text:?}");
    }
    for (text, certain_len) in [("step h", 5), ("step h\n", 7), ("x hf_\u{1b}[3", 8)] {
        assert_eq!(mask.certain_len(text.as_bytes(), TailState::Quiet), certain_len, "{text:?}");
    }
}

#[test]
fn long_secret_is_masked_only_as_a_whole() {
    let value: String = (0..40_000_u32).map(|number| char::from(b'a' + (number * number % 23) as u8)).collect();
    let text = format!("{value}.{}", &value[..39_999]);
    assert_eq!(masked(&[&value], &text), format!("{}.{}", "*".repeat(40_000), &value[..39_999]));
}

#[test]
fn many_secrets_are_masked_like_few() {
    let values: Vec<String> = (0..64).map(|number| format!("value-{:x}", number * 7_919 + 1_000_000)).collect();
    let few: Vec<&str> = values.iter().take(2).map(String::as_str).collect();
    let many: Vec<&str> = values.iter().map(String::as_str).collect();
    let text = format!("{0} {0}{1}{0} {2}", values[0], values[1], values[1].replace('5', "\u{1b}[0m5"));
    assert_eq!(masked(&few, &text), masked(&many, &text));
    assert_eq!(masked(&many, &many.concat()), "*".repeat(many.concat().len()));
}

proptest! {
    /// However a log is cut into chunks, no secret is in any of them, nor in all of them together.
    #[test]
    fn chunks_never_reveal_a_secret(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "hf_", "abcdefgh", "hf_abcdefgh", "h", "\n", "fgh", "\u{1b}[31m", "\u{1b}", "[", "\t", "\u{1b}]0;hf_\u{7}", "aGZfYWJjZGVm", "Z2g",
            ]),
            0..60,
        ),
        fill in prop_oneof![7 => Just(0_usize), 1 => Just(3_000)], // the long ones are slow
        (max_chunk, steps) in (1..200_usize, prop::collection::vec(1..200_usize, 1..40)),
    ) {
        let fill = ".".repeat(fill);
        let text = [words.concat(), fill.clone(), words.concat(), fill, words.concat()].concat().into_bytes();
        let mask = mask(&["hf_abcdefgh"]);
        let mut expected = text.clone();
        mask.mask_bytes(&mut expected);
        prop_assert_eq!(masked_in_steps(&mask, &text, max_chunk, &steps), expected);
    }

    /// Every character of a secret is masked, whatever its encoding and whatever interrupts it.
    #[test]
    fn interrupted_encodings_are_masked(
        value in "[!-~][ -~é]{6,40}[!-~]",
        encoding in 0..8_usize,
        (before, after) in ("[a-z:]{0,4}", "[a-z]{0,4}"),
        cuts in prop::collection::vec(prop::sample::select(CUTS.to_vec()), 1..40),
        steps in prop::collection::vec(1..200_usize, 1..10),
    ) {
        let (spelling, secret_range) = encode_secret(&value, encoding, &before, &after);
        let mut text = String::from("x = ");
        let mut cuts = cuts.into_iter().cycle();
        for c in spelling.chars() {
            text.push(c);
            text.push_str(cuts.next().unwrap_or_default());
        }
        text.push_str(" end\n");
        let mask = mask(&[&value]);
        let sent = masked_in_steps(&mask, text.as_bytes(), 64, &steps);
        let visible = VisibleText::from_raw(&sent).text;
        let masked = String::from_utf8_lossy(&visible[4..][secret_range]).into_owned();
        prop_assert_eq!(&masked, &"*".repeat(masked.len()), "{:?}", text);
        prop_assert_eq!(sent.len(), text.len());
    }
}
