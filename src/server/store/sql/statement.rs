//! A statement with its parameters, before it is known which engine runs it.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

/// See the module.
pub struct Statement {
    pub text: SqlStr,
    pub values: Vec<Value>,
}

/// A parameter.
pub enum Value {
    Text(Option<String>),
    Int(Option<i64>),
    Real(Option<f64>),
}

/// How the places of parameters are written where there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// `$1, $2, …`: all that PostgreSQL knows.
    Numbered,
    /// `?, ?, …`: to SQLite `$1` is a name, and the driver looks up the name of each, past those before it.
    Bare,
}

/// A statement without parameters yet.
pub fn sql(text: &'static str) -> Statement {
    Statement { text: text.into_sql_str(), values: Vec::new() }
}

/// `INSERT` of several rows.
pub fn insert(places: Places, table: &'static str, columns: &[&'static str], rows: Vec<Vec<Value>>) -> Statement {
    let values = places.of(columns.len(), rows.len());
    let text = format!("INSERT INTO {table} ({}) VALUES {values}", columns.join(", "));
    many(text, rows)
}

/// `UPDATE` of several rows, each by its own values: those of `v`, which has these `columns`.
pub fn update(
    places: Places,
    table: &'static str,
    columns: &[&'static str],
    set: &str,
    key: &'static str,
    rows: Vec<Vec<Value>>,
) -> Statement {
    let (columns, values) = (columns.join(", "), places.of(columns.len(), rows.len()));
    let text = format!("WITH v ({columns}) AS (VALUES {values}) UPDATE {table} SET {set} FROM v WHERE {key}");
    many(text, rows)
}

/// The only text that is put together, and from constants.
fn many(text: String, rows: Vec<Vec<Value>>) -> Statement {
    Statement { text: AssertSqlSafe(text).into_sql_str(), values: rows.into_iter().flatten().collect() }
}

impl Places {
    /// `($1, $2), ($3, $4)` or `(?, ?), (?, ?)` for two columns and two rows.
    fn of(self, columns: usize, rows: usize) -> String {
        let row = |row: usize| {
            let place = |column| match self {
                Self::Numbered => format!("${}", row * columns + column),
                Self::Bare => "?".to_owned(),
            };
            format!("({})", (1..=columns).map(place).collect::<Vec<_>>().join(", "))
        };
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    }
}

impl Statement {
    /// Adds the next parameter.
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// The same without NUL characters, which PostgreSQL has no place for in texts.
    pub fn printable(mut self) -> Self {
        for value in &mut self.values {
            if let Value::Text(Some(text)) = value
                && text.contains('\0')
            {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
        self
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Some(text))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(Some(text.clone()))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(Some(number.into()))
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Int(Some(number.into()))
    }
}

impl From<bool> for Value {
    fn from(switch: bool) -> Self {
        Self::Int(Some(switch.into()))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Option<u32>> for Value {
    fn from(number: Option<u32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

impl From<Option<i32>> for Value {
    fn from(number: Option<i32>) -> Self {
        Self::Int(number.map(i64::from))
    }
}

impl From<Option<f64>> for Value {
    fn from(number: Option<f64>) -> Self {
        Self::Real(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbered_through_or_bare() {
        assert_eq!(Places::Numbered.of(2, 2), "($1, $2), ($3, $4)");
        assert_eq!(Places::Bare.of(2, 2), "(?, ?), (?, ?)");
        let rows = vec![vec![Value::from(1_u8), Value::from(2_u8)]];
        let text = insert(Places::Numbered, "t", &["a", "b"], rows).text;
        assert_eq!(text.as_str(), "INSERT INTO t (a, b) VALUES ($1, $2)");
    }
}
