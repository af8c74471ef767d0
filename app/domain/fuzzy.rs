//! Fuzzy search by name: `dq` finds `digits-quick`.

use super::ids::matches_partial_id;

/// The score of an exact match of a word.
const EXACT_SCORE: u32 = 1_000;

/// The words of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyQuery(Vec<QueryWord>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueryWord {
    /// In lower case.
    text: String,
    chars: Vec<char>,
}

impl FuzzyQuery {
    /// Splits a text into words.
    pub fn parse(text: &str) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase);
        Self(words.map(|text| QueryWord { chars: text.chars().collect(), text }).collect())
    }

    /// Scores a thing by its names; higher is better. Returns none if a word of the query matches no name. An empty
    /// query matches everything.
    pub fn score(&self, names: &[&str]) -> Option<u32> {
        self.score_with_id("", names)
    }

    /// Like [`FuzzyQuery::score`], for a thing that can also be found by its ID
    /// ([`matches_partial_id`](super::ids::matches_partial_id)).
    pub fn score_with_id(&self, id: &str, names: &[&str]) -> Option<u32> {
        self.0.iter().try_fold(0, |sum, word| {
            let by_id = matches_partial_id(id, &word.text).then_some(EXACT_SCORE);
            // The first name is the one that users know.
            let best_score = |(index, name): (usize, &&str)| Some(word.score(name)? * 2 - u32::from(index > 0));
            Some(sum + names.iter().enumerate().filter_map(best_score).chain(by_id).max()?)
        })
    }
}

impl QueryWord {
    fn score(&self, name: &str) -> Option<u32> {
        // Most names are excluded here, without a copy.
        if name.is_ascii() && !contains_in_order(name.as_bytes(), self.text.as_bytes()) {
            return None;
        }
        word_score(&self.chars, &lowercase_chars(name))
    }
}

/// Returns whether the characters of the word, which is in lower case, occur in this order.
fn contains_in_order(name: &[u8], word: &[u8]) -> bool {
    let mut rest = name.iter();
    word.iter().all(|wanted| rest.any(|found| found.to_ascii_lowercase() == *wanted))
}

/// Takes the first `limit` hits, in order, but reserves at least a fifth of them for each kind that was found.
pub fn take_balanced<T, K: PartialEq>(hits: Vec<T>, kind: impl Fn(&T) -> K, limit: usize) -> Vec<T> {
    let share = limit.div_ceil(5);
    let mut counts: Vec<(K, usize)> = Vec::new();
    let mut is_within_share_of_kind = |hit: &T| {
        let kind = kind(hit);
        let index = counts.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            counts.push((kind, 0));
            counts.len() - 1
        });
        counts[index].1 += 1;
        counts[index].1 <= share
    };
    let is_within_share: Vec<bool> = hits.iter().map(&mut is_within_share_of_kind).collect();
    let mut free_places =
        limit.saturating_sub(is_within_share.iter().filter(|is_within_share| **is_within_share).count());
    let balanced = hits.into_iter().zip(is_within_share).filter(|(_, is_within_share)| {
        let is_added = !is_within_share && free_places > 0;
        free_places -= usize::from(is_added);
        *is_within_share || is_added
    });
    balanced.map(|(hit, _)| hit).take(limit).collect()
}

/// Returns up to three existing names that are similar to an unknown one, most similar first.
pub fn similar_names<'n>(unknown: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let pairs = |text: &str| lowercase_chars(text).windows(2).map(<[char]>::to_vec).collect::<Vec<_>>();
    let (query, unknown_pairs) = (FuzzyQuery::parse(unknown), pairs(unknown));
    let similarity = |name: &str| {
        let name_pairs = pairs(name);
        let shared = unknown_pairs.iter().filter(|pair| name_pairs.contains(pair)).count();
        // Two names are similar if they share at least a third of their letter pairs.
        (shared * 6 >= unknown_pairs.len() + name_pairs.len() && shared > 0)
            .then_some(shared * 1_000 / (unknown_pairs.len() + name_pairs.len()))
    };
    let ranked = |name: &'n str| Some((similarity(name).or_else(|| query.score(&[name]).map(|_| 0))?, name));
    let mut found: Vec<_> = names.filter_map(ranked).collect();
    found.sort_by(|(left, a), (right, b)| right.cmp(left).then(a.cmp(b)));
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

