//! As much of a block as is worth showing.

/// The most lines of a block, and characters of it, of one of its lines, and of a headline. Headline and block together are
/// what servers of every version keep.
const LINES: usize = 40;
const BLOCK: usize = 3_600;
const LINE: usize = 500;
const HEADLINE: usize = 300;

const MARK: &str = "…";

/// A headline, cut where a word ends.
pub fn headline(text: &str) -> String {
    shortened(text, HEADLINE)
}

/// The first line and the end, as much as there is room for.
pub fn block(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| shortened(line, LINE)).collect();
    let Some((head, rest)) = lines.split_first() else { return String::new() };
    let size = |line: &String| line.chars().count() + 1;
    // The mark of what is left out takes a line too.
    let mut room = BLOCK - size(head).min(BLOCK) - "  …\n".chars().count();
    let mut from = rest.len();
    while from > 0 && rest.len() - from < LINES - 2 && size(&rest[from - 1]) <= room {
        from -= 1;
        room -= size(&rest[from]);
    }
    // Not in the middle of a frame.
    while from > 0 && rest.get(from + 1).is_some() && rest[from].starts_with("    ") {
        from += 1;
    }
    let mark = (from > 0).then(|| format!("  {MARK}"));
    let shown: Vec<String> = std::iter::once(head.clone()).chain(mark).chain(rest[from..].iter().cloned()).collect();
    shown.join("\n")
}

fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let kept = &text[..end];
    let word = kept.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}{MARK}", kept[..word].trim_end())
}
