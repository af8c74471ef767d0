//! Jobs on the server's own machine.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::BoolishValueParser;
use nix::unistd::{User, geteuid};

use crate::boot::exit::Exit;
use crate::boot::local::{Account, Local};

/// Flags of `simpletuner server` about that.
#[derive(Debug, Clone, Args)]
pub struct LocalArgs {
    /// Whether jobs run on this machine too (target `local`): no, if it has a GPU and a trainer, or in any case.
    #[arg(long, env = "SIMPLETUNER_LOCAL", value_enum, default_value_t = Local::Off)]
    pub local: Local,
    /// The user that runs those jobs, other than this server's; takes root.
    #[arg(long, env = "SIMPLETUNER_LOCAL_USER", value_name = "USER")]
    pub local_user: Option<String>,
    /// Where that user keeps them [default: .local/share/simpletuner-local in its home; for this server's user, local-agent in
    /// the data directory].
    #[arg(long, env = "SIMPLETUNER_LOCAL_WORK_DIR", value_name = "DIR")]
    pub local_work_dir: Option<PathBuf>,
    /// Run those jobs as this server's own user, who owns its database, its keys and the operator's token. Only their sandbox is
    /// between a trainer and these.
    #[arg(long, env = "SIMPLETUNER_LOCAL_SHARES_USER", value_parser = BoolishValueParser::new())]
    pub local_shares_user: bool,
}

impl LocalArgs {
    /// Where the agent on this machine keeps its jobs: a place that its user can reach, and the server's files are not in.
    pub fn work_dir(&self, data: &Path, account: &Account) -> PathBuf {
        self.local_work_dir.clone().unwrap_or_else(|| match account {
            Account::Server => data.join("local-agent"),
            Account::Other(user) => user.dir.join(".local/share/simpletuner-local"),
        })
    }

    /// Whose jobs on this machine are; none if there are none.
    ///
    /// # Errors
    /// If that would be this server's user and nobody has agreed to that, or a user that it cannot become.
    pub fn account(&self) -> Result<Option<Account>, Exit> {
        match (self.local, &self.local_user) {
            (Local::Off, _) => Ok(None),
            (Local::Auto | Local::On, Some(_)) if self.local_shares_user => {
                let sentence = "--local-user and --local-shares-user contradict each other; leave one of them out";
                Err(Exit::config(sentence.to_owned()))
            }
            (Local::Auto | Local::On, Some(name)) => other(name).map(Some),
            (Local::Auto | Local::On, None) if self.local_shares_user => Ok(Some(Account::Server)),
            (Local::Auto | Local::On, None) => Err(Exit::config(
                "--local would run jobs as this server's own user, who owns its database, its keys and the operator's token. \
                 Name another user with --local-user, or leave --local off and run simpletuner-worker as a service of its own; \
                 --local-shares-user accepts it"
                    .to_owned(),
            )),
        }
    }
}

fn other(name: &str) -> Result<Account, Exit> {
    let user = match User::from_name(name) {
        Ok(Some(user)) => user,
        Ok(None) => return Err(Exit::config(format!("--local-user: this machine has no user {name:?}"))),
        Err(error) => return Err(Exit::config(format!("--local-user: {name:?} cannot be looked up: {error}"))),
    };
    if user.uid == geteuid() {
        let sentence = format!("--local-user: this server runs as {name} itself; name another user");
        return Err(Exit::config(sentence));
    }
    if !geteuid().is_root() {
        return Err(Exit::config(format!(
            "--local-user: only root can run jobs as {name}. Leave --local off and run simpletuner-worker as a service of that \
             user instead"
        )));
    }
    Ok(Account::Other(user))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn args(local: Local, local_user: Option<&str>, local_shares_user: bool) -> LocalArgs {
        LocalArgs { local, local_user: local_user.map(str::to_owned), local_work_dir: None, local_shares_user }
    }

    #[test]
    fn nothing_runs_on_the_servers_machine_unless_its_operator_says_so() {
        let matches = LocalArgs::augment_args(Command::new("server")).get_matches_from(["server"]);
        let args = LocalArgs::from_arg_matches(&matches).expect("no flags are fine");
        assert_eq!((args.local, args.local_shares_user), (Local::Off, false));
        assert_eq!(args.account().map_err(|exit| exit.sentence().to_owned()), Ok(None));
    }

    #[test]
    fn jobs_run_as_the_servers_user_only_where_that_is_accepted() {
        let account = |args: LocalArgs| args.account().map_err(|exit| exit.sentence().to_owned());
        assert_eq!(account(args(Local::Off, None, false)), Ok(None));
        for local in [Local::Auto, Local::On] {
            let refused = account(args(local, None, false)).expect_err("the server's own user");
            assert!(refused.contains("--local-shares-user"), "{refused}");
            assert_eq!(account(args(local, None, true)), Ok(Some(Account::Server)));
            let missing = account(args(local, Some("nobody-of-this-name"), false)).expect_err("no such user");
            assert!(missing.contains("nobody-of-this-name"), "{missing}");
        }
        assert!(account(args(Local::On, Some("nobody"), true)).is_err(), "both");
        let own = User::from_uid(geteuid()).expect("readable").expect("a user");
        assert!(account(args(Local::On, Some(&own.name), false)).is_err(), "the server's own user by name");
    }
}