fn lowercase_chars(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Scores a word against one name: whole, prefix, prefix of a part, substring, or subsequence.
fn word_score(word: &[char], name: &[char]) -> Option<u32> {
    // Of two names with the same prefix, the shorter one is the better match.
    let rest = u32::try_from(name.len().saturating_sub(word.len())).unwrap_or(u32::MAX).min(90);
    let matches = || name.windows(word.len()).enumerate().filter(|(_, window)| *window == word);
    if word == name {
        Some(EXACT_SCORE)
    } else if name.starts_with(word) {
        Some(800 - rest)
    } else if matches().any(|(at, _)| starts_word(name, at)) {
        Some(600 - rest)
    } else if matches().next().is_some() {
        Some(400 - rest)
    } else {
        is_subsequence(word, name).then_some(200 - rest)
    }
}

/// Returns whether the characters of the word occur in this order, each next to the previous one or at the start of a
/// part.
fn is_subsequence(word: &[char], name: &[char]) -> bool {
    // Positions in the name at which the part of the word read so far may end; before the first character, any.
    let mut ends = vec![true; name.len() + 1];
    for c in word {
        let mut next = vec![false; name.len() + 1];
        let mut is_reachable = false;
        for at in 0..name.len() {
            is_reachable |= ends[at];
            let may_match_here = starts_word(name, at) || (ends[at] && at > 0);
            next[at + 1] = name[at] == *c && is_reachable && may_match_here;
        }
        ends = next;
    }
    ends.contains(&true)
}

/// Returns whether a part of the name starts here: after a character that is not a letter or digit, or at the first of
/// several digits.
fn starts_word(name: &[char], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| name[before]) else { return true };
    !before.is_alphanumeric() || (name[at].is_numeric() && !before.is_numeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(query: &str, names: &[&str]) -> Option<u32> {
        FuzzyQuery::parse(query).score(names)
    }

    #[test]
    fn fuzzy_matches_are_found() {
        for (query, name) in [
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
            assert!(score(query, &[name]).is_some(), "{query:?} finds {name:?}");
        }
        for (query, name) in [("dk", "digits-quick"), ("x", "digits"), ("digits slow", "digits-quick"), ("a", "")] {
            assert_eq!(score(query, &[name]), None, "{query:?} does not find {name:?}");
        }
    }

    #[test]
    fn better_matches_score_higher() {
        let order = ["quick", "quick-2", "quick-digits-2", "very-quick", "unquick", "quiet-ick"];
        let scores: Vec<u32> = order.iter().map(|name| score("quick", &[name]).expect("found")).collect();
        assert!(scores.is_sorted_by(|better, worse| better > worse), "{scores:?}");
        assert!(score("ada", &["ada", "x"]) > score("ada", &["x", "ada"]), "its first name counts more");
        let id = "w_01hn8z0000000000000008as5kf";
        assert_eq!(FuzzyQuery::parse("8AS5KF").score_with_id(id, &["gpu-1"]), Some(EXACT_SCORE));
        assert_eq!(FuzzyQuery::parse("hn").score_with_id(id, &["gpu-1"]), None, "IDs match by prefix or suffix only");
        assert!(score("gpu team", &["gpu-1", "team=nlp"]).is_some(), "each word matches a name");
    }

    #[test]
    fn similar_names_are_suggested() {
        let names = ["digits", "digits-quick", "flux-lora", "flux-full", "sdxl"];
        let similar = |unknown| similar_names(unknown, names.into_iter());
        assert_eq!(similar("digtis"), ["digits"]);
        assert_eq!(similar("flux_lora"), ["flux-lora", "flux-full"]);
        assert_eq!(similar("SDXL"), ["sdxl"]);
        assert_eq!(similar("my-training-config"), [] as [&str; 0]);
        assert_eq!(similar("d"), ["digits", "digits-quick", "sdxl"]);
    }

    #[test]
    fn each_kind_gets_a_share_of_the_results() {
        let balanced = |found: &str, limit| {
            take_balanced(found.chars().collect(), |kind| *kind, limit).into_iter().collect::<String>()
        };
        assert_eq!(balanced("jjjjjjjjjjjjjjcc", 12), "jjjjjjjjjjcc");
        assert_eq!(balanced("jjjjjjjjjjjjjjccccww", 12), "jjjjjjjcccww");
        assert_eq!(balanced("jjwc", 12), "jjwc");
        assert_eq!(balanced("jjwc", 1), "j");
        assert_eq!(balanced("jwcjwc", 2), "jw");
        assert_eq!(balanced("", 12), "");
    }

    proptest! {
        #[test]
        fn excluded_names_have_no_score(word in "[a-cİıé-]{1,4}", name in "[a-cA-C-]{0,12}") {
            if !contains_in_order(name.as_bytes(), word.as_bytes()) {
                let chars: Vec<char> = word.chars().collect();
                prop_assert_eq!(word_score(&chars, &lowercase_chars(&name)), None);
            }
        }

        #[test]
        fn no_input_panics_and_every_name_matches_itself(query in ".{0,24}", name in ".{0,40}") {
            let _any = score(&query, &[&name, ""]);
            let own_score = score(&name, &[&name]);
            prop_assert!(own_score.is_some());
            if own_score.is_some() && !name.contains(char::is_whitespace) && !name.is_empty() {
                prop_assert_eq!(own_score, Some(EXACT_SCORE * 2));
            }
        }

        #[test]
        fn longer_query_never_matches_more(name in "[a-c-]{0,12}", word in "[a-c]{1,4}", more in "[a-c]{1,2}") {
            if score(&word, &[&name]).is_none() {
                let longer = format!("{word} {more}");
                prop_assert_eq!(score(&longer, &[&name]), None);
            }
        }
    }
}
