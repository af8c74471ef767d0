//! Tables for a terminal.

use std::borrow::Cow;

use console::{Style, measure_text_width, pad_str, truncate_str};

/// Between two columns.
const GAP: &str = "  ";
/// No column is made narrower than this to fit the terminal.
const NARROWEST: usize = 8;
/// Made narrower than this, a column takes the room of less important ones.
const READABLE: usize = 20;

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

    /// Wrapped between words, to lines of `width` columns.
    fn wrapped(&self, width: usize) -> Vec<Self> {
        let mut lines: Vec<String> = vec![String::new()];
        for word in self.line().split_whitespace() {
            let room = |line: &&mut String| measure_text_width(line) + 1 + measure_text_width(word) <= width;
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(word),
                line => match line.filter(room) {
                    Some(line) => line.extend([" ", word]),
                    None => lines.push(word.to_owned()),
                },
            }
        }
        lines.into_iter().map(|text| Self { text, paint: self.paint }).collect()
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

/// What happens to a column where the terminal is too narrow for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrow {
    /// Its cells are cut.
    Cut,
    /// Nothing: ids are copied.
    Keep,
    /// It is left out, before others lose anything; the last such column first.
    Drop,
    /// Its cells go on in the next line.
    Wrap,
    /// Its cells stand in a line of their own, below their row.
    Below,
}

/// A heading without its mark, and what that says.
fn column(heading: &str) -> (&str, Narrow) {
    let marks = [('!', Narrow::Keep), ('?', Narrow::Drop), ('~', Narrow::Wrap), ('_', Narrow::Below)];
    let marked = marks.into_iter().find_map(|(mark, narrow)| Some((heading.strip_suffix(mark)?, narrow)));
    marked.unwrap_or((heading, Narrow::Cut))
}

/// The columns that stand side by side, with their widths, and the one below.
struct Layout {
    beside: Vec<(usize, usize)>,
    below: Option<usize>,
}

impl Table {
    /// Without rows yet. A mark at the end of a heading says what happens to the column where the terminal is too narrow:
    /// with `!` it is kept, with `?` left out, with `~` wrapped, with `_` put below its row; without one it is cut.
    pub fn new(headings: &[&'static str]) -> Self {
        Self { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines, each with its end. They fit into `width` columns, if that is possible and there is one.
    pub fn render(&self, width: Option<usize>, colour: bool) -> String {
        let Layout { beside, below } = self.layout(width);
        let headings: Vec<Cell> =
            self.headings.iter().map(|heading| Cell::new(column(heading).0, Paint::Dim)).collect();
        let mut text = self.lines(&headings, &beside, colour);
        for row in &self.rows {
            text.push_str(&self.lines(row, &beside, colour));
            let under = below.and_then(|at| row.get(at)).filter(|cell| !cell.text.is_empty());
            if let (Some(cell), Some(width)) = (under, width) {
                let line = fitted(cell, width.saturating_sub(GAP.len()), colour);
                text.extend([GAP, line.trim_end(), "\n"]);
            }
        }
        text
    }

    /// A row, in as many lines as its longest cell that wraps.
    fn lines(&self, row: &[Cell], beside: &[(usize, usize)], colour: bool) -> String {
        let laid = |(at, width): &(usize, usize)| {
            let cell = row.get(*at).cloned().unwrap_or_default();
            let wraps = column(self.headings[*at]).1 == Narrow::Wrap;
            (if wraps { cell.wrapped(*width) } else { vec![cell] }, *width)
        };
        let laid: Vec<(Vec<Cell>, usize)> = beside.iter().map(laid).collect();
        let mut text = String::new();
        for line in 0..laid.iter().map(|(cells, _)| cells.len()).max().unwrap_or_default() {
            let part = |(cells, width): &(Vec<Cell>, usize)| {
                fitted(&cells.get(line).cloned().unwrap_or_default(), *width, colour)
            };
            let parts: Vec<String> = laid.iter().map(part).collect();
            text.extend([parts.join(GAP).trim_end(), "\n"]);
        }
        text
    }

    fn layout(&self, width: Option<usize>) -> Layout {
        let narrow = |at: usize| column(self.headings[at]).1;
        let wanted = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| Some(measure_text_width(&row.get(at)?.line())));
            cells.chain([column(self.headings[at]).0.len()]).max().unwrap_or_default()
        };
        let mut beside: Vec<(usize, usize)> = (0..self.headings.len()).map(|at| (at, wanted(at))).collect();
        let mut below = None;
        let Some(width) = width else { return Layout { beside, below } };
        let sum = |beside: &[(usize, usize)], of: &dyn Fn(usize, usize) -> usize| {
            let gaps = GAP.len() * beside.len().saturating_sub(1);
            beside.iter().map(|(at, width)| of(*at, *width)).sum::<usize>() + gaps
        };
        let readable = |at: usize, width: usize| if narrow(at) == Narrow::Keep { width } else { width.min(READABLE) };
        for gives_way in [Narrow::Drop, Narrow::Below] {
            while sum(&beside, &readable) > width
                && let Some(place) = beside.iter().rposition(|(at, _)| narrow(*at) == gives_way)
            {
                let (at, _) = beside.remove(place);
                below = below.or((gives_way == Narrow::Below).then_some(at));
            }
        }
        while sum(&beside, &|_, width| width) > width {
            let may_shrink = |(at, width): &&mut (usize, usize)| narrow(*at) != Narrow::Keep && *width > NARROWEST;
            let Some(widest) = beside.iter_mut().filter(may_shrink).max_by_key(|(_, width)| *width) else { break };
            widest.1 -= 1;
        }
        Layout { beside, below }
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
    fn a_narrow_terminal_loses_the_least_important_columns_and_no_sentence() {
        let mut table = Table::new(&["NAME!", "PRIORITY?", "BY?", "WHY~"]);
        table.row(vec![
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
    fn what_has_no_room_beside_stands_below_its_row() {
        let mut table = Table::new(&["JOB!", "STATUS!", "WHY_"]);
        table.row(vec!["j_0123456789".into(), "failed".into(), "ValueError: no images\nTraceback".into()]);
        table.row(vec!["j_0123456790".into(), "queued".into(), Cell::default()]);
        let below = "JOB           STATUS\nj_0123456789  failed\n  ValueError: no images …\nj_0123456790  queued\n";
        assert_eq!(table.render(Some(30), false), below);
        assert!(table.render(Some(50), false).starts_with("JOB           STATUS  WHY\n"));
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
