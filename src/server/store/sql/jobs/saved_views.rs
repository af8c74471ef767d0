//! `saved_views`.

use async_trait::async_trait;

use crate::store::Result;
use crate::store::jobs::saved_views::{SavedViewQueries, StoredView};
use crate::store::sql::rows::NamedRow;
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl SavedViewQueries for SqlSession<'_> {
    async fn saved_views(&mut self, owner: &str) -> Result<Vec<StoredView>> {
        let select = sql("SELECT * FROM saved_views WHERE owner = $1 OR shared = 1 ORDER BY name, owner").bind(owner);
        self.fetch_valid(select, from_row).await
    }

    async fn save_view(&mut self, view: &StoredView) -> Result<()> {
        let save = sql("INSERT INTO saved_views (owner, name, query, shared, saved_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (owner, name) DO UPDATE SET query = excluded.query, shared = excluded.shared,
               saved_at = excluded.saved_at");
        let save = save.bind(&view.owner).bind(&view.name).bind(&view.query);
        self.execute_one(save.bind(i64::from(view.shared)).bind(view.saved_at.0)).await
    }

    async fn delete_view(&mut self, owner: &str, name: &str) -> Result<()> {
        self.execute_one(sql("DELETE FROM saved_views WHERE owner = $1 AND name = $2").bind(owner).bind(name)).await
    }
}

fn from_row(row: &SqlRow) -> Result<StoredView> {
    let row = NamedRow::new(row, "saved_views", "name")?;
    Ok(StoredView {
        owner: row.get("owner")?,
        name: row.get("name")?,
        query: row.get("query")?,
        shared: row.get::<i64>("shared")? != 0,
        saved_at: row.timestamp("saved_at")?,
    })
}
