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

/// Words of a `WHERE`, with a `?` for each of these values.
pub type Condition = (&'static str, Vec<Value>);

/// `SELECT` of what meets all of these conditions; in the `end` too, a `?` stands for a parameter.
pub fn select(places: Places, from: &'static str, conditions: Vec<Condition>, end: &'static str) -> Statement {
    let words: Vec<&str> = conditions.iter().map(|(words, _)| *words).collect();
    let filter = if words.is_empty() { String::new() } else { format!(" WHERE {}", words.join(" AND ")) };
    let text = places.named(&format!("{from}{filter}{end}"));
    many(text, conditions.into_iter().map(|(_, values)| values).collect())
}

/// The only text that is put together, and from constants.
fn many(text: String, rows: Vec<Vec<Value>>) -> Statement {
    Statement { text: AssertSqlSafe(text).into_sql_str(), values: rows.into_iter().flatten().collect() }
}

impl Places {
    /// Each `?` as it is written here.
    fn named(self, text: &str) -> String {
        let mut parts = text.split('?');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.enumerate().fold(first, |text, (before, part)| match self {
            Self::Numbered => format!("{text}${}{part}", before + 1),
            Self::Bare => format!("{text}?{part}"),
        })
    }

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
        let all: fn(Places) -> String =
            |places| select(places, "SELECT 1", vec![], " LIMIT ?").text.as_str().to_owned();
        assert_eq!((all(Places::Numbered), all(Places::Bare)), ("SELECT 1 LIMIT $1".into(), "SELECT 1 LIMIT ?".into()));
        let some: Vec<Condition> =
            vec![("a = ?", vec![1_u8.into()]), ("b < ? AND b > ?", vec![2_u8.into(), 3_u8.into()])];
        let text = select(Places::Numbered, "SELECT 1", some, " LIMIT ?").text;
        assert_eq!(text.as_str(), "SELECT 1 WHERE a = $1 AND b < $2 AND b > $3 LIMIT $4");
    }
}
