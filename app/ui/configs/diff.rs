//! Compares two texts line by line, and changed lines word by word.

use similar::{Algorithm, ChangeTag, TextDiff};

/// Number of unchanged lines shown around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineChange {
    Unchanged,
    Added,
    Removed,
}

/// A line, with its number in the texts that contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub change: LineChange,
    pub old: Option<usize>,
    pub new: Option<usize>,
    /// The text in segments, each with whether it changed.
    pub segments: Vec<(bool, String)>,
}

/// Consecutive lines.
pub(crate) type Hunk = Vec<DiffLine>;

/// The places where two texts differ.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(old, new);
    let hunk = |ops: &Vec<similar::DiffOp>| {
        ops.iter()
            .flat_map(|op| diff.iter_inline_changes(op))
            .map(|change| {
                let segment = |(changed, text): (bool, std::borrow::Cow<'_, str>)| {
                    (changed, text.trim_end_matches(['\n', '\r']).to_owned())
                };
                DiffLine {
                    change: match change.tag() {
                        ChangeTag::Equal => LineChange::Unchanged,
                        ChangeTag::Insert => LineChange::Added,
                        ChangeTag::Delete => LineChange::Removed,
                    },
                    old: change.old_index().map(|index| index + 1),
                    new: change.new_index().map(|index| index + 1),
                    segments: change.iter_strings_lossy().map(segment).filter(|(_, text)| !text.is_empty()).collect(),
                }
            })
            .collect()
    };
    diff.grouped_ops(CONTEXT).iter().map(hunk).collect()
}

/// Pairs the lines of a hunk for a view of two columns: removed lines on the left, added lines on the right.
pub(crate) fn side_by_side(hunk: Hunk) -> Vec<(Option<DiffLine>, Option<DiffLine>)> {
    let mut pairs: Vec<(Option<DiffLine>, Option<DiffLine>)> = Vec::new();
    // The index of the next removed line that an added line is paired with.
    let mut next_removed = 0;
    for line in hunk {
        match line.change {
            LineChange::Unchanged => {
                pairs.push((Some(line.clone()), Some(line)));
                next_removed = pairs.len();
            }
            LineChange::Removed => pairs.push((Some(line), None)),
            LineChange::Added if next_removed < pairs.len() => {
                pairs[next_removed].1 = Some(line);
                next_removed += 1;
            }
            LineChange::Added => {
                pairs.push((None, Some(line)));
                next_removed = pairs.len();
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(line: &DiffLine) -> String {
        line.segments.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn changed_words_are_marked() {
        let hunks = hunks("a\n  \"rate\": 0.005,\nz\n", "a\n  \"rate\": 0.01,\nz\n");
        let [hunk] = hunks.as_slice() else { panic!("one place: {hunks:?}") };
        let described_lines: Vec<_> = hunk.iter().map(|line| (line.change, line.old, line.new)).collect();
        let expected = [
            (LineChange::Unchanged, Some(1), Some(1)),
            (LineChange::Removed, Some(2), None),
            (LineChange::Added, None, Some(2)),
            (LineChange::Unchanged, Some(3), Some(3)),
        ];
        assert_eq!(described_lines, expected);
        let marked: String =
            hunk[2].segments.iter().filter(|(changed, _)| *changed).map(|(_, text)| text.as_str()).collect();
        assert!(marked.contains("01") && !marked.contains("rate"), "{marked:?}");
        assert_eq!(text(&hunk[1]), "  \"rate\": 0.005,");
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let old = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        let new = old.replace("\n2\n", "\ntwo\n").replace("\n37\n", "\nmany\n");
        assert_eq!((hunks(&old, &new).len(), hunks(&old, &old).len()), (2, 0));
    }

    #[test]
    fn removed_lines_are_beside_added_ones() {
        let hunks = hunks("a\nb\nc\nz\n", "a\nB\nz\ny\n");
        let pairs: Vec<_> = side_by_side(hunks[0].clone())
            .into_iter()
            .map(|(old, new)| (old.as_ref().map(text), new.as_ref().map(text)))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            pairs,
            [
                (some("a"), some("a")),
                (some("b"), some("B")),
                (some("c"), None),
                (some("z"), some("z")),
                (None, some("y"))
            ]
        );
    }

    proptest! {
        #[test]
        fn no_changed_line_is_missing(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let lines: Vec<DiffLine> = hunks(&old, &new).into_iter().flatten().collect();
            let removed = lines.iter().filter(|line| line.change == LineChange::Removed).count();
            let added = lines.iter().filter(|line| line.change == LineChange::Added).count();
            prop_assert_eq!(new.lines().count() + removed, old.lines().count() + added);
            for line in &lines {
                if let Some(old_number) = line.old {
                    prop_assert_eq!(text(line), old.lines().nth(old_number - 1).unwrap_or_default());
                }
                if let Some(new_number) = line.new {
                    prop_assert_eq!(text(line), new.lines().nth(new_number - 1).unwrap_or_default());
                }
            }
        }
    }
}
