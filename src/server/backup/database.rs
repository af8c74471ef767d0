//! Database dumps: SQLite by its own backup, PostgreSQL by `pg_dump` and `pg_restore`, which support all versions.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use app::protocol::percent_encoding;
use tokio::process::Command;

use super::Result;

/// Message if a tool is missing.
const NOT_INSTALLED: &str = "is not installed here. Install PostgreSQL's client programs, of the database's version or newer (on \
    Debian and Ubuntu `apt install postgresql-client`), and try again";

/// Dumps a PostgreSQL database into a file.
pub async fn dump(url: &str, to: &Path) -> Result<()> {
    let arguments = ["--format=custom", "--no-owner", "--no-privileges", "--file"].map(OsString::from);
    run("pg_dump", url, arguments.into_iter().chain([to.as_os_str().to_owned()]).collect()).await
}

/// Restores the dump in one transaction. With `replace_existing`, existing tables are dropped first.
pub async fn restore(url: &str, from: &Path, replace_existing: bool) -> Result<()> {
    let mut arguments: Vec<OsString> =
        ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"].map(OsString::from).to_vec();
    if replace_existing {
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
        // Every user of this host can read the command line.
        command.env("PGPASSWORD", password);
    }
    let output = command.output().await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{program} {NOT_INSTALLED}"),
        _ => format!("cannot start {program}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed: {}", stderr.trim().lines().last().unwrap_or("no error message")))
}

/// Splits a URL into one without the password, and the password.
fn without_password(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let (user, mut password) = match user.map(|user| user.split_once(':').map_or((user, None), |(u, p)| (u, Some(p)))) {
        None => (String::new(), None),
        Some((user, password)) => (format!("{user}@"), password.map(percent_encoding::decode)),
    };
    let (path, query) = path.split_once('?').map_or((path, ""), |(path, query)| (path, query));
    let (password_pairs, other_pairs): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|pair| pair.starts_with("password="));
    password = password
        .or_else(|| password_pairs.first().and_then(|pair| Some(percent_encoding::decode(pair.split_once('=')?.1))));
    // Parameters that only this program's driver supports.
    let other_pairs =
        other_pairs.into_iter().filter(|pair| !pair.is_empty() && !pair.starts_with("statement-cache-capacity="));
    let query = other_pairs.collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    (format!("{scheme}://{user}{host}{path}{query}"), password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_removed_from_the_url() {
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
