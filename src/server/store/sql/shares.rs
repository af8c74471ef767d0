//! `teams` and `share_usage`, and the rules among the `settings`.

use std::collections::{BTreeMap, BTreeSet};

use app::domain::shares::{ShareKey, ShareRules, ShareSettings, ShareUsage, Team, TeamMember};
use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::rows::{NamedRow, to_json};
use super::statement::{SqlValue, sql};
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::access::AccessQueries as _;
use crate::store::cache::shares::{ShareChange, ShareState, usage_id};
use crate::store::cache::state::StateChange;
use crate::store::shares::ShareQueries;

/// The key of the rules among the settings.
const RULES: &str = "share_rules";

pub(super) const USAGE_COLUMNS: [&str; 5] = ["id", "used_until", "gpu_time", "slot_time", "month_gpu_time"];

#[derive(Serialize, Deserialize)]
struct MemberJson {
    since: i64,
    settings: ShareSettings,
}

#[derive(Serialize, Deserialize)]
struct RulesJson {
    half_life_ms: i64,
}

#[async_trait]
impl ShareQueries for SqlSession<'_> {
    async fn save_team(&mut self, team: &Team) -> Result<()> {
        let member = |(user, member): (&String, &TeamMember)| {
            (user.clone(), MemberJson { since: member.since.0, settings: member.settings })
        };
        let members: BTreeMap<String, MemberJson> = team.members.iter().map(member).collect();
        let save =
            sql("INSERT INTO teams (name, description, created_at, settings, members) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (name) DO UPDATE SET description = excluded.description, settings = excluded.settings,
               members = excluded.members");
        let save = save.bind(&team.name).bind(&team.description).bind(team.created_at.0);
        self.execute_one(save.bind(to_json(&team.settings)).bind(to_json(&members))).await?;
        self.record_change(StateChange::Share(ShareChange::Team(team.clone())));
        Ok(())
    }

    async fn delete_team(&mut self, name: &str) -> Result<()> {
        self.execute_one(sql("DELETE FROM teams WHERE name = $1").bind(name)).await?;
        self.record_change(StateChange::Share(ShareChange::TeamRemoved(name.to_owned())));
        Ok(())
    }

    async fn put_share_usage(&mut self, key: &ShareKey, usage: &ShareUsage) -> Result<()> {
        self.require_writer()?;
        self.batch.put_share_usage(usage_id(key), usage_row(key, usage));
        self.record_change(StateChange::Share(ShareChange::Usage(key.clone(), *usage)));
        Ok(())
    }

    async fn put_share_rules(&mut self, rules: ShareRules) -> Result<()> {
        self.put_setting(RULES, Some(&to_json(&RulesJson { half_life_ms: rules.half_life.0 }))).await?;
        self.record_change(StateChange::Share(ShareChange::Rules(rules)));
        Ok(())
    }
}

/// A row of [`USAGE_COLUMNS`].
fn usage_row(key: &ShareKey, usage: &ShareUsage) -> [SqlValue; USAGE_COLUMNS.len()] {
    let ShareUsage { at, gpu_time, slot_time, month_gpu_time } = *usage;
    [usage_id(key).into(), at.0.into(), Some(gpu_time).into(), Some(slot_time).into(), Some(month_gpu_time).into()]
}

impl SqlSession<'_> {
    /// Loads all teams and what they have used.
    pub(super) async fn load_shares(&mut self) -> Result<ShareState> {
        let teams = self.fetch_valid(sql("SELECT * FROM teams"), team_from).await?;
        let usage = self.fetch_valid(sql("SELECT * FROM share_usage"), usage_from).await?;
        let mut shares = ShareState::default();
        let rules = self.share_rules().await?;
        teams.into_iter().chain(usage).chain([rules]).for_each(|change| shares.apply(change));
        Ok(shares)
    }

    async fn share_rules(&mut self) -> Result<ShareChange> {
        let stored = self.setting(RULES).await?;
        // A rule that cannot be read is the default.
        let rules = stored.and_then(|stored| serde_json::from_str::<RulesJson>(&stored).ok());
        let rules = rules.map(|rules| ShareRules { half_life: Millis(rules.half_life_ms) });
        Ok(ShareChange::Rules(rules.unwrap_or_default()))
    }

    /// Reads what other servers have changed.
    pub(super) async fn changed_shares(
        &mut self,
        names: &BTreeSet<String>,
        usage_ids: &BTreeSet<String>,
        rules: bool,
    ) -> Result<Vec<StateChange>> {
        let select = "SELECT * FROM share_usage WHERE id IN (SELECT json_array_elements_text($1::json))";
        let mut changes = self.rows_by_id(select, usage_ids, usage_from).await?;
        let select = "SELECT * FROM teams WHERE name IN (SELECT json_array_elements_text($1::json))";
        let teams = self.rows_by_id(select, names, team_from).await?;
        let is_found =
            |name: &String| teams.iter().any(|change| matches!(change, ShareChange::Team(team) if team.name == *name));
        changes.extend(names.iter().filter(|name| !is_found(name)).cloned().map(ShareChange::TeamRemoved));
        changes.extend(teams);
        if rules {
            changes.push(self.share_rules().await?);
        }
        Ok(changes.into_iter().map(StateChange::Share).collect())
    }
}

fn team_from(row: &SqlRow) -> Result<ShareChange> {
    let row = NamedRow::new(row, "teams", "name")?;
    let members: BTreeMap<String, MemberJson> = row.json("members")?;
    let member = |(user, member): (String, MemberJson)| {
        (user, TeamMember { since: Timestamp(member.since), settings: member.settings })
    };
    Ok(ShareChange::Team(Team {
        name: row.get("name")?,
        description: row.get("description")?,
        created_at: row.timestamp("created_at")?,
        settings: row.json("settings")?,
        members: members.into_iter().map(member).collect(),
    }))
}

fn usage_from(row: &SqlRow) -> Result<ShareChange> {
    let row = NamedRow::new(row, "share_usage", "id")?;
    let id: String = row.get("id")?;
    let (team, user) = id.split_once('/').ok_or_else(|| row.corrupt(format!("id is {id:?}")))?;
    let key = ShareKey { team: team.to_owned(), user: user.to_owned() };
    let time = |column| {
        let value: f64 = row.get(column)?;
        if value.is_finite() { Ok(value) } else { Err(row.corrupt(format!("{column} is {value}"))) }
    };
    let usage = ShareUsage {
        at: row.timestamp("used_until")?,
        gpu_time: time("gpu_time")?,
        slot_time: time("slot_time")?,
        month_gpu_time: time("month_gpu_time")?,
    };
    Ok(ShareChange::Usage(key, usage))
}
