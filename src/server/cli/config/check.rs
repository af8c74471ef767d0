//! Checks whether a server can start with its settings, without changing anything.

use std::net::SocketAddr;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::args::ServerArgs;
use crate::boot::{self, bind_to};
use crate::clock::SystemClock;
use crate::data_dir::resolve_data_dir;
use crate::exit::ExitError;
use crate::store::read_only::ReadOnlyStore;
use crate::store::system::schema::DatabaseSchema;
use crate::store::{self, Store, sqlite};
use crate::tls::{Tls, TlsMode};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingCheck {
    Passed(String),
    /// It works, but needs attention.
    Warning(String),
    /// A server would not start.
    Failed(String),
}

impl SettingCheck {
    pub fn level(&self) -> &'static str {
        match self {
            Self::Passed(_) => "ok",
            Self::Warning(_) => "warning",
            Self::Failed(_) => "error",
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Passed(text) | Self::Warning(text) | Self::Failed(text) => text,
        }
    }
}

impl From<ExitError> for SettingCheck {
    fn from(exit: ExitError) -> Self {
        Self::Failed(exit.message().to_owned())
    }
}

/// Checks everything that the startup checks.
pub async fn check_settings(args: &ServerArgs) -> Vec<SettingCheck> {
    let mut checks = Vec::new();
    checks.extend(boot::check_single_user(args).err().map(SettingCheck::from));
    if args.heartbeat_timeout < 60 {
        checks.push(SettingCheck::Warning("--heartbeat-timeout under 60 s is too short for older agents".to_owned()));
    }
    if args.edge.trusted_proxies.is_empty() && !args.host.is_loopback() && !args.edge.ssl {
        let message = "the server listens on the network without TLS: tokens can be intercepted; add --ssl, or a proxy";
        checks.push(SettingCheck::Warning(message.to_owned()));
    }
    checks.push(check_certificate(args));
    checks.push(check_address(SocketAddr::new(args.host, args.port), "--port").await);
    if let Some(listen) = args.ops.metrics_addr {
        checks.push(check_address(listen, "--metrics-addr").await);
    }
    match resolve_data_dir(args.data_dir.as_deref()) {
        Err(exit) => checks.push(exit.into()),
        Ok(data) => {
            checks.push(check_data_directory(&data));
            checks.push(check_database(args, &data).await);
        }
    }
    if let Some(configs) = &args.configs_dir {
        checks.push(match configs.read_dir() {
            Ok(_) => SettingCheck::Passed(format!("configurations can be read from {}", configs.display())),
            Err(error) => SettingCheck::Failed(format!("cannot read --configs-dir {}: {error}", configs.display())),
        });
    }
    checks.extend(boot::read_bootstrap_token(args).err().map(SettingCheck::from));
    checks
}

fn check_certificate(args: &ServerArgs) -> SettingCheck {
    match TlsMode::from_flags(args.edge.ssl, args.edge.ssl_cert.as_deref(), args.edge.ssl_key.as_deref()) {
        Err(reason) => SettingCheck::Failed(reason.to_owned()),
        Ok(TlsMode::Off) => SettingCheck::Passed("plain HTTP".to_owned()),
        Ok(TlsMode::SelfSigned) => SettingCheck::Passed("HTTPS with a self-signed certificate".to_owned()),
        Ok(TlsMode::Files(paths)) => match Tls::open(paths, &SystemClock) {
            Ok(tls) => SettingCheck::Passed(format!("HTTPS with a certificate of the key {}", tls.fingerprint())),
            Err(reason) => SettingCheck::Failed(reason),
        },
    }
}

async fn check_address(address: SocketAddr, flag: &str) -> SettingCheck {
    match bind_to(address, flag).await {
        Ok(_) => SettingCheck::Passed(format!("{address} is free")),
        Err(exit) => exit.into(),
    }
}

fn check_data_directory(data: &Path) -> SettingCheck {
    // Missing directories are created at startup, in the nearest existing one.
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let existing = absolute.ancestors().find(|path| path.exists()).unwrap_or(data);
    if !existing.is_dir() {
        return SettingCheck::Failed(format!(
            "{} is not a directory; choose another with --data-dir",
            existing.display()
        ));
    }
    match access(existing, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => SettingCheck::Passed(format!("the data directory is {}", data.display())),
        Err(error) => SettingCheck::Failed(format!(
            "cannot write to {} ({}); change its owner, or choose another with --data-dir",
            existing.display(),
            error.desc()
        )),
    }
}

async fn check_database(args: &ServerArgs, data: &Path) -> SettingCheck {
    let store = match &args.database_url {
        Some(url) => ReadOnlyStore::open_postgres(&url.0).await,
        None if !data.join(sqlite::DATABASE_FILE).exists() => {
            return SettingCheck::Passed("a new database will be created".to_owned());
        }
        None => ReadOnlyStore::open_sqlite(data).await,
    };
    let store = match store {
        Ok(store) => store,
        Err(error) => return SettingCheck::Failed(format!("{error:#}")),
    };
    let (known, schema) = (store.newest_schema(), schema_of(&store).await);
    store.close().await;
    let schema = match schema {
        Ok(schema) => schema,
        Err(error) => return SettingCheck::Failed(error.to_string()),
    };
    if let Err(error) = schema.check_compatible(known) {
        return SettingCheck::Failed(error.to_string());
    }
    match schema.version {
        0 => SettingCheck::Passed("the database is empty and will be initialized at startup".to_owned()),
        version if version > known => SettingCheck::Warning(format!(
            "a newer version has migrated the database (schema {version}; this program knows {known}); \
             upgrade this program soon"
        )),
        version if version < known => SettingCheck::Warning(format!(
            "the database schema {version} will be migrated to {known} at startup; back it up"
        )),
        version => SettingCheck::Passed(format!("the database has schema {version}")),
    }
}

async fn schema_of(store: &ReadOnlyStore) -> store::Result<DatabaseSchema> {
    store.read().await?.schema().await
}
