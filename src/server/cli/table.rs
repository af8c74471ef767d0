//! Tables for a terminal.

use std::borrow::Cow;

use console::{Style, measure_text_width, pad_str, truncate_str};

/// Between two columns.
const GAP: &str = "  ";
/// No column is made narrower than this to fit the terminal.
const NARROWEST: usize = 8;

/// How a cell looks where there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// As it is.
    #[default]
    Plain,
    /// All is well: green.
    Good,
    /// Something is under way: cyan.
    Busy,
    /// Somebody should look: yellow.
    Odd,
    /// Something failed: red.
    Bad,
    /// Beside the point: dim.
    Dim,
}

impl Paint {
    fn over(self, text: &str) -> String {
        let style = Style::new().force_styling(true);
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => style.green(),
            Self::Busy => style.cyan(),
            Self::Odd => style.yellow(),
            Self::Bad => style.red(),
            Self::Dim => style.dim(),
        };
        style.apply_to(text).to_string()
    }
}

/// Text in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// Text in this look. What would steer the terminal is shown and not obeyed: names and errors come from strangers. Only
    /// a line break stays one, and a tab becomes a space: how they are shown, a table and facts each know.
    pub fn new(text: impl AsRef<str>, paint: Paint) -> Self {
        let shown = |c: char| match c {
            '\n' => c,
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        };
        Self { text: text.as_ref().trim_end().chars().map(shown).collect(), paint }
    }

    /// All that fits into a line.
    fn line(&self) -> Cow<'_, str> {
        match self.text.split_once('\n') {
            Some((first, _)) => Cow::Owned(format!("{first} …")),
            None => Cow::Borrowed(&self.text),
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text, Paint::Plain)
    }
}

/// Rows under a line of headings.
#[derive(Debug, Clone)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Without rows yet. A heading that ends with `!` is of a column that is never cut: ids are copied.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines, each with its end. They fit into `width` columns, if that is possible and there is one.
    pub fn render(&self, width: Option<usize>, colour: bool) -> String {
        let widths = self.widths(width);
        let headings = self.headings.iter().map(|heading| Cell::new(heading.trim_end_matches('!'), Paint::Dim));
        let headings: Vec<Cell> = headings.collect();
        let mut text = String::new();
        for cells in std::iter::once(&headings).chain(&self.rows) {
            let line: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| fitted(cell, *width, colour)).collect();
            text.push_str(line.join(GAP).trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self, width: Option<usize>) -> Vec<usize> {
        let wanted = |at: usize, heading: &str| {
            let cells = self.rows.iter().filter_map(|row| Some(measure_text_width(&row.get(at)?.line())));
            cells.chain([heading.trim_end_matches('!').len()]).max().unwrap_or_default()
        };
        let mut widths: Vec<usize> =
            self.headings.iter().enumerate().map(|(at, heading)| wanted(at, heading)).collect();
        let room = width.map_or(usize::MAX, |width| width.saturating_sub(GAP.len() * widths.len().saturating_sub(1)));
        while widths.iter().sum::<usize>() > room {
            let may_shrink = |at: &usize| !self.headings[*at].ends_with('!') && widths[*at] > NARROWEST;
            let Some(widest) = (0..widths.len()).filter(may_shrink).max_by_key(|at| widths[*at]) else { break };
            widths[widest] -= 1;
        }
        widths
    }
}

/// Facts by name, one to a line; the further lines of one stand below its first.
pub fn facts(pairs: &[(&str, Cell)], colour: bool) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let line = |name: &str, text: &str, paint: Paint| {
        let name = format!("{name:width$}");
        let (name, text) = if colour { (Paint::Dim.over(&name), paint.over(text)) } else { (name, text.to_owned()) };
        format!("{}\n", format!("{name}{GAP}{text}").trim_end())
    };
    let lines = |(name, cell): &(&str, Cell)| {
        let names = std::iter::once(*name).chain(std::iter::repeat(""));
        names.zip(cell.text.split('\n')).map(|(name, text)| line(name, text, cell.paint)).collect::<String>()
    };
    pairs.iter().map(lines).collect()
}

fn fitted(cell: &Cell, width: usize, colour: bool) -> String {
    let text = cell.line();
    let cut = truncate_str(&text, width, "…");
    let padded = pad_str(&cut, width, console::Alignment::Left, None);
    let (text, rest) = padded.split_at(cut.len());
    if colour { format!("{}{rest}", cell.paint.over(text)) } else { padded.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "STATUS", "ID!"]);
        table.row(vec!["gpu-1".into(), Cell::new("idle", Paint::Good), "w_0123456789".into()]);
        table.row(vec!["a-very-long-name-ü-日本語".into(), Cell::new("offline", Paint::Bad), "w_1".into()]);
        table
    }

    #[test]
    fn columns_stand_under_each_other() {
        let expected = "\
NAME                      STATUS   ID
gpu-1                     idle     w_0123456789
a-very-long-name-ü-日本語  offline  w_1
";
        let text = table().render(None, false);
        let plain: Vec<&str> = text.lines().collect();
        let wanted: Vec<&str> = expected.lines().collect();
        assert_eq!(plain[2], wanted[2]);
        assert_eq!(measure_text_width(plain[0].split("STATUS").next().expect("a column")), 27);
        assert!(plain.iter().all(|line| !line.ends_with(' ')));
    }

    #[test]
    fn long_cells_are_cut_to_the_terminal_and_ids_never() {
        let text = table().render(Some(32), false);
        assert_eq!(text, "NAME       STATUS   ID\ngpu-1      idle     w_0123456789\na-very-l…  offline  w_1\n");
        assert!(text.lines().all(|line| measure_text_width(line) <= 32), "{text}");
        assert!(table().render(Some(5), false).contains("w_0123456789"));
    }

    #[test]
    fn colour_changes_no_width_and_strangers_do_not_steer_the_terminal() {
        let coloured = table().render(Some(40), true);
        assert!(coloured.contains("\u{1b}[32midle\u{1b}[0m"), "{coloured:?}");
        assert_eq!(console::strip_ansi_codes(&coloured), table().render(Some(40), false));
        let mut table = Table::new(&["NAME"]);
        table.row(vec!["\u{1b}[2Jx\ny".into()]);
        assert_eq!(table.render(None, false), "NAME\n\u{fffd}[2Jx …\n");
    }

    #[test]
    fn facts_are_aligned() {
        let pairs = [("id", Cell::from("w_1")), ("status", Cell::new("idle", Paint::Good)), ("reason", Cell::from(""))];
        assert_eq!(facts(&pairs, false), "id      w_1\nstatus  idle\nreason\n");
        assert!(facts(&pairs, true).contains("\u{1b}[32midle"));
        let why =
            [("why", Cell::from("ValueError: x\r\nTraceback:\n  File \"a\"\n\tb\n")), ("config", Cell::from("digits"))];
        let lines =
            "why     ValueError: x\u{fffd}\n        Traceback:\n          File \"a\"\n         b\nconfig  digits\n";
        assert_eq!(facts(&why, false), lines);
    }
}
