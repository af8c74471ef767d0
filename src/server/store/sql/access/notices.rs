//! `account_notices` and `login_networks`.

use app::domain::ids::{SessionId, UserId};
use app::domain::notice::NoticeKind;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::access::AccessQueries;
use crate::store::access::notices::{NoticeQueries, StoredNotice};
use crate::store::cache::access::AccessChange;
use crate::store::cache::state::StateChange;
use crate::store::sql::rows::NamedRow;
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl NoticeQueries for SqlSession<'_> {
    async fn notices(&mut self, user: &UserId) -> Result<Vec<StoredNotice>> {
        let select = sql("SELECT * FROM account_notices WHERE user_id = $1 ORDER BY at DESC, kind, host, agent");
        self.fetch_all(select.bind(user.as_str()), notice_from).await
    }

    async fn add_notice(&mut self, notice: &StoredNotice, max: u32) -> Result<()> {
        let put = sql("INSERT INTO account_notices (user_id, kind, host, agent, actor, at, session_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (user_id, kind, host, agent) DO UPDATE SET actor = excluded.actor, at = excluded.at,
               session_id = excluded.session_id");
        let put = put.bind(notice.user.as_str()).bind(notice.kind.as_str()).bind(&notice.host).bind(&notice.user_agent);
        let put = put.bind(&notice.actor).bind(notice.at.0);
        self.execute_one(put.bind(notice.session.as_ref().map(SessionId::as_str))).await?;
        let trim = sql("DELETE FROM account_notices WHERE user_id = $1 AND at < (
                SELECT at FROM account_notices WHERE user_id = $1 ORDER BY at DESC LIMIT 1 OFFSET $2)");
        self.execute(trim.bind(notice.user.as_str()).bind(i64::from(max) - 1)).await?;
        self.count_notices(&notice.user).await
    }

    async fn clear_notices(&mut self, user: &UserId, until: Timestamp) -> Result<()> {
        let delete = sql("DELETE FROM account_notices WHERE user_id = $1 AND at <= $2");
        self.execute(delete.bind(user.as_str()).bind(until.0)).await?;
        self.count_notices(user).await
    }

    async fn login_networks(&mut self, user: &UserId) -> Result<Vec<String>> {
        let select = sql("SELECT network FROM login_networks WHERE user_id = $1 ORDER BY network");
        self.fetch_all(select.bind(user.as_str()), |row| row.get("network")).await
    }

    async fn record_login_network(
        &mut self,
        user: &UserId,
        network: &str,
        at: Timestamp,
        forget_before: Timestamp,
    ) -> Result<()> {
        let put = sql("INSERT INTO login_networks (user_id, network, last_login_at) VALUES ($1, $2, $3)
             ON CONFLICT (user_id, network) DO UPDATE SET last_login_at = excluded.last_login_at");
        self.execute_one(put.bind(user.as_str()).bind(network).bind(at.0)).await?;
        let old = sql("DELETE FROM login_networks WHERE user_id = $1 AND last_login_at < $2");
        self.execute(old.bind(user.as_str()).bind(forget_before.0)).await.map(drop)
    }
}

impl SqlSession<'_> {
    /// Updates the number of unread notices, which every page shows.
    async fn count_notices(&mut self, user: &UserId) -> Result<()> {
        let count = sql("UPDATE users SET unread_notices =
                (SELECT COUNT(*) FROM account_notices WHERE user_id = $1) WHERE id = $1");
        self.execute_one(count.bind(user.as_str())).await?;
        if let Some(user) = self.user(user).await? {
            self.record_change(StateChange::Access(AccessChange::User(user)));
        }
        Ok(())
    }
}

fn notice_from(row: &SqlRow) -> Result<StoredNotice> {
    let row = NamedRow::new(row, "account_notices", "kind")?;
    let kind: String = row.get("kind")?;
    let session: Option<String> = row.get("session_id")?;
    Ok(StoredNotice {
        user: row.user_id("user_id")?,
        kind: NoticeKind::parse(&kind).ok_or_else(|| row.corrupt(format!("kind is {kind:?}")))?,
        host: row.get("host")?,
        user_agent: row.get("agent")?,
        actor: row.get("actor")?,
        at: row.timestamp("at")?,
        session: session.map(|_| row.session_id("session_id")).transpose()?,
    })
}
