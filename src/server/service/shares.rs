//! Teams and their shares of the fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::access::{Permission, is_valid_name};
use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::audit::AuditAction;
use app::domain::job::{AttemptLoss, Job};
use app::domain::job_share::{DEFAULT_TEAM, JobClass};
use app::domain::shares::{
    ShareLoad, ShareRules, ShareSettings, ShareStanding, ShareTree, Team, TeamMember, Teams, home_team,
};
use app::domain::text::is_plain;
use app::domain::time::Millis;
use app::protocol::shares::{
    CreateTeam, EditTeam, PutTeamMember, ShareRulesView, ShareView, SharesView, TeamMemberView, TeamShareView,
    TeamView, TeamsPage,
};
use app::protocol::topic::Topic;
use itertools::Itertools as _;
use serde_json::json;

use super::ServiceContext;
use super::error::{InvalidField, InvalidInput, ResourceLimit, ServiceError, require_valid};
use super::unit_of_work::{Caller, UnitOfWork};
use crate::store::cache::shares::share_key;
use crate::store::cache::state::FleetState;

/// The maximum number of teams, and of members of one.
const MAX_TEAMS: usize = 500;
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 200;
/// Allowed half-lives, in hours.
const HALF_LIVES: AllowedValues = AllowedValues::Number { min: 1, max: 8_760 };
const HOUR_MILLIS: f64 = 3_600_000.0;

/// Teams and their shares.
pub struct ShareService {
    pub(super) context: Arc<ServiceContext>,
}

impl ShareService {
    /// Lists the teams.
    pub async fn teams_page(&self) -> Result<TeamsPage, ServiceError> {
        let list = |fleet_state: &FleetState| all_teams(fleet_state.shares().teams()).map(team_view).collect();
        Ok(TeamsPage { teams: self.context.read_recent().await?.with_state(list).await? })
    }

    /// Returns a team.
    pub async fn team(&self, name: &str) -> Result<TeamView, ServiceError> {
        let find = |fleet_state: &FleetState| find_team(fleet_state.shares().teams(), name);
        let found = self.context.read_recent().await?.with_state(find).await?;
        found.map(team_view).ok_or_else(|| ServiceError::TeamNotFound(shortened(name)))
    }

    /// Creates a team.
    pub async fn create_team(self: &Arc<Self>, caller: Caller, create: CreateTeam) -> Result<TeamView, ServiceError> {
        let name_field = || InvalidField::out_of_range("name", AllowedValues::AccountName);
        let invalid_name = (!is_valid_name(&create.name)).then(name_field);
        require_valid(invalid_name.into_iter().chain(invalid_fields(&create.description, &create.settings)).collect())?;
        self.change_teams(caller, move |unit, teams| {
            if create.name == DEFAULT_TEAM || teams.contains_key(&create.name) {
                return Err(ServiceError::TeamExists(create.name.clone()));
            }
            if teams.len() >= MAX_TEAMS {
                return Err(InvalidInput::TooMuch { items: LimitedItems::Teams, limit: MAX_TEAMS as u64 }.into());
            }
            let team = Team {
                name: create.name.clone(),
                description: create.description.trim().to_owned(),
                created_at: unit.now,
                settings: create.settings,
                members: BTreeMap::new(),
            };
            Ok((team, AuditAction::TeamCreated, json!({"settings": create.settings})))
        })
        .await
    }

    /// Changes the description and the settings of a team.
    pub async fn edit_team(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        edit: EditTeam,
    ) -> Result<TeamView, ServiceError> {
        require_valid(invalid_fields(&edit.description, &edit.settings).collect())?;
        self.change_teams(caller, move |_, teams| {
            let team = require_team(teams, &name)?;
            let detail = json!({"before": team.settings, "after": edit.settings});
            let team = Team { description: edit.description.trim().to_owned(), settings: edit.settings, ..team };
            Ok((team, AuditAction::TeamEdited, detail))
        })
        .await
    }

