//! What the members of a group leave for its end.

use super::Session;
use super::statement::sql;
use crate::store::Result;
use crate::store::group::Group;
use crate::store::postgres::CHANNEL;

/// The most bytes that PostgreSQL carries in one notification, and some to spare.
const MOST_BYTES: usize = 7_900;

impl Group for Session<'_> {
    fn plan_after(&mut self) {
        self.wants_plan = true;
    }

    fn announce(&mut self, topics: Vec<String>) {
        self.topics.extend(topics);
    }
}

impl Session<'_> {
    /// Rings on other servers, when this transaction is committed; returns what is to be rung here.
    pub(super) async fn ring(&mut self) -> Result<Vec<String>> {
        let topics: Vec<String> = std::mem::take(&mut self.topics).into_iter().collect();
        let (generation, changed) = self.mirror.as_ref().map_or((0, false), |mirror| mirror.made());
        // What changes without a topic is news for the boards of the others.
        if !self.serves_one() && (changed || !topics.is_empty()) {
            let who = format!("{} {generation}", self.shared.chain);
            let payload = format!("{who} {}", topics.join(" "));
            let payload = if payload.len() > MOST_BYTES { format!("{who} *") } else { payload };
            self.first(sql("SELECT pg_notify($1, $2)::text AS rung").bind(CHANNEL).bind(payload)).await?;
        }
        Ok(topics)
    }
}
