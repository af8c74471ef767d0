//! Truncates findings to a size that is useful to show.

/// Limits: lines and characters of a block, and characters of a line and of a headline. Servers of every version store
/// a headline and block of this size.
const MAX_BLOCK_LINES: usize = 40;
const MAX_BLOCK_CHARS: usize = 3_600;
const MAX_LINE_CHARS: usize = 500;
const MAX_HEADLINE_CHARS: usize = 300;

const ELLIPSIS: &str = "…";

/// Truncates a headline at the end of a word.
pub fn truncate_headline(text: &str) -> String {
    shorten(text, MAX_HEADLINE_CHARS)
}

/// Truncates a block to its first line and as much of its end as possible.
pub fn truncate_block(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| shorten(line, MAX_LINE_CHARS)).collect();
    let Some((head, rest)) = lines.split_first() else { return String::new() };
    let size = |line: &String| line.chars().count() + 1;
    // The ellipsis takes a line too.
    let mut remaining_chars = MAX_BLOCK_CHARS - size(head).min(MAX_BLOCK_CHARS) - "  …\n".chars().count();
    let mut tail_start = rest.len();
    while tail_start > 0
        && rest.len() - tail_start < MAX_BLOCK_LINES - 2
        && size(&rest[tail_start - 1]) <= remaining_chars
    {
        tail_start -= 1;
        remaining_chars -= size(&rest[tail_start]);
    }
    // Do not start in the middle of a frame.
    while tail_start > 0 && rest.get(tail_start + 1).is_some() && rest[tail_start].starts_with("    ") {
        tail_start += 1;
    }
    let ellipsis_line = (tail_start > 0).then(|| format!("  {ELLIPSIS}"));
    let kept_lines: Vec<String> =
        std::iter::once(head.clone()).chain(ellipsis_line).chain(rest[tail_start..].iter().cloned()).collect();
    kept_lines.join("\n")
}

fn shorten(text: &str, max_chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max_chars) else { return text.to_owned() };
    let truncated = &text[..end];
    let word_end = truncated.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}{ELLIPSIS}", truncated[..word_end].trim_end())
}