    /// Adds a user to a team, or changes what the member may use.
    pub async fn put_member(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        user: String,
        put: PutTeamMember,
    ) -> Result<TeamView, ServiceError> {
        require_valid(invalid_settings(&put.settings).collect())?;
        let is_known = self.context.read().await?.user_by_name(&user).await?.is_some();
        self.change_teams(caller, move |unit, teams| {
            let mut team = require_team(teams, &name)?;
            let before = team.members.get(&user).copied();
            if before.is_none() && !is_known {
                return Err(ServiceError::UserNameNotFound(shortened(&user)));
            }
            if before.is_none() && team.members.len() >= MAX_TEAMS {
                return Err(InvalidInput::TooMuch { items: LimitedItems::TeamMembers, limit: MAX_TEAMS as u64 }.into());
            }
            let since = before.map_or(unit.now, |member| member.since);
            team.members.insert(user.clone(), TeamMember { since, settings: put.settings });
            let action = if before.is_some() { AuditAction::TeamMemberEdited } else { AuditAction::TeamMemberAdded };
            Ok((team, action, json!({"user": user, "settings": put.settings})))
        })
        .await
    }

    /// Removes a member from a team. Jobs that were submitted for it still count for it.
    pub async fn remove_member(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        user: String,
    ) -> Result<TeamView, ServiceError> {
        self.change_teams(caller, move |_, teams| {
            let mut team = require_team(teams, &name)?;
            if team.members.remove(&user).is_none() {
                return Err(ServiceError::UserNameNotFound(shortened(&user)));
            }
            Ok((team, AuditAction::TeamMemberRemoved, json!({"user": user})))
        })
        .await
    }

    /// Deletes a team. Its jobs count for the default team afterwards.
    pub async fn delete_team(self: &Arc<Self>, caller: Caller, name: String) -> Result<(), ServiceError> {
        if name == DEFAULT_TEAM {
            return Err(ServiceError::DefaultTeam);
        }
        self.context
            .change(caller, move |unit| {
                let name = name.clone();
                Box::pin(async move {
                    let team = unit.tx.with_state(|state| require_team(state.shares().teams(), &name)).await??;
                    unit.tx.delete_team(&team.name).await?;
                    let members: Vec<&String> = team.members.keys().collect();
                    unit.record(AuditAction::TeamDeleted, &team.name, &json!({"members": members})).await?;
                    after_change(unit);
                    Ok(())
                })
            })
            .await
    }

    /// Sets how usage is counted.
    pub async fn set_rules(
        self: &Arc<Self>,
        caller: Caller,
        rules: ShareRulesView,
    ) -> Result<ShareRulesView, ServiceError> {
        if !HALF_LIVES.contains(rules.half_life_hours.into()) {
            return Err(InvalidInput::OutOfRange { field: "half_life_hours", allowed: HALF_LIVES }.into());
        }
        self.context
            .change(caller, move |unit| {
                Box::pin(async move {
                    let half_life = Millis::from_secs(i64::from(rules.half_life_hours) * 3_600);
                    unit.tx.put_share_rules(ShareRules { half_life }).await?;
                    unit.record(AuditAction::ShareRulesEdited, "", &json!(rules)).await?;
                    after_change(unit);
                    Ok(rules)
                })
            })
            .await
    }

    /// Returns what teams and their members use.
    pub async fn shares(&self) -> Result<SharesView, ServiceError> {
        let now = self.context.now();
        let view = move |fleet_state: &FleetState| {
            let shares = fleet_state.shares();
            let tree = shares.tree(fleet_state.size(), now).with_all_teams();
            let waiting = fleet_state.queued_jobs().map(|job| (tree.team_of(job), job.submitted_by.as_str())).counts();
            shares_view(shares.rules(), &tree, &waiting)
        };
        Ok(self.context.read_recent().await?.with_state(view).await?)
    }

