//! Tables for a terminal.

use std::borrow::Cow;

use console::{Style, measure_text_width, pad_str, truncate_str};

const COLUMN_GAP: &str = "  ";
/// Columns are not narrowed below this width to fit the terminal.
const MIN_COLUMN_WIDTH: usize = 8;
/// Below this width, a column takes space from less important ones.
const READABLE_COLUMN_WIDTH: usize = 20;

/// The style of a cell in a terminal with colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellStyle {
    #[default]
    Plain,
    /// Good: green.
    Success,
    /// In progress: cyan.
    Active,
    /// Needs attention: yellow.
    Warning,
    /// Failed: red.
    Error,
    /// Secondary: dim.
    Dim,
}

impl CellStyle {
    fn apply(self, text: &str) -> String {
        let style = Style::new().force_styling(true);
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Success => style.green(),
            Self::Active => style.cyan(),
            Self::Warning => style.yellow(),
            Self::Error => style.red(),
            Self::Dim => style.dim(),
        };
        style.apply_to(text).to_string()
    }
}

/// Text in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableCell {
    text: String,
    style: CellStyle,
}

impl TableCell {
    /// Creates a cell. Control characters are escaped, because names and errors come from untrusted sources. Line
    /// breaks are kept and tabs become spaces; tables and facts format them.
    pub fn new(text: impl AsRef<str>, style: CellStyle) -> Self {
        let visible_char = |c: char| match c {
            '\n' => c,
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        };
        Self { text: text.as_ref().trim_end().chars().map(visible_char).collect(), style }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text as a single line.
    fn single_line(&self) -> Cow<'_, str> {
        match self.text.split_once('\n') {
            Some((first, _)) => Cow::Owned(format!("{first} …")),
            None => Cow::Borrowed(&self.text),
        }
    }

    /// Wraps the text between words to lines of `width` columns.
    fn wrap(&self, width: usize) -> Vec<Self> {
        let mut lines: Vec<String> = vec![String::new()];
        for word in self.single_line().split_whitespace() {
            let fits = |line: &&mut String| measure_text_width(line) + 1 + measure_text_width(word) <= width;
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                line => match line.filter(fits) {
                    Some(line) => line.extend([" ", word]),
                    None => lines.push(word.to_owned()),
                },
            }
        }
        lines.into_iter().map(|text| Self { text, style: self.style }).collect()
    }
}

impl<T: AsRef<str>> From<T> for TableCell {
    fn from(text: T) -> Self {
        Self::new(text, CellStyle::Plain)
    }
}

/// Rows under a line of headings.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<TableCell>>,
}

/// What happens to a column if the terminal is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverflowRule {
    /// Cells are truncated.
    Truncate,
    /// Unchanged: IDs are copied.
    Keep,
    /// Omitted, before other columns are changed; the last such column first.
    Drop,
    /// Cells wrap into the next line.
    Wrap,
    /// Cells get their own line below the row.
    Below,
}

/// Splits a heading into its text and its rule.
fn parse_heading(heading: &str) -> (&str, OverflowRule) {
    let marks =
        [('!', OverflowRule::Keep), ('?', OverflowRule::Drop), ('~', OverflowRule::Wrap), ('_', OverflowRule::Below)];
    let parsed = marks.into_iter().find_map(|(mark, rule)| Some((heading.strip_suffix(mark)?, rule)));
    parsed.unwrap_or((heading, OverflowRule::Truncate))
}

/// The columns of a row with their widths, and the one below.
struct TableLayout {
    columns: Vec<(usize, usize)>,
    below_row: Option<usize>,
}

impl Table {
    /// Creates an empty table. The last character of a heading is the rule for narrow terminals: `!` keep, `?` omit,
    /// `~` wrap, `_` below the row; without one, truncate.
    pub fn new(headings: &[impl AsRef<str>]) -> Self {
        Self { headings: headings.iter().map(|heading| heading.as_ref().to_owned()).collect(), rows: Vec::new() }
    }

    pub fn add_row(&mut self, cells: Vec<TableCell>) {
        self.rows.push(cells);
    }

