//! Which server is meant, how it is known, and as whom: from flags, from the environment, and from what a server that
//! runs on this host has left in its data directory.

use std::path::{Path, PathBuf};

use app::remote::{Trust, TrustError};
use clap::Args;
use reqwest::Url;

use super::key::{Key, note_of};
use crate::boot::chosen_directory;
use crate::boot::exit::Exit;
use crate::cli::Secret;
use crate::files::operator::{self, Note};

/// Where a server listens that was told nothing.
const DEFAULT: &str = "http://127.0.0.1:8001";

/// Flags of every command that asks a server. Those with variables read them by the same names in the agent.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows it as it is")]
pub struct WayArgs {
    /// The server's address (SIMPLETUNER_URL) [default: that of the server on this host].
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// File that holds an API token (SIMPLETUNER_API_TOKEN_FILE; or the token itself in SIMPLETUNER_API_TOKEN).
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The API token itself, where other users of this machine can read it.
    #[arg(long, global = true, hide = true, alias = "api-key")]
    pub token: Option<Secret>,
    /// Trust the certificates in this PEM file, and not those of the system (SIMPLETUNER_CA_FILE).
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Accept the server by the fingerprint of its key, and by nothing else (SIMPLETUNER_ORCHESTRATOR_FINGERPRINT).
    #[arg(long, global = true, value_name = "sha256:HEX")]
    pub orchestrator_fingerprint: Option<String>,
    /// Do not verify the server's certificate: for development only (SIMPLETUNER_SSL_NO_VERIFY).
    #[arg(long, global = true)]
    pub ssl_no_verify: bool,
    /// Data directory of the server on this host, whose operator needs no token (SIMPLETUNER_DATA_DIR).
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Way {
    /// The server; its path ends with `/`.
    pub url: Url,
    /// Whose certificate is accepted.
    pub trust: Trust,
    /// What opens it.
    pub key: Key,
    /// What whoever started this should know.
    pub warnings: Vec<&'static str>,
}

impl WayArgs {
    /// Finds the way.
    ///
    /// # Errors
    /// If flags or variables make no sense, or a file that they name cannot be used.
    pub fn find(&self, host: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Way, Exit> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let named = self.url.clone().or_else(|| variable("SIMPLETUNER_URL"));
        let named = named.or_else(|| variable("SIMPLETUNER_ORCHESTRATOR_URL"));
        let token = self.given_token(&variable)?;
        let here = match self.here(host, &variable) {
            // It would have been of no use.
            Err(_) if named.is_some() && token.is_some() => None,
            here => here?,
        };
        let url = parse(named.as_deref().or(here.as_ref().map(|note| note.url.as_str())).unwrap_or(DEFAULT))?;
        let here = here.and_then(|note| note_of(note, &url));
        let mut warnings = Vec::new();
        if self.token.is_some() {
            warnings.push(
                "warning: other users of this machine can read --token; SIMPLETUNER_API_TOKEN or --token-file are safe",
            );
        }
        let trust = self.trust(here.as_ref(), &variable)?;
        if trust == Trust::Anything {
            warnings.push("warning: --ssl-no-verify: anyone on the network path can pose as the server");
        }
        let key = match (token, here) {
            (Some(token), _) => Key::Token(token),
            (None, Some(note)) => {
                let at = self.directory(variable)?;
                Key::Operator { token: Secret(note.token), note: Some((at, host.to_owned())) }
            }
            (None, None) => Key::None,
        };
        if url.scheme() == "http" && !is_local(&url) && !matches!(key, Key::None) {
            warnings.push("warning: the token travels unencrypted; write https:// where the network is not trusted");
        }
        Ok(Way { url, trust, key, warnings })
    }

