//! A statement with its parameters, independent of the engine.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

pub struct Statement {
    pub text: SqlStr,
    pub values: Vec<SqlValue>,
}

pub enum SqlValue {
    Text(Option<String>),
    Int(Option<i64>),
    Real(Option<f64>),
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
    let values = placeholders.row_placeholders(columns.len(), rows.len());
    let text = format!("INSERT INTO {table} ({}) VALUES {values}", columns.join(", "));
    with_rows(text, rows)
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
    let (columns, values) = (columns.join(", "), placeholders.row_placeholders(columns.len(), rows.len()));
    let text = format!("WITH v ({columns}) AS (VALUES {values}) UPDATE {table} SET {set} FROM v WHERE {key}");
    with_rows(text, rows)
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
    with_rows(text, conditions.into_iter().map(|(_, values)| values).collect())
}

/// The only generated text; it consists of constants.
fn with_rows(text: String, rows: Vec<Vec<SqlValue>>) -> Statement {
    Statement { text: AssertSqlSafe(text).into_sql_str(), values: rows.into_iter().flatten().collect() }
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

    /// `($1, $2), ($3, $4)` or `(?, ?), (?, ?)` for two columns and two rows.
    fn row_placeholders(self, columns: usize, rows: usize) -> String {
        let row = |row: usize| {
            let placeholder = |column| match self {
                Self::Numbered => format!("${}", row * columns + column),
                Self::Anonymous => "?".to_owned(),
            };
            format!("({})", (1..=columns).map(placeholder).collect::<Vec<_>>().join(", "))
        };
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    }
}

impl Statement {
    pub fn bind(mut self, value: impl Into<SqlValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Removes NUL characters, which PostgreSQL cannot store in texts.
    pub fn without_nul(mut self) -> Self {
        for value in &mut self.values {
            if let SqlValue::Text(Some(text)) = value
                && text.contains('\0')
            {
                *text = text.replace('\0', "\u{fffd}");
            }
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
    fn placeholders_are_numbered_or_anonymous() {
        assert_eq!(PlaceholderStyle::Numbered.row_placeholders(2, 2), "($1, $2), ($3, $4)");
        assert_eq!(PlaceholderStyle::Anonymous.row_placeholders(2, 2), "(?, ?), (?, ?)");
        let rows = vec![vec![SqlValue::from(1_u8), SqlValue::from(2_u8)]];
        let text = insert(PlaceholderStyle::Numbered, "t", &["a", "b"], rows).text;
        assert_eq!(text.as_str(), "INSERT INTO t (a, b) VALUES ($1, $2)");
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