    async fn change_teams(
        self: &Arc<Self>,
        caller: Caller,
        change: impl Fn(&UnitOfWork<'_>, &Teams) -> Result<(Team, AuditAction, serde_json::Value), ServiceError>
        + Send
        + Sync
        + 'static,
    ) -> Result<TeamView, ServiceError> {
        let change = Arc::new(change);
        self.context
            .change(caller, move |unit| {
                let change = Arc::clone(&change);
                Box::pin(async move {
                    let teams = unit.tx.with_state(|state| state.shares().teams().clone()).await?;
                    let (team, action, detail) = change(unit, &teams)?;
                    if teams.get(&team.name) != Some(&team) {
                        unit.tx.save_team(&team).await?;
                        unit.record(action, &team.name, &detail).await?;
                        after_change(unit);
                    }
                    Ok(team_view(team))
                })
            })
            .await
    }
}

/// Limits and the order of the queue may have changed.
fn after_change(unit: &mut UnitOfWork<'_>) {
    unit.notify(Topic::Jobs);
    unit.request_planning();
}

fn all_teams(teams: &Teams) -> impl Iterator<Item = Team> {
    let default = (!teams.contains_key(DEFAULT_TEAM)).then(Team::unchanged_default);
    teams.values().cloned().chain(default).sorted_by(|left, right| left.name.cmp(&right.name))
}

fn find_team(teams: &Teams, name: &str) -> Option<Team> {
    let unchanged = || (name == DEFAULT_TEAM).then(Team::unchanged_default);
    teams.get(name).cloned().or_else(unchanged)
}

fn require_team(teams: &Teams, name: &str) -> Result<Team, ServiceError> {
    find_team(teams, name).ok_or_else(|| ServiceError::TeamNotFound(shortened(name)))
}

fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

fn invalid_fields(description: &str, settings: &ShareSettings) -> impl Iterator<Item = InvalidField> {
    let is_valid = description.trim().is_empty() || is_plain(description.trim(), MAX_DESCRIPTION);
    let allowed = AllowedValues::Line { max: MAX_DESCRIPTION as u64 };
    let description = (!is_valid).then(|| InvalidField::out_of_range("description", allowed));
    description.into_iter().chain(invalid_settings(settings))
}

fn invalid_settings(settings: &ShareSettings) -> impl Iterator<Item = InvalidField> {
    let ShareSettings { weight, guaranteed_gpus, max_gpus, max_gpu_hours, max_running_jobs, max_waiting_jobs } =
        *settings;
    let amounts = [
        ("guaranteed_gpus", Some(guaranteed_gpus)),
        ("max_gpus", max_gpus),
        ("max_gpu_hours", max_gpu_hours),
        ("max_running_jobs", max_running_jobs),
        ("max_waiting_jobs", max_waiting_jobs),
    ];
    let weight = ("weight", Some(weight), ShareSettings::WEIGHTS);
    let amounts = amounts.map(|(field, value)| (field, value, ShareSettings::AMOUNTS));
    let all = std::iter::once(weight).chain(amounts);
    all.filter(|(_, value, allowed)| value.is_some_and(|value| !allowed.contains(value.into())))
        .map(|(field, _, allowed)| InvalidField::out_of_range(field, allowed))
}

fn team_view(team: Team) -> TeamView {
    let member =
        |(user, member): (String, TeamMember)| TeamMemberView { user, since: member.since, settings: member.settings };
    TeamView {
        created_at: Some(team.created_at).filter(|at| at.0 > 0),
        name: team.name,
        description: team.description,
        settings: team.settings,
        members: team.members.into_iter().map(member).collect(),
    }
}

fn shares_view(
    rules: ShareRules,
    tree: &ShareTree<'_>,
    waiting: &std::collections::HashMap<(&str, &str), usize>,
) -> SharesView {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let ordered = tree.in_order();
    let all: Vec<&ShareStanding<'_>> = ordered.iter().map(|(team, _)| *team).collect();
    let teams = ordered.iter().map(|(team, members)| {
        let of_team = |user: &str| count(waiting.get(&(team.name, user)).copied().unwrap_or_default());
        let members_views = members.iter().map(|member| share_view(member, members, of_team(member.name)));
        let waiting_of_team = waiting.iter().filter(|((of, _), _)| *of == team.name).map(|(_, jobs)| *jobs).sum();
        TeamShareView { share: share_view(team, &all, count(waiting_of_team)), members: members_views.collect() }
    });
    let hours = rules.half_life.0 / 3_600_000;
    SharesView {
        rules: ShareRulesView { half_life_hours: u32::try_from(hours).unwrap_or(u32::MAX) },
        gpus: tree.size().gpus,
        guaranteed_gpus: all.iter().fold(0, |sum, team| team.settings.guaranteed_gpus.saturating_add(sum)),
        teams: teams.collect(),
    }
}

/// Describes a share among those of its level.
fn share_view(share: &ShareStanding<'_>, level: &[&ShareStanding<'_>], waiting_jobs: u32) -> ShareView {
    let is_active = |other: &ShareStanding<'_>| other.usage.gpu_time > 0.0 || other.load.jobs > 0;
    let weight = |share: &ShareStanding<'_>| f64::from(share.settings.weight);
    let weights = |is_counted: &dyn Fn(&ShareStanding<'_>) -> bool| -> f64 {
        level.iter().filter(|other| is_counted(other)).map(|other| weight(other)).sum()
    };
    let part = |value: f64, all: f64| if all > 0.0 { value / all } else { 0.0 };
    let used: f64 = level.iter().map(|other| other.usage.gpu_time).sum();
    let active_weights = weights(&|other| other.name == share.name || is_active(other));
    let load = share.load;
    ShareView {
        name: share.name.to_owned(),
        settings: share.settings,
        share_percent: part(weight(share), weights(&|_| true)) * 100.0,
        used_percent: part(share.usage.gpu_time, used) * 100.0,
        gpu_hours: share.usage.gpu_time / HOUR_MILLIS,
        owed_gpu_hours: part(weight(share), active_weights).mul_add(used, -share.usage.gpu_time) / HOUR_MILLIS,
        month_gpu_hours: share.usage.month_gpu_time / HOUR_MILLIS,
        running_gpus: load.gpus,
        borrowed_gpus: load.required_gpus.saturating_sub(share.settings.guaranteed_gpus),
        idle_gpus: load.idle_gpus,
        running_jobs: load.jobs,
        waiting_jobs,
    }
}

