//! A statement with its parameters, independent of the engine.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// The maximum number of rows in a `VALUES` list.
const MAX_VALUES_ROWS: usize = 64;

pub struct Statement {
    pub text: SqlStr,
    pub values: Vec<SqlValue>,
}

pub enum SqlValue {
    Text(Option<String>),
    Int(Option<i64>),
    Real(Option<f64>),
    /// A column of several rows, on PostgreSQL.
    Texts(Vec<Option<String>>),
    Ints(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
}

/// The placeholder style of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderStyle {
    /// `$1, $2, …`: the only style of PostgreSQL.
    Numbered,
    /// `?, ?, …`: for SQLite `$1` is a name, and the driver searches for each name among all parameters.
    Anonymous,
}

/// Creates a statement without parameters.
pub fn sql(text: &'static str) -> Statement {
    Statement { text: text.into_sql_str(), values: Vec::new() }
}

/// `INSERT` of several rows.
pub fn insert(
    placeholders: PlaceholderStyle,
    table: &'static str,
    columns: &[&'static str],
    rows: Vec<Vec<SqlValue>>,
) -> Statement {
    let (source, values) = placeholders.rows(rows);
    statement(format!("INSERT INTO {table} ({}) {source}", columns.join(", ")), values)
}

/// `INSERT` of several rows, which replace those with the same value of the first column.
pub fn upsert(
    placeholders: PlaceholderStyle,
    table: &'static str,
    columns: &[&'static str],
    rows: Vec<Vec<SqlValue>>,
) -> Statement {
    let (source, values) = placeholders.rows(rows);
    let (key, names) = (columns.first().copied().unwrap_or_default(), columns.join(", "));
    let set: Vec<String> = columns.iter().skip(1).map(|column| format!("{column} = excluded.{column}")).collect();
    let update = format!("ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "));
    statement(format!("INSERT INTO {table} ({names}) {source} {update}"), values)
}

/// `UPDATE` of several rows, each with its own values: those of `v`, which has these `columns`.
pub fn update(
    placeholders: PlaceholderStyle,
    table: &'static str,
    columns: &[&'static str],
    set: &str,
    key: &'static str,
    rows: Vec<Vec<SqlValue>>,
) -> Statement {
    let (source, values) = placeholders.rows(rows);
    let columns = columns.join(", ");
    statement(format!("WITH v ({columns}) AS ({source}) UPDATE {table} SET {set} FROM v WHERE {key}"), values)
}

/// A `WHERE` condition, with a `?` for each of these values.
pub type SqlCondition = (&'static str, Vec<SqlValue>);

/// `SELECT` of the rows that meet all conditions; a `?` in the `end` is a parameter too.
pub fn select(
    placeholders: PlaceholderStyle,
    from: &'static str,
    conditions: Vec<SqlCondition>,
    end: &'static str,
) -> Statement {
    let texts: Vec<&str> = conditions.iter().map(|(text, _)| *text).collect();
    let filter = if texts.is_empty() { String::new() } else { format!(" WHERE {}", texts.join(" AND ")) };
    let text = placeholders.substitute(&format!("{from}{filter}{end}"));
    statement(text, conditions.into_iter().flat_map(|(_, values)| values).collect())
}

/// The only generated text; it consists of constants.
fn statement(text: String, values: Vec<SqlValue>) -> Statement {
    Statement { text: AssertSqlSafe(text).into_sql_str(), values }
}

impl PlaceholderStyle {
    /// Replaces each `?` by the engine's placeholder.
    fn substitute(self, text: &str) -> String {
        let mut parts = text.split('?');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.enumerate().fold(first, |text, (before, part)| match self {
            Self::Numbered => format!("{text}${}{part}", before + 1),
            Self::Anonymous => format!("{text}?{part}"),
        })
    }

    /// A table of these rows, and its parameters: `VALUES (?, ?), (?, ?)`, or on PostgreSQL, where the text is the same
    /// for any number of rows, `SELECT * FROM unnest($1::text[], $2::bigint[])`.
    fn rows(self, rows: Vec<Vec<SqlValue>>) -> (String, Vec<SqlValue>) {
        match self {
            Self::Anonymous => {
                let row = |row: &Vec<SqlValue>| format!("({})", vec!["?"; row.len()].join(", "));
                let text = format!("VALUES {}", rows.iter().map(row).collect::<Vec<_>>().join(", "));
                (text, rows.into_iter().flatten().collect())
            }
            Self::Numbered => {
                let columns = columns_of(rows);
                let column = |(n, column): (usize, &SqlValue)| format!("${}::{}[]", n + 1, column.postgres_type());
                let columns_text: Vec<String> = columns.iter().enumerate().map(column).collect();
                (format!("SELECT * FROM unnest({})", columns_text.join(", ")), columns)
            }
        }
    }

    /// How many of `rows` rows the next statement takes.
    pub fn batch_size(self, rows: usize) -> usize {
        match self {
            // Sizes are powers of two, so that few statements are prepared.
            Self::Anonymous => MAX_VALUES_ROWS.min(1 << rows.max(1).ilog2()),
            Self::Numbered => rows,
        }
    }
}

/// Turns rows into columns; the values of a column are of one kind.
fn columns_of(rows: Vec<Vec<SqlValue>>) -> Vec<SqlValue> {
    let mut columns: Vec<SqlValue> = Vec::new();
    for (n, row) in rows.into_iter().enumerate() {
        for (column, value) in row.into_iter().enumerate() {
            if n == 0 {
                columns.push(value.into_list());
            } else {
                columns[column].push(value);
            }
        }
    }
    columns
}

impl SqlValue {
    fn into_list(self) -> Self {
        match self {
            Self::Text(text) => Self::Texts(vec![text]),
            Self::Int(number) => Self::Ints(vec![number]),
            Self::Real(number) => Self::Reals(vec![number]),
            list => list,
        }
    }

    fn push(&mut self, value: Self) {
        match (self, value) {
            (Self::Texts(list), Self::Text(text)) => list.push(text),
            (Self::Ints(list), Self::Int(number)) => list.push(number),
            (Self::Reals(list), Self::Real(number)) => list.push(number),
            _ => unreachable!("the values of a column are of one kind"),
        }
    }

    fn postgres_type(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Texts(_) => "text",
            Self::Int(_) | Self::Ints(_) => "bigint",
            Self::Real(_) | Self::Reals(_) => "double precision",
        }
    }

    /// All texts in it.
    fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let texts: &mut [Option<String>] = match self {
            Self::Text(text) => std::slice::from_mut(text),
            Self::Texts(texts) => texts,
            Self::Int(_) | Self::Real(_) | Self::Ints(_) | Self::Reals(_) => &mut [],
        };
        texts.iter_mut().flatten()
    }
}

impl Statement {
    pub fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Whether its columns are those that the table has at the moment.
    pub fn returns_all_columns(&self) -> bool {
        let columns = self.text.as_str().strip_prefix("SELECT ").and_then(|text| text.split_once(" FROM "));
        columns.is_some_and(|(columns, _)| columns.split(", ").any(|column| column == "*" || column.ends_with(".*")))
    }

    /// Removes NUL characters, which PostgreSQL cannot store in texts.
    pub fn without_nul(mut self) -> Self {
        for text in self.values.iter_mut().flat_map(SqlValue::texts_mut).filter(|text| text.contains('\0')) {
            *text = text.replace('\0', "\u{fffd}");
        }
        self
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<&String> for SqlValue {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<Option<String>> for SqlValue {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for SqlValue {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<u32> for SqlValue {
    fn from(number: u32) -> Self {
        Self::Int(Some(number.into()))
    }
}

impl From<u8> for SqlValue {
    fn from(number: u8) -> Self {
        Self::Int(Some(number.into()))
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Int(Some(value.into()))
    }
}

impl From<Option<i64>> for SqlValue {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Option<u32>> for SqlValue {
    fn from(number: Option<u32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

impl From<Option<i32>> for SqlValue {
    fn from(number: Option<i32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

impl From<Option<f64>> for SqlValue {
    fn from(number: Option<f64>) -> Self {
        Self::Real(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_return_all_columns_are_known() {
        for all in ["SELECT * FROM t", "SELECT t.* FROM t", "SELECT t.*, u.name FROM t JOIN u USING (id)"] {
            assert!(sql(all).returns_all_columns(), "{all}");
        }
        for named in [
            "SELECT a, count(*) AS b FROM t",
            "SELECT a FROM (SELECT * FROM t) AS t",
            "INSERT INTO t (a) SELECT * FROM unnest($1)",
        ] {
            assert!(!sql(named).returns_all_columns(), "{named}");
        }
    }

    #[test]
    fn placeholders_are_numbered_or_anonymous() {
        let rows = || vec![vec![SqlValue::from(1_u8), SqlValue::from("x")], vec![2_u8.into(), SqlValue::Text(None)]];
        let insert = |placeholders| insert(placeholders, "t", &["a", "b"], rows());
        let (numbered, anonymous) = (insert(PlaceholderStyle::Numbered), insert(PlaceholderStyle::Anonymous));
        let text = "INSERT INTO t (a, b) SELECT * FROM unnest($1::bigint[], $2::text[])";
        assert_eq!((numbered.text.as_str(), numbered.values.len()), (text, 2));
        assert_eq!(anonymous.text.as_str(), "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)");
        assert_eq!(anonymous.values.len(), 4);
        assert!(matches!(&numbered.values[1], SqlValue::Texts(texts) if *texts == [Some("x".to_owned()), None]));
        let without_conditions: fn(PlaceholderStyle) -> String =
            |style| select(style, "SELECT 1", vec![], " LIMIT ?").text.as_str().to_owned();
        assert_eq!(
            (without_conditions(PlaceholderStyle::Numbered), without_conditions(PlaceholderStyle::Anonymous)),
            ("SELECT 1 LIMIT $1".into(), "SELECT 1 LIMIT ?".into())
        );
        let two_conditions: Vec<SqlCondition> =
            vec![("a = ?", vec![1_u8.into()]), ("b < ? AND b > ?", vec![2_u8.into(), 3_u8.into()])];
        let text = select(PlaceholderStyle::Numbered, "SELECT 1", two_conditions, " LIMIT ?").text;
        assert_eq!(text.as_str(), "SELECT 1 WHERE a = $1 AND b < $2 AND b > $3 LIMIT $4");
    }
}
