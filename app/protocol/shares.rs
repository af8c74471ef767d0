//! Teams, and their shares of the fleet.

use serde::{Deserialize, Serialize};

pub use crate::domain::shares::ShareSettings;
use crate::domain::time::Timestamp;

/// `GET /api/teams`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamsPage {
    /// The teams, by name.
    pub teams: Vec<TeamView>,
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// When it was created; `null` for the team `default` before it is first changed.
    pub created_at: Option<Timestamp>,
    /// What it may use.
    pub settings: ShareSettings,
    /// Its members, by name. Every user may submit jobs for the team `default`, also those who are not listed.
    pub members: Vec<TeamMemberView>,
}

/// A member of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamMemberView {
    /// The user.
    pub user: String,
    /// Since when. Without naming a team, users submit for the one that they joined first.
    pub since: Timestamp,
    /// What the member may use.
    pub settings: ShareSettings,
}

/// `POST /api/teams`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTeam {
    /// Its name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it may use.
    #[serde(default)]
    pub settings: ShareSettings,
}

/// `PUT /api/teams/{team}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EditTeam {
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// What it may use.
    #[serde(default)]
    pub settings: ShareSettings,
}

/// `PUT /api/teams/{team}/members/{user}`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PutTeamMember {
    /// What the member may use.
    #[serde(default)]
    pub settings: ShareSettings,
}

/// `PUT /api/shares/rules`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareRulesView {
    /// After this time, usage counts half.
    pub half_life_hours: u32,
}

/// `GET /api/shares`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SharesView {
    /// How usage is counted.
    pub rules: ShareRulesView,
    /// Number of GPUs of the connected workers.
    pub gpus: u32,
    /// Number of GPUs that are guaranteed to teams.
    pub guaranteed_gpus: u32,
    /// The teams, in the order in which they get the next GPU.
    pub teams: Vec<TeamShareView>,
}

/// The share of a team.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeamShareView {
    /// The team's own.
    #[serde(flatten)]
    pub share: ShareView,
    /// Those of its members, in the order in which they get the team's next GPU.
    pub members: Vec<ShareView>,
}

/// What a team or a member uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareView {
    /// The name of the team or of the user.
    pub name: String,
    /// What it may use.
    pub settings: ShareSettings,
    /// Its part by weight, in percent: of the fleet, or of the team.
    pub share_percent: f64,
    /// Its part of all recent usage, in percent. Usage decays.
    pub used_percent: f64,
    /// Recent usage in GPU-hours, which decays.
    pub gpu_hours: f64,
    /// Recent GPU-hours that it should have used in addition, by its weight among those who have used something or have
    /// running jobs; negative if it has used more.
    pub owed_gpu_hours: f64,
    /// GPU-hours of this calendar month, in UTC.
    pub month_gpu_hours: f64,
    /// Number of GPUs that it has now, without those of idle jobs.
    pub running_gpus: u32,
    /// Those of them beyond the guaranteed ones.
    pub borrowed_gpus: u32,
    /// Number of GPUs that its idle jobs have.
    pub idle_gpus: u32,
    /// Number of running jobs, without idle ones.
    pub running_jobs: u32,
    /// Number of waiting jobs.
    pub waiting_jobs: u32,
}
