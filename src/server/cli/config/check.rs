//! Whether a server could start with its settings. Nothing is changed by looking.

use std::net::SocketAddr;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

use crate::boot::exit::Exit;
use crate::boot::{self, bind_to, chosen_directory};
use crate::cli::ServerArgs;
use crate::clock::SystemClock;
use crate::store::archive::Archive;
use crate::store::{Store, sqlite};
use crate::tls::{Tls, Wanted};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// As it should be.
    Well(String),
    /// It works, but somebody should look.
    Worth(String),
    /// A server would not start.
    Wrong(String),
}

impl Found {
    /// Its word.
    pub fn level(&self) -> &'static str {
        match self {
            Self::Well(_) => "ok",
            Self::Worth(_) => "warning",
            Self::Wrong(_) => "error",
        }
    }

    /// What there is to say.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Well(text) | Self::Worth(text) | Self::Wrong(text) => text,
        }
    }
}

impl From<Exit> for Found {
    fn from(exit: Exit) -> Self {
        Self::Wrong(exit.sentence().to_owned())
    }
}

/// Looks at everything that a start looks at.
pub async fn check(args: &ServerArgs) -> Vec<Found> {
    let mut found = Vec::new();
    found.extend(boot::refuse_open_single_user(args).err().map(Found::from));
    if args.heartbeat_timeout < 60 {
        found.push(Found::Worth("a heartbeat timeout under 60 s is too short for older agents".to_owned()));
    }
    if args.edge.trusted_proxies.is_empty() && !args.host.is_loopback() && !args.edge.ssl {
        let sentence = "this listens on the network without TLS: tokens can be read on the way; add --ssl, or a proxy";
        found.push(Found::Worth(sentence.to_owned()));
    }
    found.push(certificate(args));
    found.push(address(SocketAddr::new(args.host, args.port), "--port").await);
    if let Some(listen) = args.ops.metrics_addr {
        found.push(address(listen, "--metrics-addr").await);
    }
    match chosen_directory(args.data_dir.as_deref()) {
        Err(exit) => found.push(exit.into()),
        Ok(data) => {
            found.push(directory(&data));
            found.push(database(args, &data).await);
        }
    }
    if let Some(configs) = &args.configs_dir {
        found.push(match configs.read_dir() {
            Ok(_) => Found::Well(format!("configurations can be read from {}", configs.display())),
            Err(error) => Found::Wrong(format!("--configs-dir {} cannot be read: {error}", configs.display())),
        });
    }
    found.extend(boot::bootstrap_token(args).err().map(Found::from));
    found
}

fn certificate(args: &ServerArgs) -> Found {
    match Wanted::of(args.edge.ssl, args.edge.ssl_cert.as_deref(), args.edge.ssl_key.as_deref()) {
        Err(why) => Found::Wrong(why.to_owned()),
        Ok(Wanted::Nothing) => Found::Well("plain HTTP".to_owned()),
        Ok(Wanted::Own) => Found::Well("HTTPS with a certificate of its own making".to_owned()),
        Ok(Wanted::Given(pair)) => match Tls::open(pair, &SystemClock) {
            Ok(tls) => Found::Well(format!("HTTPS with a certificate of the key {}", tls.fingerprint())),
            Err(why) => Found::Wrong(why),
        },
    }
}

async fn address(address: SocketAddr, flag: &str) -> Found {
    match bind_to(address, flag).await {
        Ok(_) => Found::Well(format!("{address} is free")),
        Err(exit) => exit.into(),
    }
}

fn directory(data: &Path) -> Found {
    // What is missing is made at the start, in what is there.
    let whole = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let there = whole.ancestors().find(|path| path.exists()).unwrap_or(data);
    if !there.is_dir() {
        return Found::Wrong(format!("{} is no directory; choose another with --data-dir", there.display()));
    }
    match access(there, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Found::Well(format!("the data directory is {}", data.display())),
        Err(error) => Found::Wrong(format!(
            "{} cannot be written ({}); change its owner, or choose another with --data-dir",
            there.display(),
            error.desc()
        )),
    }
}

async fn database(args: &ServerArgs, data: &Path) -> Found {
    let opened = match &args.database_url {
        Some(url) => Archive::at(&url.0).await,
        None if !data.join(sqlite::FILE).exists() => return Found::Well("a new database will be made".to_owned()),
        None => Archive::in_directory(data).await,
    };
    let archive = match opened {
        Ok(archive) => archive,
        Err(error) => return Found::Wrong(format!("{error:#}")),
    };
    let (known, version) = (archive.known_schema(), version(&archive).await);
    archive.close().await;
    match version {
        Some(found) if found > known => Found::Wrong(format!(
            "the database was used by a newer version (its schema is {found}, this program knows {known}); upgrade this one"
        )),
        Some(found) if found < known => Found::Worth(format!(
            "the database's schema {found} will be brought up to {known} at the start; back it up"
        )),
        Some(found) => Found::Well(format!("the database has schema {found}")),
        None => Found::Well("the database is empty, and will be set up at the start".to_owned()),
    }
}

async fn version(archive: &Archive) -> Option<i64> {
    archive.read().await.ok()?.schema_version().await.ok()
}
