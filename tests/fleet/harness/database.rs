//! The server's database, changed as another version would.

use sqlx::{Connection, PgConnection, SqliteConnection, raw_sql};

use super::TestFleet;

/// A migration that only adds: what the next version's first server does to the table of migrations.
pub const NEXT_MIGRATION: &str = "
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        SELECT max(version) + 1, 'next', true, 'unknown', 0 FROM _sqlx_migrations;
    ALTER TABLE workers ADD COLUMN of_next_version TEXT;
    ALTER TABLE jobs ADD COLUMN of_next_version INTEGER NOT NULL DEFAULT 7;
    ALTER TABLE attempts ADD COLUMN of_next_version TEXT;
    ALTER TABLE users ADD COLUMN of_next_version TEXT;
    ALTER TABLE api_tokens ADD COLUMN of_next_version TEXT;
    ALTER TABLE audit ADD COLUMN of_next_version TEXT;
    ALTER TABLE config_revisions ADD COLUMN of_next_version TEXT;
    ALTER TABLE artifacts ADD COLUMN of_next_version TEXT;
    CREATE TABLE of_next_version (id BIGINT PRIMARY KEY);
";
/// What a migration adds that removes something which this version uses.
pub const CONTRACTION: &str = "UPDATE generation SET oldest_schema = (SELECT max(version) FROM _sqlx_migrations)";

impl TestFleet {
    /// Runs these statements on the database.
    pub async fn execute_sql(&self, statements: &'static str) {
        if let Some(database) = &self.database {
            let mut connection = PgConnection::connect(database).await.expect("a database");
            raw_sql(statements).execute(&mut connection).await.expect("statements");
        } else {
            let mut connection = SqliteConnection::connect(&self.sqlite_url()).await.expect("a database");
            raw_sql(statements).execute(&mut connection).await.expect("statements");
        }
    }

    /// How many rows some tables have, which each start of a server changes.
    pub async fn row_counts(&self) -> (i64, i64, i64) {
        const COUNTS: &str = "SELECT (SELECT count(*) FROM audit), (SELECT count(*) FROM api_tokens),
            (SELECT count(*) FROM _sqlx_migrations)";
        if let Some(database) = &self.database {
            let mut connection = PgConnection::connect(database).await.expect("a database");
            sqlx::query_as(COUNTS).fetch_one(&mut connection).await.expect("counts")
        } else {
            let mut connection = SqliteConnection::connect(&self.sqlite_url()).await.expect("a database");
            sqlx::query_as(COUNTS).fetch_one(&mut connection).await.expect("counts")
        }
    }

    fn sqlite_url(&self) -> String {
        format!("sqlite:{}", self.data().join("orchestrator.db").display())
    }
}
