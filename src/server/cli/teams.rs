//! `simpletuner teams …`

use app::protocol::shares::{CreateTeam, EditTeam, PutTeamMember, ShareSettings, TeamMemberView, TeamView};
use clap::{Args, Subcommand};

use super::client::Client;
use super::output::Output;
use super::run::parse_value;
use super::table::{Table, TableCell};
use crate::exit::ExitError;

/// Commands for teams.
#[derive(Debug, Clone, Subcommand)]
pub enum TeamsCommand {
    /// List teams.
    List,
    /// Show a team with its members.
    Show(TeamArgs),
    /// Create a team.
    Create(CreateTeamArgs),
    /// Change the description of a team, or what it may use.
    Edit(EditTeamArgs),
    /// Delete a team; its jobs then count for the team `default`.
    Delete(TeamArgs),
    /// Add a user to a team, or change what the member may use.
    SetMember(SetMemberArgs),
    /// Remove a user from a team.
    RemoveMember(MemberArgs),
}

/// A team by name.
#[derive(Debug, Clone, Args)]
pub struct TeamArgs {
    /// Team name.
    team: String,
}

/// `simpletuner teams create`
#[derive(Debug, Clone, Args)]
pub struct CreateTeamArgs {
    /// Team name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`.
    name: String,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    description: String,
    #[command(flatten)]
    settings: SettingsFlags,
}

/// `simpletuner teams edit`
#[derive(Debug, Clone, Args)]
pub struct EditTeamArgs {
    #[command(flatten)]
    target: TeamArgs,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    settings: SettingsFlags,
}

/// A member of a team.
#[derive(Debug, Clone, Args)]
pub struct MemberArgs {
    #[command(flatten)]
    target: TeamArgs,
    /// User name.
    user: String,
}

/// `simpletuner teams set-member`
#[derive(Debug, Clone, Args)]
pub struct SetMemberArgs {
    #[command(flatten)]
    member: MemberArgs,
    #[command(flatten)]
    settings: SettingsFlags,
}

/// What a team or a member may use; what is not given stays as it is.
#[derive(Debug, Clone, Args)]
pub struct SettingsFlags {
    /// Share in relation to the others [default: 1].
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Number of GPUs below which its jobs start before those of others [default: 0].
    #[arg(long, value_name = "N")]
    guaranteed_gpus: Option<u32>,
    /// Max GPUs at a time, or `none`.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    max_gpus: Option<Limit>,
    /// Max GPU-hours per calendar month (UTC), or `none`.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    max_gpu_hours: Option<Limit>,
    /// Max running jobs, or `none`.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    max_running_jobs: Option<Limit>,
    /// Max waiting jobs, or `none`.
    #[arg(long, value_name = "N", value_parser = parse_limit)]
    max_waiting_jobs: Option<Limit>,
}

/// A limit, or that there is none.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<u32>);

fn parse_limit(text: &str) -> Result<Limit, String> {
    if text == "none" {
        return Ok(Limit(None));
    }
    text.parse().map(|number| Limit(Some(number))).map_err(|_| "expected a number, or none".to_owned())
}

impl SettingsFlags {
    fn apply_to(&self, before: ShareSettings) -> ShareSettings {
        let limit = |flag: Option<Limit>, before: Option<u32>| flag.map_or(before, |Limit(limit)| limit);
        ShareSettings {
            weight: self.weight.unwrap_or(before.weight),
            guaranteed_gpus: self.guaranteed_gpus.unwrap_or(before.guaranteed_gpus),
            max_gpus: limit(self.max_gpus, before.max_gpus),
            max_gpu_hours: limit(self.max_gpu_hours, before.max_gpu_hours),
            max_running_jobs: limit(self.max_running_jobs, before.max_running_jobs),
            max_waiting_jobs: limit(self.max_waiting_jobs, before.max_waiting_jobs),
        }
    }
}

