//! Jobs on the server's own host.

use std::path::{Path, PathBuf};

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use nix::unistd::{User, geteuid};

use crate::exit::ExitError;

/// Whether jobs may run on the server's own host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LocalWorkerMode {
    /// If it has a GPU and a trainer.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The user of the agent and its trainers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalAccount {
    /// The server's own; the operator has agreed to that.
    Server,
    /// Another user.
    Other(User),
}

#[derive(Debug, Clone, Args)]
pub struct LocalArgs {
    /// Run jobs on this machine too (target `local`): never, if it has a GPU and a trainer, or always.
    #[arg(long, env = "SIMPLETUNER_LOCAL", value_enum, default_value_t = LocalWorkerMode::Off)]
    pub local: LocalWorkerMode,
    /// Run those jobs as this user; requires root.
    #[arg(long, env = "SIMPLETUNER_LOCAL_USER", value_name = "USER")]
    pub local_user: Option<String>,
    /// Work directory of those jobs [default: .local/share/simpletuner-local in that user's home; for this server's
    /// user, local-agent in the data directory].
    #[arg(long, env = "SIMPLETUNER_LOCAL_WORK_DIR", value_name = "DIR")]
    pub local_work_dir: Option<PathBuf>,
    /// Run those jobs as the server's own user, who owns its database, keys and operator token. Only the sandbox
    /// protects these from trainers.
    #[arg(long, env = "SIMPLETUNER_LOCAL_SHARES_USER", value_parser = BoolishValueParser::new())]
    pub local_shares_user: bool,
}

impl LocalArgs {
    /// Returns the agent's work directory: accessible to its user, and outside of the server's files.
    pub fn work_dir(&self, data: &Path, account: &LocalAccount) -> PathBuf {
        self.local_work_dir.clone().unwrap_or_else(|| match account {
            LocalAccount::Server => data.join("local-agent"),
            LocalAccount::Other(user) => user.dir.join(".local/share/simpletuner-local"),
        })
    }

    /// Returns the user of jobs on this host; `None` if there are no such jobs.
    ///
    /// # Errors
    /// Returns an error if that would be the server's own user without consent, or if the server cannot switch to it.
    pub fn account(&self) -> Result<Option<LocalAccount>, ExitError> {
        match (self.local, &self.local_user) {
            (LocalWorkerMode::Off, _) => Ok(None),
            (LocalWorkerMode::Auto | LocalWorkerMode::On, Some(_)) if self.local_shares_user => {
                let message = "--local-user and --local-shares-user exclude each other; omit one of them";
                Err(ExitError::config(message.to_owned()))
            }
            (LocalWorkerMode::Auto | LocalWorkerMode::On, Some(name)) => other_account(name).map(Some),
            (LocalWorkerMode::Auto | LocalWorkerMode::On, None) if self.local_shares_user => {
                Ok(Some(LocalAccount::Server))
            }
            (LocalWorkerMode::Auto | LocalWorkerMode::On, None) => Err(ExitError::config(
                "--local would run jobs as the server's own user, who owns its database, keys and operator token. \
                 Set another user with --local-user, or omit --local and run simpletuner-worker as a separate service, \
                 or accept it with --local-shares-user"
                    .to_owned(),
            )),
        }
    }
}

fn other_account(name: &str) -> Result<LocalAccount, ExitError> {
    let user = match User::from_name(name) {
        Ok(Some(user)) => user,
        Ok(None) => return Err(ExitError::config(format!("--local-user: this host has no user {name:?}"))),
        Err(error) => return Err(ExitError::config(format!("--local-user: cannot look up {name:?}: {error}"))),
    };
    if user.uid == geteuid() {
        let message = format!("--local-user: this server runs as {name} itself; set another user");
        return Err(ExitError::config(message));
    }
    if !geteuid().is_root() {
        return Err(ExitError::config(format!(
            "--local-user: only root can run jobs as {name}. Omit --local and run simpletuner-worker as a service of that \
             user instead"
        )));
    }
    Ok(LocalAccount::Other(user))
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn args(local: LocalWorkerMode, local_user: Option<&str>, local_shares_user: bool) -> LocalArgs {
        LocalArgs { local, local_user: local_user.map(str::to_owned), local_work_dir: None, local_shares_user }
    }

    #[test]
    fn local_jobs_require_the_operators_consent() {
        let matches = LocalArgs::augment_args(Command::new("server")).get_matches_from(["server"]);
        let args = LocalArgs::from_arg_matches(&matches).expect("no flag is required");
        assert_eq!((args.local, args.local_shares_user), (LocalWorkerMode::Off, false));
        assert_eq!(args.account().map_err(|exit| exit.message().to_owned()), Ok(None));
    }

    #[test]
    fn jobs_run_as_the_servers_user_only_with_the_flag() {
        let account = |args: LocalArgs| args.account().map_err(|exit| exit.message().to_owned());
        assert_eq!(account(args(LocalWorkerMode::Off, None, false)), Ok(None));
        for local in [LocalWorkerMode::Auto, LocalWorkerMode::On] {
            let error = account(args(local, None, false)).expect_err("the server's own user");
            assert!(error.contains("--local-shares-user"), "{error}");
            assert_eq!(account(args(local, None, true)), Ok(Some(LocalAccount::Server)));
            let error = account(args(local, Some("no-such-user"), false)).expect_err("no such user");
            assert!(error.contains("no-such-user"), "{error}");
        }
        assert!(account(args(LocalWorkerMode::On, Some("nobody"), true)).is_err(), "both flags");
        let current_user = User::from_uid(geteuid()).expect("readable").expect("a user");
        assert!(
            account(args(LocalWorkerMode::On, Some(&current_user.name), false)).is_err(),
            "the server's own user by name"
        );
    }
}
