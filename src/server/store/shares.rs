//! Teams, what their members have used, and the rules for it. They are read from the state in memory.

use app::domain::shares::{ShareKey, ShareRules, ShareUsage, Team};
use async_trait::async_trait;

use super::Result;

#[async_trait]
pub trait ShareQueries {
    /// Inserts or replaces a team.
    async fn save_team(&mut self, team: &Team) -> Result<()>;
    /// Deletes a team. [`super::StoreError::Conflict`] if it does not exist.
    async fn delete_team(&mut self, name: &str) -> Result<()>;
    /// Replaces what a member of a team has used.
    async fn put_share_usage(&mut self, key: &ShareKey, usage: &ShareUsage) -> Result<()>;
    /// Replaces the rules.
    async fn put_share_rules(&mut self, rules: ShareRules) -> Result<()>;
}
