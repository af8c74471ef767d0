//! Who gets the next GPU: teams and their members have shares of the fleet, by weight, by what they have used, and by
//! what they are guaranteed.

mod rotation;
mod settings;
mod tree;
mod usage;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::rotation::{ShareQueue, ShareRotation};
pub use self::settings::ShareSettings;
pub use self::tree::{
    FleetSize, ReachedShareLimit, ShareLevel, ShareLimit, ShareLoad, ShareStanding, ShareTree, counted_gpus,
};
pub use self::usage::{DEFAULT_HALF_LIFE, ShareUsage};
use super::job_share::DEFAULT_TEAM;
use super::time::{Millis, Timestamp};

/// A member of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamMember {
    /// Since when.
    pub since: Timestamp,
    /// What they may use.
    pub settings: ShareSettings,
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// Its name, which does not change.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// What it may use.
    pub settings: ShareSettings,
    /// Its members, by the name of the user.
    pub members: BTreeMap<String, TeamMember>,
}

impl Team {
    /// The default team before it is first changed.
    pub fn unchanged_default() -> Self {
        Self {
            name: DEFAULT_TEAM.to_owned(),
            description: String::new(),
            created_at: Timestamp(0),
            settings: ShareSettings::default(),
            members: BTreeMap::new(),
        }
    }

    /// Returns whether a user may submit jobs for it.
    pub fn includes(&self, user: &str) -> bool {
        self.name == DEFAULT_TEAM || self.members.contains_key(user)
    }
}

/// All teams, by name.
pub type Teams = BTreeMap<String, Team>;

/// Returns the team for which a user submits without naming one: the one that they joined first, else the default.
pub fn home_team<'t>(teams: &'t Teams, user: &str) -> &'t str {
    let joined = teams.values().filter(|team| team.name != DEFAULT_TEAM);
    let joined = joined.filter_map(|team| Some((team.members.get(user)?.since, team.name.as_str())));
    joined.min().map_or(DEFAULT_TEAM, |(_, name)| name)
}

/// The key of a share: the names of a team and of a user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareKey {
    /// The team.
    pub team: String,
    /// The user.
    pub user: String,
}

/// Settings of all shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareRules {
    /// After this time, usage counts half.
    pub half_life: Millis,
}

impl Default for ShareRules {
    fn default() -> Self {
        Self { half_life: DEFAULT_HALF_LIFE }
    }
}
