//! Conversion between rows and domain values. A corrupt row is an error that names it, never a panic.

pub mod job;
pub mod worker;

use app::domain::ids::{InvalidId, JobId, WorkerId};
use app::domain::labels::Labels;
use app::domain::time::Timestamp;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};

use super::{SqlRow, store_error};
use crate::store::{Result, StoreError};

impl SqlRow {
    pub fn get<'r, T>(&'r self, column: &'static str) -> Result<T>
    where
        T: Type<Sqlite> + Decode<'r, Sqlite> + Type<Postgres> + Decode<'r, Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column).map_err(store_error),
            Self::Postgres(row) => row.try_get(column).map_err(store_error),
        }
    }
}

/// A row with its table and key, for errors that can be traced.
pub struct NamedRow<'r> {
    row: &'r SqlRow,
    table: &'static str,
    key: String,
}

impl<'r> NamedRow<'r> {
    /// Takes the key from this column.
    pub fn new(row: &'r SqlRow, table: &'static str, key: &'static str) -> Result<Self> {
        Ok(Self { row, table, key: row.get(key)? })
    }

    pub fn get<T>(&self, column: &'static str) -> Result<T>
    where
        T: Type<Sqlite> + Decode<'r, Sqlite> + Type<Postgres> + Decode<'r, Postgres>,
    {
        self.row.get(column)
    }

    pub fn boolean(&self, column: &'static str) -> Result<bool> {
        Ok(self.get::<i64>(column)? != 0)
    }

    pub fn timestamp(&self, column: &'static str) -> Result<Timestamp> {
        self.get(column).map(Timestamp)
    }

    pub fn optional_timestamp(&self, column: &'static str) -> Result<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp))
    }

    /// A number in the range of its type.
    pub fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T> {
        let number: i64 = self.get(column)?;
        T::try_from(number).map_err(|_| self.corrupt(format!("{column} is {number}")))
    }

    /// An optional number in the range of its type.
    pub fn optional_number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<Option<T>> {
        let number: Option<i64> = self.get(column)?;
        number.map(|n| T::try_from(n).map_err(|_| self.corrupt(format!("{column} is {n}")))).transpose()
    }

    /// A column that must not be empty in this state.
    pub fn required<T>(&self, column: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.corrupt(format!("{column} is missing")))
    }

    /// A JSON column.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<T> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|error| self.corrupt(format!("{column}: {error}")))
    }

    /// An optional JSON column.
    pub fn optional_json<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>> {
        self.get::<Option<String>>(column)?.map(|_| self.json(column)).transpose()
    }

    pub fn labels(&self, column: &'static str) -> Result<Labels> {
        self.json(column)
    }

    pub fn job_id(&self, column: &'static str) -> Result<JobId> {
        let text: String = self.get(column)?;
        JobId::parse(&text).map_err(|InvalidId| self.corrupt(format!("{column} is {text:?}")))
    }

    pub fn optional_job_id(&self, column: &'static str) -> Result<Option<JobId>> {
        let text: Option<String> = self.get(column)?;
        text.map(|_| self.job_id(column)).transpose()
    }

    pub fn worker_id(&self, column: &'static str) -> Result<WorkerId> {
        let text: String = self.get(column)?;
        WorkerId::parse(&text).map_err(|InvalidId| self.corrupt(format!("{column} is {text:?}")))
    }

    /// An error that names this row.
    pub fn corrupt(&self, message: String) -> StoreError {
        StoreError::CorruptRow { table: self.table, row: self.key.clone(), message }
    }
}

/// Serializes a value; stored values can always be serialized.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("maps with text keys and plain values")
}