/// Returns the team of a submit: the named one, if the user may submit for it, else the user's own.
pub fn resolve_team(teams: &Teams, user: &str, named: Option<&str>) -> Result<String, ServiceError> {
    let Some(name) = named else { return Ok(home_team(teams, user).to_owned()) };
    let team = require_team(teams, name)?;
    if team.includes(user) { Ok(team.name) } else { Err(ServiceError::NotTeamMember(team.name)) }
}

/// Urgent jobs require a permission.
pub fn check_class(class: JobClass, has_permission: impl Fn(Permission) -> bool) -> Result<(), ServiceError> {
    if class == JobClass::Urgent && !has_permission(Permission::JobUrgent) {
        return Err(ServiceError::PermissionDenied(Permission::JobUrgent));
    }
    Ok(())
}

/// Rejects a job that would exceed the waiting jobs of its team or of the member.
pub fn check_waiting_jobs(fleet_state: &FleetState, job: &Job) -> Result<(), ServiceError> {
    if !job.spec.class.is_counted() {
        return Ok(());
    }
    let (shares, team) = (fleet_state.shares(), job.spec.team.as_str());
    let Some(known) = shares.teams().get(team) else { return Ok(()) };
    let of_team = || fleet_state.queued_jobs().filter(|other| other.spec.team == team && other.spec.class.is_counted());
    let is_reached = |max: Option<u32>, waiting: usize| max.is_some_and(|max| waiting >= max as usize);
    let member = known.members.get(&job.submitted_by).and_then(|member| member.settings.max_waiting_jobs);
    if known.settings.max_waiting_jobs.is_some() && is_reached(known.settings.max_waiting_jobs, of_team().count()) {
        let max = known.settings.max_waiting_jobs.unwrap_or_default();
        return Err(ServiceError::LimitReached(ResourceLimit::WaitingJobsOfTeam { team: team.to_owned(), max }));
    }
    let own = || of_team().filter(|other| other.submitted_by == job.submitted_by).count();
    match member {
        Some(max) if is_reached(member, own()) => {
            Err(ServiceError::LimitReached(ResourceLimit::WaitingJobsInTeam { team: team.to_owned(), max }))
        }
        _ => Ok(()),
    }
}

impl UnitOfWork<'_> {
    /// Records what the share of a job has used, before the job loses its lease. Work that is lost because the job was
    /// stopped for another one is not counted.
    pub(super) async fn charge_share(&mut self, job: &Job, loss: Option<&AttemptLoss>) -> Result<(), ServiceError> {
        if !job.spec.class.is_counted() {
            return Ok(());
        }
        let (key, now) = (share_key(job), self.now);
        let usage = self.tx.with_state(|fleet_state| fleet_state.shares().usage_at(&key, now)).await?;
        let gpus = job.active_lease().map_or(0, |lease| lease.gpus.len());
        let usage = match loss {
            Some(AttemptLoss::Preempted { lost, .. }) => usage.without(*lost, &ShareLoad::of(job, gpus)),
            _ => usage,
        };
        Ok(self.tx.put_share_usage(&key, &usage).await?)
    }
}
