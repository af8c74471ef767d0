//! `simpletuner shares …`

use app::protocol::shares::{ShareRulesView, ShareView, SharesView};
use app::ui::terminal;
use clap::{Args, Subcommand};

use super::client::Client;
use super::output::Output;
use super::run::parse_value;
use super::table::{CellStyle, Table, TableCell};
use crate::exit::ExitError;

/// Commands for shares.
#[derive(Debug, Clone, Subcommand)]
pub enum SharesCommand {
    /// Show what teams and their members use, in the order in which they get the next GPU.
    Show,
    /// Set how fast usage is forgotten.
    SetHalfLife(SetHalfLifeArgs),
}

/// `simpletuner shares set-half-life`
#[derive(Debug, Clone, Args)]
pub struct SetHalfLifeArgs {
    /// After this many hours, usage counts half (168: a week).
    hours: u32,
}

pub async fn run(command: SharesCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        SharesCommand::Show => show(client, output).await,
        SharesCommand::SetHalfLife(SetHalfLifeArgs { hours }) => {
            let rules = ShareRulesView { half_life_hours: hours };
            let document = client.put(&["shares", "rules"], &rules).await?;
            output.print_info(format!("Usage counts half after {hours} h."))?;
            output.print_document(&document, [], |_| String::new())
        }
    }
}

async fn show(client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let document = client.get(&["shares"]).await?;
    let shares: SharesView = parse_value(&document)?;
    if shares.guaranteed_gpus > shares.gpus {
        let (guaranteed, gpus) = (shares.guaranteed_gpus, shares.gpus);
        output.print_info(format!("{guaranteed} GPUs are guaranteed, and the connected workers have {gpus}."))?;
    }
    let names = shares.teams.iter().map(|team| team.share.name.clone());
    output.print_document(&document, names, |screen| screen.format_table(&table(&shares)))
}

fn table(shares: &SharesView) -> Table {
    let mut table =
        Table::new(&["NAME!", "WEIGHT", "SHARE", "USED", "GPUS", "BORROWED?", "JOBS", "WAITING", "MONTH?", "OWED?"]);
    for team in &shares.teams {
        table.add_row(row(&team.share, ""));
        for member in &team.members {
            table.add_row(row(member, "  "));
        }
    }
    table
}

fn row(share: &ShareView, indent: &str) -> Vec<TableCell> {
    let name = format!("{indent}{}", share.name);
    let guaranteed = share.settings.guaranteed_gpus;
    let gpus = match (share.running_gpus, guaranteed) {
        (gpus, 0) => gpus.to_string(),
        (gpus, guaranteed) => format!("{gpus} of {guaranteed} guaranteed"),
    };
    vec![
        if indent.is_empty() { TableCell::new(name, CellStyle::Active) } else { TableCell::from(&name) },
        share.settings.weight.to_string().into(),
        terminal::percent(share.share_percent).into(),
        terminal::percent(share.used_percent).into(),
        gpus.into(),
        share.borrowed_gpus.to_string().into(),
        share.running_jobs.to_string().into(),
        share.waiting_jobs.to_string().into(),
        format!("{:.1} h", share.month_gpu_hours).into(),
        format!("{:.1} h", share.owed_gpu_hours).into(),
    ]
}
