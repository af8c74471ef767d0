//! Copies of a database: SQLite by itself, PostgreSQL by its own tools, which every one of its versions has.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use app::protocol::percent;
use tokio::process::Command;

use super::Result;

/// What a shell would be told is missing.
const MISSING: &str = "is not installed here. Install PostgreSQL's client programs, of the database's version or newer (on \
    Debian and Ubuntu `apt install postgresql-client`), and try again";

/// Copies a PostgreSQL database into a file.
pub async fn dump(url: &str, to: &Path) -> Result<()> {
    let arguments = ["--format=custom", "--no-owner", "--no-privileges", "--file"].map(OsString::from);
    run("pg_dump", url, arguments.into_iter().chain([to.as_os_str().to_owned()]).collect()).await
}

/// Puts it back, in one transaction. With `over` what is there is removed first.
pub async fn restore(url: &str, from: &Path, over: bool) -> Result<()> {
    let mut arguments: Vec<OsString> =
        ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"].map(OsString::from).to_vec();
    if over {
        arguments.extend(["--clean", "--if-exists"].map(OsString::from));
    }
    arguments.push(from.as_os_str().to_owned());
    run("pg_restore", url, arguments).await
}

async fn run(program: &'static str, url: &str, arguments: Vec<OsString>) -> Result<()> {
    let (address, password) = without_password(url);
    let mut command = Command::new(program);
    command.arg("--dbname").arg(address).args(arguments).stdin(std::process::Stdio::null());
    if let Some(password) = password {
        // The command line is visible to everybody on this machine.
        command.env("PGPASSWORD", password);
    }
    let output = command.output().await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{program} {MISSING}"),
        _ => format!("{program} could not be started: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed: {}", said.trim().lines().last().unwrap_or("it did not say why")))
}

/// An address without the password in it, and the password.
fn without_password(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let (user, mut password) = match user.map(|user| user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)))) {
        None => (String::new(), None),
        Some((user, password)) => (format!("{user}@"), password.map(percent::decoded)),
    };
    let (path, query) = path.split_once('?').map_or((path, ""), |(path, query)| (path, query));
    let (secret, plain): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("password="));
    password = password.or_else(|| secret.first().and_then(|pair| Some(percent::decoded(pair.split_once('=')?.1))));
    // Only this program's driver knows these.
    let plain = plain.into_iter().filter(|pair| !pair.is_empty() && !pair.starts_with("statement-cache-capacity="));
    let query = plain.collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    (format!("{scheme}://{user}{host}{path}{query}"), password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_stays_in_an_address() {
        let rows = [
            ("postgres://h/db", "postgres://h/db", None),
            (
                "postgres://ada:p%40ss%25@h:5432/db?sslmode=require",
                "postgres://ada@h:5432/db?sslmode=require",
                Some("p@ss%"),
            ),
            ("postgres://ada@h/db?password=x&host=/tmp/s", "postgres://ada@h/db?host=/tmp/s", Some("x")),
            ("postgresql://ada:a:b@h", "postgresql://ada@h", Some("a:b")),
        ];
        for (url, address, password) in rows {
            assert_eq!(without_password(url), (address.to_owned(), password.map(str::to_owned)), "{url}");
        }
    }
}