pub async fn run(command: TeamsCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        TeamsCommand::List => list(client, output).await,
        TeamsCommand::Show(TeamArgs { team }) => {
            let document = client.get(&["teams", &team]).await?;
            let team: TeamView = parse_value(&document)?;
            output.print_document(&document, [team.name.clone()], |screen| screen.format_table(&members_table(&team)))
        }
        TeamsCommand::Create(CreateTeamArgs { name, description, settings }) => {
            let create = CreateTeam { name, description, settings: settings.apply_to(ShareSettings::default()) };
            let document = client.post(&["teams"], &create).await?;
            output.print_info(format!("Created the team {}.", create.name))?;
            output.print_document(&document, [create.name], |_| String::new())
        }
        TeamsCommand::Edit(edit) => self::edit(edit, client, output).await,
        TeamsCommand::Delete(TeamArgs { team }) => {
            output.confirm(&format!("Delete the team {team}? Its jobs continue, and count for the team default."))?;
            let document = client.delete(&["teams", &team]).await?;
            output.print_info(format!("Deleted the team {team}."))?;
            output.print_document(&document, [team], |_| String::new())
        }
        TeamsCommand::SetMember(set) => set_member(set, client, output).await,
        TeamsCommand::RemoveMember(MemberArgs { target, user }) => {
            let document = client.delete(&["teams", &target.team, "members", &user]).await?;
            output.print_info(format!("Removed {user} from the team {}.", target.team))?;
            output.print_document(&document, [user], |_| String::new())
        }
    }
}

async fn list(client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let document = client.get(&["teams"]).await?;
    let teams: Vec<TeamView> = parse_value(&document["teams"])?;
    let names = teams.iter().map(|team| team.name.clone());
    output.print_document(&document, names, |screen| screen.format_table(&teams_table(&teams)))
}

async fn edit(edit: EditTeamArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let name = edit.target.team;
    let before: TeamView = parse_value(&client.get(&["teams", &name]).await?)?;
    let description = edit.description.unwrap_or(before.description);
    let body = EditTeam { description, settings: edit.settings.apply_to(before.settings) };
    let document = client.put(&["teams", &name], &body).await?;
    output.print_info(format!("Changed the team {name}."))?;
    output.print_document(&document, [name], |_| String::new())
}

async fn set_member(set: SetMemberArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let MemberArgs { target, user } = set.member;
    let team: TeamView = parse_value(&client.get(&["teams", &target.team]).await?)?;
    let before = team.members.into_iter().find(|member| member.user == user);
    let before = before.map(|member| member.settings).unwrap_or_default();
    let body = PutTeamMember { settings: set.settings.apply_to(before) };
    let document = client.put(&["teams", &target.team, "members", &user], &body).await?;
    output.print_info(format!("{user} is a member of the team {}.", target.team))?;
    output.print_document(&document, [user], |_| String::new())
}

fn teams_table(teams: &[TeamView]) -> Table {
    let mut table = Table::new(&[
        "NAME!",
        "MEMBERS",
        "WEIGHT",
        "GUARANTEED",
        "MAX GPUS",
        "HOURS/MONTH?",
        "RUNNING?",
        "WAITING?",
        "DESCRIPTION_",
    ]);
    for team in teams {
        let mut row = vec![TableCell::from(&team.name), team.members.len().to_string().into()];
        row.extend(settings_cells(team.settings));
        row.push(TableCell::from(&team.description));
        table.add_row(row);
    }
    table
}

fn members_table(team: &TeamView) -> Table {
    let mut table =
        Table::new(&["MEMBER!", "WEIGHT", "GUARANTEED", "MAX GPUS", "HOURS/MONTH?", "RUNNING?", "WAITING?"]);
    for TeamMemberView { user, settings, .. } in &team.members {
        let mut row = vec![TableCell::from(user)];
        row.extend(settings_cells(*settings));
        table.add_row(row);
    }
    table
}

fn settings_cells(settings: ShareSettings) -> [TableCell; 6] {
    let ShareSettings { weight, guaranteed_gpus, max_gpus, max_gpu_hours, max_running_jobs, max_waiting_jobs } =
        settings;
    let limit = |limit: Option<u32>| limit.map_or_else(|| "–".to_owned(), |limit| limit.to_string()).into();
    [
        weight.to_string().into(),
        guaranteed_gpus.to_string().into(),
        limit(max_gpus),
        limit(max_gpu_hours),
        limit(max_running_jobs),
        limit(max_waiting_jobs),
    ]
}