    /// Renders the lines, within `width` columns if given and possible.
    pub fn render(&self, width: Option<usize>, color: bool) -> String {
        let TableLayout { columns, below_row: column_below } = self.layout(width);
        let headings: Vec<TableCell> =
            self.headings.iter().map(|heading| TableCell::new(parse_heading(heading).0, CellStyle::Dim)).collect();
        let mut text = self.render_row(&headings, &columns, color);
        for row in &self.rows {
            text.push_str(&self.render_row(row, &columns, color));
            let cell_below = column_below.and_then(|at| row.get(at)).filter(|cell| !cell.is_empty());
            if let (Some(cell), Some(width)) = (cell_below, width) {
                let line = fit_cell(cell, width.saturating_sub(COLUMN_GAP.len()), color);
                text.extend([COLUMN_GAP, line.trim_end(), "\n"]);
            }
        }
        text
    }

    /// Renders a row, in as many lines as its longest wrapped cell has.
    fn render_row(&self, row: &[TableCell], columns: &[(usize, usize)], color: bool) -> String {
        let cells = |(column, width): &(usize, usize)| {
            let cell = row.get(*column).cloned().unwrap_or_default();
            let wraps = parse_heading(&self.headings[*column]).1 == OverflowRule::Wrap;
            (if wraps { cell.wrap(*width) } else { vec![cell] }, *width)
        };
        let cells: Vec<(Vec<TableCell>, usize)> = columns.iter().map(cells).collect();
        let mut text = String::new();
        for line in 0..cells.iter().map(|(cells, _)| cells.len()).max().unwrap_or_default() {
            let cell_text = |(cells, width): &(Vec<TableCell>, usize)| {
                fit_cell(&cells.get(line).cloned().unwrap_or_default(), *width, color)
            };
            let cell_texts: Vec<String> = cells.iter().map(cell_text).collect();
            text.extend([cell_texts.join(COLUMN_GAP).trim_end(), "\n"]);
        }
        text
    }

    fn layout(&self, width: Option<usize>) -> TableLayout {
        let overflow_rule = |column: usize| parse_heading(&self.headings[column]).1;
        let full_width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| Some(measure_text_width(&row.get(column)?.single_line())));
            cells.chain([parse_heading(&self.headings[column]).0.len()]).max().unwrap_or_default()
        };
        let mut columns: Vec<(usize, usize)> =
            (0..self.headings.len()).map(|column| (column, full_width(column))).collect();
        let mut column_below = None;
        let Some(width) = width else { return TableLayout { columns, below_row: column_below } };
        let sum = |columns: &[(usize, usize)], shown_width: &dyn Fn(usize, usize) -> usize| {
            let gaps = COLUMN_GAP.len() * columns.len().saturating_sub(1);
            columns.iter().map(|(column, width)| shown_width(*column, *width)).sum::<usize>() + gaps
        };
        let readable_width = |column: usize, width: usize| {
            if overflow_rule(column) == OverflowRule::Keep { width } else { width.min(READABLE_COLUMN_WIDTH) }
        };
        for rule in [OverflowRule::Drop, OverflowRule::Below] {
            while sum(&columns, &readable_width) > width
                && let Some(index) = columns.iter().rposition(|(column, _)| overflow_rule(*column) == rule)
            {
                let (column, _) = columns.remove(index);
                column_below = column_below.or((rule == OverflowRule::Below).then_some(column));
            }
        }
        while sum(&columns, &|_, width| width) > width {
            let can_shrink = |(column, width): &&mut (usize, usize)| {
                overflow_rule(*column) != OverflowRule::Keep && *width > MIN_COLUMN_WIDTH
            };
            let Some(widest) = columns.iter_mut().filter(can_shrink).max_by_key(|(_, width)| *width) else { break };
            widest.1 -= 1;
        }
        TableLayout { columns, below_row: column_below }
    }
}

/// Renders name-value pairs, one per line; further lines of a value are indented.
pub fn render_facts(facts: &[(&str, TableCell)], color: bool) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |name: &str, text: &str, style: CellStyle| {
        let name = format!("{name:width$}");
        let (name, text) =
            if color { (CellStyle::Dim.apply(&name), style.apply(text)) } else { (name, text.to_owned()) };
        format!("{}\n", format!("{name}{COLUMN_GAP}{text}").trim_end())
    };
    let lines = |(name, cell): &(&str, TableCell)| {
        let names = std::iter::once(*name).chain(std::iter::repeat(""));
        names.zip(cell.text.split('\n')).map(|(name, text)| line(name, text, cell.style)).collect::<String>()
    };
    facts.iter().map(lines).collect()
}

