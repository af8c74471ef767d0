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

/// A statement without parameters yet.
pub fn sql(text: &'static str) -> Statement {
    Statement { text: text.into_sql_str(), values: Vec::new() }
}

/// `INSERT` of several rows.
pub fn insert(table: &'static str, columns: &[&'static str], rows: Vec<Vec<Value>>) -> Statement {
    let text = format!("INSERT INTO {table} ({}) VALUES {}", columns.join(", "), places(columns.len(), rows.len()));
    many(text, rows)
}

/// `UPDATE` of several rows, each by its own values: those of `v`, which has these `columns`.
pub fn update(
    table: &'static str,
    columns: &[&'static str],
    set: &str,
    key: &'static str,
    rows: Vec<Vec<Value>>,
) -> Statement {
    let (columns, places) = (columns.join(", "), places(columns.len(), rows.len()));
    let text = format!("WITH v ({columns}) AS (VALUES {places}) UPDATE {table} SET {set} FROM v WHERE {key}");
    many(text, rows)
}

/// The only text that is put together, and from constants.
fn many(text: String, rows: Vec<Vec<Value>>) -> Statement {
    Statement { text: AssertSqlSafe(text).into_sql_str(), values: rows.into_iter().flatten().collect() }
}

/// `($1, $2), ($3, $4)` for two columns and two rows.
fn places(columns: usize, rows: usize) -> String {
    let row = |row: usize| {
        let places: Vec<String> = (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
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
    fn places_are_numbered_through() {
        assert_eq!(places(2, 2), "($1, $2), ($3, $4)");
        let rows = vec![vec![Value::from(1_u8), Value::from(2_u8)]];
        assert_eq!(insert("t", &["a", "b"], rows).text.as_str(), "INSERT INTO t (a, b) VALUES ($1, $2)");
    }
}
