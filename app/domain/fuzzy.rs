//! How well something answers what a person types to find it: `dq` finds `digits-quick`.

use super::ids::is_known_by;

/// The best that a word can be worth: the whole of a name.
const WHOLE: u32 = 1_000;

/// What a thing is worth by its names, more for better; none if some word of the question is in none of them.
/// A question without words asks for everything.
pub fn score(question: &str, names: &[&str]) -> Option<u32> {
    score_of("", question, names)
}

/// The same of a thing with an id, which it is known by too ([`is_known_by`]).
pub fn score_of(id: &str, question: &str, names: &[&str]) -> Option<u32> {
    let names: Vec<Vec<char>> = names.iter().map(|name| lower(name)).collect();
    question.split_whitespace().map(str::to_lowercase).try_fold(0, |sum, word| {
        let by_id = is_known_by(id, &word).then_some(WHOLE);
        let word: Vec<char> = word.chars().collect();
        // The first name is what people know a thing by.
        let worth = |(place, name): (usize, &Vec<char>)| Some(worth(&word, name)? * 2 - u32::from(place > 0));
        Some(sum + names.iter().enumerate().filter_map(worth).chain(by_id).max()?)
    })
}

fn lower(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// A word by one name: whole, at its beginning, at the beginning of a part, anywhere, or scattered over it.
fn worth(word: &[char], name: &[char]) -> Option<u32> {
    // Of two names that begin alike the shorter is nearer.
    let rest = u32::try_from(name.len().saturating_sub(word.len())).unwrap_or(u32::MAX).min(90);
    let places = || name.windows(word.len()).enumerate().filter(|(_, window)| *window == word);
    if word == name {
        Some(WHOLE)
    } else if name.starts_with(word) {
        Some(800 - rest)
    } else if places().any(|(at, _)| begins_part(name, at)) {
        Some(600 - rest)
    } else if places().next().is_some() {
        Some(400 - rest)
    } else {
        scattered(word, name).then_some(200 - rest)
    }
}

/// Whether the word's characters come in this order, each next to the one before or at the beginning of a part.
fn scattered(word: &[char], name: &[char]) -> bool {
    // Where what is read of the word so far may end in the name; before the first character, anywhere.
    let mut ends = vec![true; name.len() + 1];
    for c in word {
        let mut next = vec![false; name.len() + 1];
        let mut reached = false;
        for at in 0..name.len() {
            reached |= ends[at];
            let in_place = begins_part(name, at) || (ends[at] && at > 0);
            next[at + 1] = name[at] == *c && reached && in_place;
        }
        ends = next;
    }
    ends.contains(&true)
}

/// Whether a part of the name begins here: after what is no letter or digit, or with the first of its digits.
fn begins_part(name: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| name[before]) else { return true };
    !before.is_alphanumeric() || (name[at].is_numeric() && !before.is_numeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_found() {
        for (question, name) in [
            ("", "anything"),
            ("digits", "digits-quick"),
            ("DIGITS", "digits-quick"),
            ("quick", "digits-quick"),
            ("dq", "digits-quick"),
            ("diqu", "digits-quick"),
            ("gpu4", "gpu-rack-04 4"),
            ("w12", "worker12"),
            ("ück", "Zurück"),
            ("quick digits", "digits-quick"),
            ("ワーカー", "ワーカー一覧"),
        ] {
            assert!(score(question, &[name]).is_some(), "{question:?} finds {name:?}");
        }
        for (question, name) in [("dk", "digits-quick"), ("x", "digits"), ("digits slow", "digits-quick"), ("a", "")] {
            assert_eq!(score(question, &[name]), None, "{question:?} does not find {name:?}");
        }
    }

    #[test]
    fn what_is_nearer_comes_first() {
        let order = ["quick", "quick-2", "quick-digits-2", "very-quick", "unquick", "quiet-ick"];
        let worth: Vec<u32> = order.iter().map(|name| score("quick", &[name]).expect("found")).collect();
        assert!(worth.is_sorted_by(|better, worse| better > worse), "{worth:?}");
        assert!(score("ada", &["ada", "x"]) > score("ada", &["x", "ada"]), "a thing's own name first");
        let id = "w_01hn8z0000000000000008as5kf";
        assert_eq!(score_of(id, "8AS5KF", &["gpu-1"]), Some(WHOLE));
        assert_eq!(score_of(id, "hn", &["gpu-1"]), None, "of an id any few letters are found somewhere");
        assert!(score("gpu team", &["gpu-1", "team=nlp"]).is_some(), "each word in some name");
    }

    proptest! {
        #[test]
        fn nothing_panics_and_a_name_finds_itself(question in ".{0,24}", name in ".{0,40}") {
            let _any = score(&question, &[&name, ""]);
            let own = score(&name, &[&name]);
            prop_assert!(own.is_some());
            if own.is_some() && !name.contains(char::is_whitespace) && !name.is_empty() {
                prop_assert_eq!(own, Some(WHOLE * 2));
            }
        }

        #[test]
        fn a_longer_question_finds_no_more(name in "[a-c-]{0,12}", word in "[a-c]{1,4}", more in "[a-c]{1,2}") {
            if score(&word, &[&name]).is_none() {
                let asks = format!("{word} {more}");
                prop_assert_eq!(score(&asks, &[&name]), None);
            }
        }
    }
}
