//! Selects the server, its certificate checks and the credential: from flags, the environment, and the data directory
//! of a server on this host.

use std::path::{Path, PathBuf};

use app::remote::{ServerTrust, ServerTrustError};
use clap::Args;
use reqwest::Url;

use super::credential::{ApiCredential, endpoint_for_server};
use crate::args::SecretString;
use crate::data_dir::resolve_data_dir;
use crate::exit::ExitError;
use crate::files::operator_file::{self, OperatorEndpoint};

/// The address of a server with default settings.
const DEFAULT_URL: &str = "http://127.0.0.1:8001";

/// Flags of every command that needs a server. Their variables have the same names as for the agent.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows it as it is")]
pub struct ConnectionArgs {
    /// Server URL (SIMPLETUNER_URL) [default: the server on this host].
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// File with an API token (SIMPLETUNER_API_TOKEN_FILE; or the token itself in SIMPLETUNER_API_TOKEN).
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// API token; other users of this machine can read it in the process list.
    #[arg(long, global = true, hide = true, alias = "api-key")]
    pub token: Option<SecretString>,
    /// Trust only the certificates in this PEM file, not those of the system (SIMPLETUNER_CA_FILE).
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Verify the server by the fingerprint of its key only (SIMPLETUNER_ORCHESTRATOR_FINGERPRINT).
    #[arg(long, global = true, value_name = "sha256:HEX")]
    pub orchestrator_fingerprint: Option<String>,
    /// Do not verify the server's certificate; for development only (SIMPLETUNER_SSL_NO_VERIFY).
    #[arg(long, global = true)]
    pub ssl_no_verify: bool,
    /// Data directory of a server on this host, whose operator needs no token (SIMPLETUNER_DATA_DIR).
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// A resolved connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The server's URL; its path ends with `/`.
    pub url: Url,
    /// Which certificates are accepted.
    pub trust: ServerTrust,
    pub credential: ApiCredential,
    /// Warnings to print.
    pub warnings: Vec<&'static str>,
}

impl ConnectionArgs {
    /// Resolves the connection.
    ///
    /// # Errors
    /// Returns an error if flags or variables are invalid, or a file that they name is unusable.
    pub fn resolve(&self, host: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Connection, ExitError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let explicit_url = self.url.clone().or_else(|| variable("SIMPLETUNER_URL"));
        let explicit_url = explicit_url.or_else(|| variable("SIMPLETUNER_ORCHESTRATOR_URL"));
        let token = self.explicit_token(&variable)?;
        let endpoint = match self.find_local_endpoint(host, &variable) {
            // An unusable endpoint does not matter if neither its URL nor its token would be used.
            Err(_) if explicit_url.is_some() && token.is_some() => None,
            endpoint => endpoint?,
        };
        let url = parse_url(
            explicit_url.as_deref().or(endpoint.as_ref().map(|endpoint| endpoint.url.as_str())).unwrap_or(DEFAULT_URL),
        )?;
        let endpoint = endpoint.and_then(|endpoint| endpoint_for_server(endpoint, &url));
        let mut warnings = Vec::new();
        if self.token.is_some() {
            warnings
                .push("warning: other users of this host can read --token; use SIMPLETUNER_API_TOKEN or --token-file");
        }
        let trust = self.resolve_trust(endpoint.as_ref(), &variable)?;
        if trust == ServerTrust::AcceptAny {
            warnings.push("warning: --ssl-no-verify: anyone on the network path can impersonate the server");
        }
        let credential = match (token, endpoint) {
            (Some(token), _) => ApiCredential::Token(token),
            (None, Some(endpoint)) => {
                let data = self.data_directory(variable)?;
                ApiCredential::Operator { token: SecretString(endpoint.token), note: Some((data, host.to_owned())) }
            }
            (None, None) => ApiCredential::None,
        };
        if url.scheme() == "http" && !is_local(&url) && !matches!(credential, ApiCredential::None) {
            warnings.push("warning: the token is sent unencrypted; use https:// unless the network is trusted");
        }
        Ok(Connection { url, trust, credential, warnings })
    }