fn fit_cell(cell: &TableCell, width: usize, color: bool) -> String {
    let text = cell.single_line();
    let truncated = truncate_str(&text, width, "…");
    let padded = pad_str(&truncated, width, console::Alignment::Left, None);
    let (text, rest) = padded.split_at(truncated.len());
    if color { format!("{}{rest}", cell.style.apply(text)) } else { padded.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "STATUS", "ID!"]);
        table.add_row(vec!["gpu-1".into(), TableCell::new("idle", CellStyle::Success), "w_0123456789".into()]);
        table.add_row(vec![
            "a-very-long-name-ü-日本語".into(),
            TableCell::new("offline", CellStyle::Error),
            "w_1".into(),
        ]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let expected = "\
NAME                      STATUS   ID
gpu-1                     idle     w_0123456789
a-very-long-name-ü-日本語  offline  w_1
";
        let text = table().render(None, false);
        let plain: Vec<&str> = text.lines().collect();
        let expected_lines: Vec<&str> = expected.lines().collect();
        assert_eq!(plain[2], expected_lines[2]);
        assert_eq!(measure_text_width(plain[0].split("STATUS").next().expect("a column")), 27);
        assert!(plain.iter().all(|line| !line.ends_with(' ')));
    }

    #[test]
    fn long_cells_are_truncated_but_ids_never() {
        let text = table().render(Some(32), false);
        assert_eq!(text, "NAME       STATUS   ID\ngpu-1      idle     w_0123456789\na-very-l…  offline  w_1\n");
        assert!(text.lines().all(|line| measure_text_width(line) <= 32), "{text}");
        assert!(table().render(Some(5), false).contains("w_0123456789"));
    }

    #[test]
    fn narrow_terminal_omits_least_important_columns() {
        let mut table = Table::new(&["NAME!", "PRIORITY?", "BY?", "WHY~"]);
        table.add_row(vec![
            "gpu-1".into(),
            "10".into(),
            "ada".into(),
            "The job asks for site=graz, and this is in linz.".into(),
        ]);
        assert_eq!(table.render(Some(80), false).lines().count(), 2);
        for (width, shows) in [(60, [true, true]), (40, [true, false]), (30, [false, false])] {
            let text = table.render(Some(width), false);
            assert_eq!(["PRIORITY", "BY"].map(|heading| text.contains(heading)), shows, "{width}: {text}");
        }
        let wrapped = "NAME   WHY\ngpu-1  The job asks for\n       site=graz, and\n       this is in linz.\n";
        assert_eq!(table.render(Some(24), false), wrapped);
        assert!(table.render(None, false).contains("PRIORITY"));
    }

    #[test]
    fn wide_cells_move_below_their_row() {
        let mut table = Table::new(&["JOB!", "STATUS!", "WHY_"]);
        table.add_row(vec!["j_0123456789".into(), "failed".into(), "ValueError: no images\nTraceback".into()]);
        table.add_row(vec!["j_0123456790".into(), "queued".into(), TableCell::default()]);
        let below = "JOB           STATUS\nj_0123456789  failed\n  ValueError: no images …\nj_0123456790  queued\n";
        assert_eq!(table.render(Some(30), false), below);
        assert!(table.render(Some(50), false).starts_with("JOB           STATUS  WHY\n"));
    }

    #[test]
    fn colors_keep_widths_and_control_characters_are_escaped() {
        let colored = table().render(Some(40), true);
        assert!(colored.contains("\u{1b}[32midle\u{1b}[0m"), "{colored:?}");
        assert_eq!(console::strip_ansi_codes(&colored), table().render(Some(40), false));
        let mut table = Table::new(&["NAME"]);
        table.add_row(vec!["\u{1b}[2Jx\ny".into()]);
        assert_eq!(table.render(None, false), "NAME\n\u{fffd}[2Jx …\n");
    }

    #[test]
    fn facts_are_aligned() {
        let facts = [
            ("id", TableCell::from("w_1")),
            ("status", TableCell::new("idle", CellStyle::Success)),
            ("reason", TableCell::from("")),
        ];
        assert_eq!(render_facts(&facts, false), "id      w_1\nstatus  idle\nreason\n");
        assert!(render_facts(&facts, true).contains("\u{1b}[32midle"));
        let multi_line_facts = [
            ("why", TableCell::from("ValueError: x\r\nTraceback:\n  File \"a\"\n\tb\n")),
            ("config", TableCell::from("digits")),
        ];
        let lines =
            "why     ValueError: x\u{fffd}\n        Traceback:\n          File \"a\"\n         b\nconfig  digits\n";
        assert_eq!(render_facts(&multi_line_facts, false), lines);
    }
}
