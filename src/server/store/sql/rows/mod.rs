//! Rows to domain values and back. A row that makes no sense is an error that names it, never a panic.

pub mod job;
pub mod worker;

use app::domain::ids::{BadId, JobId, WorkerId};
use app::domain::labels::Labels;
use app::domain::time::Timestamp;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};

use super::{Row, failed};
use crate::store::{Result, StoreError};

impl Row {
    /// One column.
    pub fn get<'r, T>(&'r self, column: &'static str) -> Result<T>
    where
        T: Type<Sqlite> + Decode<'r, Sqlite> + Type<Postgres> + Decode<'r, Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column).map_err(failed),
            Self::Postgres(row) => row.try_get(column).map_err(failed),
        }
    }
}

/// A row with the name of its table and key, for errors that can be found again.
pub struct Named<'r> {
    row: &'r Row,
    table: &'static str,
    key: String,
}

impl<'r> Named<'r> {
    /// Takes the key from this column.
    pub fn new(row: &'r Row, table: &'static str, key: &'static str) -> Result<Self> {
        Ok(Self { row, table, key: row.get(key)? })
    }

    /// One column.
    pub fn get<T>(&self, column: &'static str) -> Result<T>
    where
        T: Type<Sqlite> + Decode<'r, Sqlite> + Type<Postgres> + Decode<'r, Postgres>,
    {
        self.row.get(column)
    }

    /// A switch.
    pub fn flag(&self, column: &'static str) -> Result<bool> {
        Ok(self.get::<i64>(column)? != 0)
    }

    /// A moment.
    pub fn moment(&self, column: &'static str) -> Result<Timestamp> {
        self.get(column).map(Timestamp)
    }

    /// A moment, if there is one.
    pub fn optional_moment(&self, column: &'static str) -> Result<Option<Timestamp>> {
        Ok(self.get::<Option<i64>>(column)?.map(Timestamp))
    }

    /// A number that must fit.
    pub fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T> {
        let number: i64 = self.get(column)?;
        T::try_from(number).map_err(|_| self.broken(format!("{column} is {number}")))
    }

    /// A number that must fit, if there is one.
    pub fn optional_number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<Option<T>> {
        let number: Option<i64> = self.get(column)?;
        number.map(|n| T::try_from(n).map_err(|_| self.broken(format!("{column} is {n}")))).transpose()
    }

    /// A column that must not be empty in this state.
    pub fn required<T>(&self, column: &'static str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.broken(format!("{column} is missing")))
    }

    /// JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<T> {
        let text: String = self.get(column)?;
        serde_json::from_str(&text).map_err(|error| self.broken(format!("{column}: {error}")))
    }

    /// JSON, if there is any.
    pub fn optional_json<T: serde::de::DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>> {
        self.get::<Option<String>>(column)?.map(|_| self.json(column)).transpose()
    }

    /// Labels.
    pub fn labels(&self, column: &'static str) -> Result<Labels> {
        self.json(column)
    }

    /// A job's id.
    pub fn job_id(&self, column: &'static str) -> Result<JobId> {
        let text: String = self.get(column)?;
        JobId::parse(&text).map_err(|BadId| self.broken(format!("{column} is {text:?}")))
    }

    /// A job's id, if there is one.
    pub fn optional_job_id(&self, column: &'static str) -> Result<Option<JobId>> {
        let text: Option<String> = self.get(column)?;
        text.map(|_| self.job_id(column)).transpose()
    }

    /// A worker's id.
    pub fn worker_id(&self, column: &'static str) -> Result<WorkerId> {
        let text: String = self.get(column)?;
        WorkerId::parse(&text).map_err(|BadId| self.broken(format!("{column} is {text:?}")))
    }

    /// An error that names this row.
    pub fn broken(&self, what: String) -> StoreError {
        StoreError::Inconsistent { table: self.table, row: self.key.clone(), what }
    }
}

/// JSON text; the values that are kept can always be written.
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("maps with text keys and plain values")
}