    /// Returns the data directory of the server on this host.
    ///
    /// # Errors
    /// Returns an error if none is known.
    pub fn data_directory(&self, variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, ExitError> {
        let explicit = self.data_dir.clone().or_else(|| variable("SIMPLETUNER_DATA_DIR").map(PathBuf::from));
        resolve_data_dir(explicit.as_deref())
    }

    /// Returns whether a server is named that may be on another host.
    pub fn is_server_explicit(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let is_set = |name| variable(name).is_some_and(|value: String| !value.is_empty());
        self.url.is_some() || is_set("SIMPLETUNER_URL") || is_set("SIMPLETUNER_ORCHESTRATOR_URL")
    }

    fn explicit_token(&self, variable: &impl Fn(&str) -> Option<String>) -> Result<Option<SecretString>, ExitError> {
        if let Some(token) = &self.token {
            return Ok(Some(token.clone()));
        }
        let variable_token =
            || variable("SIMPLETUNER_API_TOKEN").or_else(|| variable("SIMPLETUNER_API_KEY")).map(SecretString);
        match &self.token_file {
            Some(file) => read_token_file(file).map(Some),
            None => match variable_token() {
                Some(token) => Ok(Some(token)),
                None => {
                    variable("SIMPLETUNER_API_TOKEN_FILE").map(|file| read_token_file(Path::new(&file))).transpose()
                }
            },
        }
    }

    fn find_local_endpoint(
        &self,
        host: &str,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<OperatorEndpoint>, ExitError> {
        let Ok(directory) = self.data_directory(variable) else { return Ok(None) };
        operator_file::find_endpoint(&directory, host).map_err(ExitError::config)
    }

    fn resolve_trust(
        &self,
        endpoint: Option<&OperatorEndpoint>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<ServerTrust, ExitError> {
        let trust_error = |error| match error {
            ServerTrustError::Usage(message) => ExitError::usage(message),
            ServerTrustError::Unusable(message) => ExitError::config(message),
        };
        let is_true = |value: String| matches!(value.to_lowercase().as_str(), "1" | "true" | "yes" | "y" | "on" | "t");
        let fingerprint = self.orchestrator_fingerprint.clone();
        let fingerprint = fingerprint.or_else(|| variable("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT"));
        let trust = ServerTrust::from_flags(
            self.ssl_no_verify || variable("SIMPLETUNER_SSL_NO_VERIFY").is_some_and(is_true),
            self.ca_file.clone().or_else(|| variable("SIMPLETUNER_CA_FILE").map(PathBuf::from)),
            fingerprint.as_deref(),
        );
        let known_fingerprint = endpoint.and_then(|endpoint| endpoint.fingerprint);
        match (trust.map_err(trust_error)?, known_fingerprint) {
            (ServerTrust::SystemRoots, Some(fingerprint)) => Ok(ServerTrust::PinnedKey(fingerprint)),
            (trust, _) => Ok(trust),
        }
    }
}

/// Returns whether a URL is on this host.
pub fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Parses a URL as users write it; its path ends with `/`.
pub fn parse_url(text: &str) -> Result<Url, ExitError> {
    let text = text.trim();
    let url_error =
        |reason: &str| ExitError::usage(format!("{text:?} is not a server URL ({reason}); write http://HOST:8001"));
    let mut url = Url::parse(text).map_err(|error| url_error(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(url_error("neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(url_error("it contains a name or password; use an API token"));
    }
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn read_token_file(file: &Path) -> Result<SecretString, ExitError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ExitError::config(format!("cannot read the token file {}: {error}", file.display())))?;
    match text.trim() {
        "" => Err(ExitError::config(format!("the token file {} is empty", file.display()))),
        token => Ok(SecretString(token.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use app::domain::time::Timestamp;
    use app::protocol::system::fingerprint::Fingerprint;
    use tempfile::TempDir;

    use super::*;
    use crate::files::operator_file::OperatorFile;

    const PIN: Fingerprint = Fingerprint([7; 32]);

    /// A data directory of a server with this URL.
    fn data_dir_with_server(url: &str) -> TempDir {
        let data = TempDir::new().expect("a directory");
        let (url, host) = (url.to_owned(), "here".to_owned());
        let fingerprint = url.starts_with("https").then_some(PIN);
        let endpoint = OperatorEndpoint { url, fingerprint, token: "ot_x".to_owned(), host, started_at: Timestamp(1) };
        OperatorFile::new(data.path(), "here", 8001).write(&endpoint).expect("written");
        data
    }

    fn find(args: &ConnectionArgs, variables: &[(&str, &str)]) -> Result<Connection, ExitError> {
        args.resolve("here", |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn token(connection: &Connection) -> Option<String> {
        connection.credential.token(&connection.url).map(|token| token.0)
    }

    #[test]
    fn server_on_this_host_needs_no_flags() {
        let data = data_dir_with_server("https://127.0.0.1:9001");
        let args = ConnectionArgs { data_dir: Some(data.path().to_owned()), ..ConnectionArgs::default() };
        let connection = find(&args, &[]).expect("a connection");
        assert_eq!((connection.url.as_str(), token(&connection).as_deref()), ("https://127.0.0.1:9001/", Some("ot_x")));
        assert!(
            connection.credential.is_operator()
                && connection.trust == ServerTrust::PinnedKey(PIN)
                && connection.warnings.is_empty()
        );

        // The server restarts.
        let endpoint = operator_file::find_endpoint(data.path(), "here").expect("trusted").expect("an endpoint");
        let newer = OperatorEndpoint { token: "ot_y".to_owned(), started_at: Timestamp(2), ..endpoint.clone() };
        OperatorFile::new(data.path(), "here", 8001).write(&newer).expect("written");
        assert_eq!(token(&connection).as_deref(), Some("ot_y"), "each start creates a new token");
        let other_server = OperatorEndpoint { url: "https://10.0.0.1:1".to_owned(), token: "ot_z".to_owned(), ..newer };
        OperatorFile::new(data.path(), "here", 8001).write(&other_server).expect("written");
        assert_eq!(token(&connection).as_deref(), Some("ot_x"), "the token of another server is not used");
        OperatorFile::new(data.path(), "here", 8001).write(&endpoint).expect("written");

        let connection = find(&args, &[("SIMPLETUNER_API_TOKEN", "st_a")]).expect("a connection");
        assert!(token(&connection).as_deref() == Some("st_a") && connection.trust == ServerTrust::PinnedKey(PIN));
        let connection = find(&args, &[("SIMPLETUNER_SSL_NO_VERIFY", "1")]).expect("a connection");
        assert!(connection.trust == ServerTrust::AcceptAny && connection.warnings.len() == 1);
    }

    #[test]
    fn operator_token_is_sent_to_its_server_only() {
        let data = data_dir_with_server("http://127.0.0.1:8001");
        let directory = Some(data.path().to_owned());
        for url in ["http://10.0.0.1:8001", "https://127.0.0.1:8001", "http://127.0.0.1:8002"] {
            let args =
                ConnectionArgs { data_dir: directory.clone(), url: Some(url.to_owned()), ..ConnectionArgs::default() };
            let connection = find(&args, &[]).expect("a connection");
            assert!(token(&connection).is_none() && connection.trust == ServerTrust::SystemRoots, "{url}");
        }
        let args = ConnectionArgs { data_dir: directory, ..ConnectionArgs::default() };
        assert!(
            find(&args, &[("SIMPLETUNER_URL", "http://127.0.0.1:8001/")])
                .expect("a connection")
                .credential
                .is_operator()
        );
    }

    #[test]
    fn flags_override_variables_and_token_flag_prints_a_warning() {
        let empty = TempDir::new().expect("a directory");
        let file = empty.path().join("token");
        std::fs::write(&file, " st_file\n").expect("written");
        let base = ConnectionArgs { data_dir: Some(empty.path().to_owned()), ..ConnectionArgs::default() };
        let path = file.to_str().expect("text");
        let variables = [("SIMPLETUNER_API_TOKEN", "st_env"), ("SIMPLETUNER_API_TOKEN_FILE", path)];
        assert_eq!(token(&find(&base, &variables).expect("a connection")).as_deref(), Some("st_env"));
        assert_eq!(token(&find(&base, &variables[1..]).expect("a connection")).as_deref(), Some("st_file"));
        let with_file = ConnectionArgs { token_file: Some(file.clone()), ..base.clone() };
        assert_eq!(token(&find(&with_file, &variables).expect("a connection")).as_deref(), Some("st_file"));
        let with_token = ConnectionArgs { token: Some(SecretString("st_flag".to_owned())), ..with_file };
        let connection = find(&with_token, &variables).expect("a connection");
        assert!(token(&connection).as_deref() == Some("st_flag") && connection.warnings[0].contains("--token"));

        let connection = find(&base, &[]).expect("a connection");
        assert_eq!((connection.url.as_str(), token(&connection)), ("http://127.0.0.1:8001/", None));
        let remote_variables = [("SIMPLETUNER_ORCHESTRATOR_URL", "http://far:1/x"), ("SIMPLETUNER_API_KEY", "st_env")];
        let connection = find(&base, &remote_variables).expect("a connection");
        assert!(connection.url.as_str() == "http://far:1/x/" && connection.warnings[0].contains("unencrypted"));
    }

    #[test]
    fn invalid_input_is_rejected() {
        let empty = TempDir::new().expect("a directory");
        let base = ConnectionArgs { data_dir: Some(empty.path().to_owned()), ..ConnectionArgs::default() };
        for (variables, code) in [
            ([("SIMPLETUNER_URL", "nonsense")], 2),
            ([("SIMPLETUNER_URL", "ftp://h")], 2),
            ([("SIMPLETUNER_URL", "http://ada:secret@h")], 2),
            ([("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT", "sha256:12")], 2),
            ([("SIMPLETUNER_API_TOKEN_FILE", "/nowhere")], 78),
        ] {
            let error = find(&base, &variables).expect_err("rejected");
            assert_eq!(error.code(), code, "{variables:?} {error:?}");
        }
    }
}