    /// The data directory of the server on this host.
    ///
    /// # Errors
    /// If none is known.
    pub fn directory(&self, variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, Exit> {
        let named = self.data_dir.clone().or_else(|| variable("SIMPLETUNER_DATA_DIR").map(PathBuf::from));
        chosen_directory(named.as_deref())
    }

    /// Whether a server was named that need not be on this host.
    pub fn names_a_server(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name| variable(name).is_some_and(|value: String| !value.is_empty());
        self.url.is_some() || set("SIMPLETUNER_URL") || set("SIMPLETUNER_ORCHESTRATOR_URL")
    }

    fn given_token(&self, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Secret>, Exit> {
        if let Some(token) = &self.token {
            return Ok(Some(token.clone()));
        }
        let plain = || variable("SIMPLETUNER_API_TOKEN").or_else(|| variable("SIMPLETUNER_API_KEY")).map(Secret);
        match &self.token_file {
            Some(file) => read_token(file).map(Some),
            None => match plain() {
                Some(token) => Ok(Some(token)),
                None => variable("SIMPLETUNER_API_TOKEN_FILE").map(|file| read_token(Path::new(&file))).transpose(),
            },
        }
    }

    fn here(&self, host: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Note>, Exit> {
        let Ok(directory) = self.directory(variable) else { return Ok(None) };
        operator::find(&directory, host).map_err(Exit::config)
    }

    fn trust(&self, here: Option<&Note>, variable: &impl Fn(&str) -> Option<String>) -> Result<Trust, Exit> {
        let refused = |error| match error {
            TrustError::Usage(sentence) => Exit::usage(sentence),
            TrustError::Unusable(sentence) => Exit::config(sentence),
        };
        let yes = |value: String| matches!(value.to_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on" | "t");
        let fingerprint = self.orchestrator_fingerprint.clone();
        let fingerprint = fingerprint.or_else(|| variable("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT"));
        let given = Trust::of(
            self.ssl_no_verify || variable("SIMPLETUNER_SSL_NO_VERIFY").is_some_and(yes),
            self.ca_file.clone().or_else(|| variable("SIMPLETUNER_CA_FILE").map(PathBuf::from)),
            fingerprint.as_deref(),
        );
        let known = here.and_then(|note| note.fingerprint);
        match (given.map_err(refused)?, known) {
            (Trust::System, Some(fingerprint)) => Ok(Trust::Pinned(fingerprint)),
            (given, _) => Ok(given),
        }
    }
}

/// Whether an address is on this machine.
pub fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// An address as a person writes it; its path ends with `/`.
pub fn parse(text: &str) -> Result<Url, Exit> {
    let text = text.trim();
    let wrong = |why: &str| Exit::usage(format!("{text:?} is no server's address ({why}); write http://HOST:8001"));
    let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("it is neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it holds a name or password; use an API token"));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn read_token(file: &Path) -> Result<Secret, Exit> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Exit::config(format!("the token file {} cannot be read: {error}", file.display())))?;
    match text.trim() {
        "" => Err(Exit::config(format!("the token file {} is empty", file.display()))),
        token => Ok(Secret(token.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use app::domain::time::Timestamp;
    use app::protocol::fingerprint::Fingerprint;
    use tempfile::TempDir;

    use super::*;
    use crate::files::operator::NoteFile;

    const PIN: Fingerprint = Fingerprint([7; 32]);

    /// A data directory of a server that listens there.
    fn data(url: &str) -> TempDir {
        let data = TempDir::new().expect("a directory");
        let (url, host) = (url.to_owned(), "here".to_owned());
        let fingerprint = url.starts_with("https").then_some(PIN);
        let note = Note { url, fingerprint, token: "ot_x".to_owned(), host, started_at: Timestamp(1) };
        NoteFile::of(data.path(), "here", 8001).write(&note).expect("written");
        data
    }

    fn find(args: &WayArgs, variables: &[(&str, &str)]) -> Result<Way, Exit> {
        args.find("here", |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn token(way: &Way) -> Option<String> {
        way.key.token(&way.url).map(|token| token.0)
    }

    #[test]
    fn on_the_servers_host_nothing_has_to_be_said() {
        let data = data("https://127.0.0.1:9001");
        let args = WayArgs { data_dir: Some(data.path().to_owned()), ..WayArgs::default() };
        let way = find(&args, &[]).expect("a way");
        assert_eq!((way.url.as_str(), token(&way).as_deref()), ("https://127.0.0.1:9001/", Some("ot_x")));
        assert!(way.key.is_operators() && way.trust == Trust::Pinned(PIN) && way.warnings.is_empty());

        // The server starts again.
        let note = operator::find(data.path(), "here").expect("believable").expect("there");
        let newer = Note { token: "ot_y".to_owned(), started_at: Timestamp(2), ..note.clone() };
        NoteFile::of(data.path(), "here", 8001).write(&newer).expect("written");
        assert_eq!(token(&way).as_deref(), Some("ot_y"), "each start makes another");
        let elsewhere = Note { url: "https://10.0.0.1:1".to_owned(), token: "ot_z".to_owned(), ..newer };
        NoteFile::of(data.path(), "here", 8001).write(&elsewhere).expect("written");
        assert_eq!(token(&way).as_deref(), Some("ot_x"), "which is for its own server only");
        NoteFile::of(data.path(), "here", 8001).write(&note).expect("written");

        let way = find(&args, &[("SIMPLETUNER_API_TOKEN", "st_a")]).expect("a way");
        assert!(token(&way).as_deref() == Some("st_a") && way.trust == Trust::Pinned(PIN));
        let way = find(&args, &[("SIMPLETUNER_SSL_NO_VERIFY", "1")]).expect("a way");
        assert!(way.trust == Trust::Anything && way.warnings.len() == 1);
    }

    #[test]
    fn the_operators_token_goes_to_no_other_server() {
        let data = data("http://127.0.0.1:8001");
        let directory = Some(data.path().to_owned());
        for elsewhere in ["http://10.0.0.1:8001", "https://127.0.0.1:8001", "http://127.0.0.1:8002"] {
            let args = WayArgs { data_dir: directory.clone(), url: Some(elsewhere.to_owned()), ..WayArgs::default() };
            let way = find(&args, &[]).expect("a way");
            assert!(token(&way).is_none() && way.trust == Trust::System, "{elsewhere}");
        }
        let args = WayArgs { data_dir: directory, ..WayArgs::default() };
        assert!(find(&args, &[("SIMPLETUNER_URL", "http://127.0.0.1:8001/")]).expect("a way").key.is_operators());
    }

    #[test]
    fn flags_win_over_variables_and_a_token_on_the_command_line_is_warned_of() {
        let empty = TempDir::new().expect("a directory");
        let file = empty.path().join("token");
        std::fs::write(&file, " st_file\n").expect("written");
        let base = WayArgs { data_dir: Some(empty.path().to_owned()), ..WayArgs::default() };
        let path = file.to_str().expect("text");
        let variables = [("SIMPLETUNER_API_TOKEN", "st_env"), ("SIMPLETUNER_API_TOKEN_FILE", path)];
        assert_eq!(token(&find(&base, &variables).expect("a way")).as_deref(), Some("st_env"));
        assert_eq!(token(&find(&base, &variables[1..]).expect("a way")).as_deref(), Some("st_file"));
        let with_file = WayArgs { token_file: Some(file.clone()), ..base.clone() };
        assert_eq!(token(&find(&with_file, &variables).expect("a way")).as_deref(), Some("st_file"));
        let with_token = WayArgs { token: Some(Secret("st_flag".to_owned())), ..with_file };
        let way = find(&with_token, &variables).expect("a way");
        assert!(token(&way).as_deref() == Some("st_flag") && way.warnings[0].contains("--token"));

        let way = find(&base, &[]).expect("a way");
        assert_eq!((way.url.as_str(), token(&way)), ("http://127.0.0.1:8001/", None));
        let far = [("SIMPLETUNER_ORCHESTRATOR_URL", "http://far:1/x"), ("SIMPLETUNER_API_KEY", "st_env")];
        let way = find(&base, &far).expect("a way");
        assert!(way.url.as_str() == "http://far:1/x/" && way.warnings[0].contains("unencrypted"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let empty = TempDir::new().expect("a directory");
        let base = WayArgs { data_dir: Some(empty.path().to_owned()), ..WayArgs::default() };
        for (variables, code) in [
            ([("SIMPLETUNER_URL", "nonsense")], 2),
            ([("SIMPLETUNER_URL", "ftp://h")], 2),
            ([("SIMPLETUNER_URL", "http://ada:secret@h")], 2),
            ([("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT", "sha256:12")], 2),
            ([("SIMPLETUNER_API_TOKEN_FILE", "/nowhere")], 78),
        ] {
            let refused = find(&base, &variables).expect_err("refused");
            assert_eq!(refused.code(), code, "{variables:?} {refused:?}");
        }
    }
}
