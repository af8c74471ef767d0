//! A server on a socket, and commands that are run against it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use app::remote::ServerTrust;
use clap::Parser;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::SecretString;
use crate::boot::connections::ConnectionLimiter;
use crate::boot::serve::{ConnectionTimeouts, serve_with_timeouts};
use crate::cli::browser::Browser;
use crate::cli::client::Client;
use crate::cli::client::connection::Connection;
use crate::cli::client::credential::ApiCredential;
use crate::cli::output::{Output, OutputFormat, Prompter, output_format};
use crate::cli::{Cli, Command, ResourceCommand, auth, configs, jobs, workers};
use crate::exit::ExitError;
use crate::tests::harness::{ADMIN, TestServer};

/// The result of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// Returns the output of a successful command.
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Returns the output as JSON.
    pub fn json(self) -> Value {
        serde_json::from_str(&self.expect_success()).expect("one document")
    }

    /// Returns the output, which must be a single line.
    pub fn single_line(self) -> String {
        let out = self.expect_success();
        assert_eq!(out.lines().count(), 1, "{out:?}");
        out.trim_end().to_owned()
    }

    /// Checks the exit code and the message.
    pub fn expect_failure(self, code: u8, message: &str) {
        assert!(self.code == code && self.err.contains(message), "{code} {message:?}: {self:?}");
    }
}

/// The input that a user types; empty if there is no terminal.
#[derive(Default)]
pub struct ScriptedPrompter(VecDeque<String>);

impl Prompter for ScriptedPrompter {
    fn prompt(&mut self, _: &str, _: bool) -> io::Result<Option<String>> {
        Ok(self.0.pop_front())
    }
}

/// An output whose reader closes the pipe after this many bytes, as `head` does.
pub struct ClosingWriter {
    pub after: usize,
    pub read: Vec<u8>,
}

impl Write for ClosingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.read.len() >= self.after {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.read.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct CliHarness {
    pub server: TestServer,
    pub address: SocketAddr,
    pub client: Client,
    /// The width of its terminal; `None` without one.
    pub width: Option<usize>,
    /// What opens pages; `None` without a screen.
    pub browser: Option<Browser>,
}

impl CliHarness {
    /// Starts a server; commands run as admin.
    pub async fn start() -> Self {
        Self::with_server(TestServer::start().await).await
    }

    pub async fn with_server(server: TestServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = server.router.clone();
        tokio::spawn(async move {
            let connections = Arc::new(ConnectionLimiter::new(64, 64, Vec::new()));
            serve_with_timeouts(
                ConnectionTimeouts::default(),
                listener,
                router,
                None,
                &connections,
                &CancellationToken::new(),
            )
            .await;
        });
        Self { server, address, client: client(address, Some(ADMIN)), width: None, browser: None }
    }

    /// Returns a client with an API token.
    pub fn client(&self, token: &str) -> Client {
        client(self.address, Some(token))
    }

    /// Returns a client with the token of the operator, who is on the host of the server.
    pub fn operator(&self) -> Client {
        let token = self.server.app.services.access.issue_operator_token();
        let key = ApiCredential::Operator { token: SecretString(token), note: None };
        Client::new(Connection { credential: key, ..connection(self.address, None) }).expect("a client")
    }

    /// Runs a command without a terminal.
    pub async fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with_answers(&self.client, args, &[]).await
    }

    /// Runs a command as another user.
    pub async fn run_as(&self, client: &Client, args: &[&str]) -> CommandOutput {
        self.run_with_answers(client, args, &[]).await
    }

    /// Runs a command whose prompts get these answers.
    pub async fn run_with_answers(&self, client: &Client, args: &[&str], answers: &[&str]) -> CommandOutput {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let result = self.run_into(client, args, answers, &mut out, &mut err).await;
        let code = result.as_ref().map_or_else(ExitError::code, |()| 0);
        if let Err(exit) = result
            && !exit.message().is_empty()
        {
            writeln!(err, "error: {}", exit.message()).expect("into memory");
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        CommandOutput { code, out: text(out), err: text(err) }
    }

    /// Runs a command that prints to these writers.
    pub async fn run_into(
        &self,
        client: &Client,
        args: &[&str],
        answers: &[&str],
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), ExitError> {
        let cli = Cli::try_parse_from([&["simpletuner"], args].concat());
        let cli = cli.map_err(|error| ExitError::usage(error.to_string()))?;
        let mut prompter = ScriptedPrompter(answers.iter().map(|answer| (*answer).to_owned()).collect());
        let clock = self.server.clock.clone();
        let mut screen = Output {
            out,
            err,
            prompter: &mut prompter,
            format: OutputFormat::Text,
            use_color: false,
            width: self.width,
            shows_progress: false,
            assume_yes: false,
            browser: self.browser.clone(),
            clock,
        };
        match cli.command {
            Command::Workers(ResourceCommand { command, output, .. }) => {
                (screen.format, screen.assume_yes) = (output_format(&output), output.yes);
                workers::run(command, client, &mut screen).await
            }
            Command::Jobs(ResourceCommand { command, output, .. }) => {
                (screen.format, screen.assume_yes) = (output_format(&output), output.yes);
                jobs::run(command, client, &mut screen).await
            }
            Command::Configs(ResourceCommand { command, output, .. }) => {
                (screen.format, screen.assume_yes) = (output_format(&output), output.yes);
                configs::run(command, client, &mut screen).await
            }
            Command::Auth(args) => {
                (screen.format, screen.assume_yes) = (output_format(&args.resource.output), args.resource.output.yes);
                auth::run(args.resource.command, client, &mut screen).await
            }
            other => panic!("{other:?} needs no server"),
        }
    }
}

/// Returns a client of the server at this address.
pub fn client(address: SocketAddr, token: Option<&str>) -> Client {
    let mut client = Client::new(connection(address, token)).expect("a client");
    client.retry_delay = Duration::from_millis(1);
    client
}

fn connection(address: SocketAddr, token: Option<&str>) -> Connection {
    Connection {
        url: format!("http://{address}/").parse().expect("a URL"),
        trust: ServerTrust::SystemRoots,
        credential: token.map_or(ApiCredential::None, |token| ApiCredential::Token(SecretString(token.to_owned()))),
        warnings: Vec::new(),
    }
}

/// Replaces the ids in a text with their prefixes. IDs differ between runs, but have the same length.
pub fn mask_ids(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(underscore) = rest.find('_') {
        let is_id = rest.len() >= underscore + 27
            && rest.as_bytes()[underscore + 1..underscore + 27].iter().all(u8::is_ascii_alphanumeric);
        let end = if is_id { underscore + 27 } else { underscore + 1 };
        masked.push_str(&rest[..=underscore]);
        if is_id {
            masked.push_str("ID");
        }
        rest = &rest[end..];
    }
    masked + rest
}

/// A relay between client and server that can cut connections.
pub struct TcpRelay {
    pub address: SocketAddr,
    target: SocketAddr,
    connections: Arc<tokio::sync::Mutex<JoinSet<()>>>,
    accept_task: Option<tokio::task::JoinHandle<()>>,
}

impl TcpRelay {
    pub async fn start(target: SocketAddr) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut relay = Self { address: any_port, target, connections: Arc::default(), accept_task: None };
        relay.listen().await;
        relay
    }

    /// Forwards connections, on the same port as before.
    pub async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("a port");
        self.address = listener.local_addr().expect("an address");
        let (target, connections) = (self.target, Arc::clone(&self.connections));
        self.accept_task = Some(tokio::spawn(async move {
            while let Ok((mut inbound, _)) = listener.accept().await {
                connections.lock().await.spawn(async move {
                    if let Ok(mut outbound) = TcpStream::connect(target).await {
                        // Either side may close the connection.
                        let _ = tokio::io::copy_bidirectional(&mut inbound, &mut outbound).await;
                    }
                });
            }
        }));
    }

    /// Cuts all connections and accepts no more.
    pub async fn cut(&mut self) {
        if let Some(accept_task) = self.accept_task.take() {
            accept_task.abort();
            // The task was aborted.
            let _ = accept_task.await;
        }
        self.connections.lock().await.shutdown().await;
    }
}

#[test]
fn only_ids_are_masked() {
    let text = "w_01hm5z4f40000000000000000a  gpu_1 j_01hm5z4f40000000000000000b\n";
    assert_eq!(mask_ids(text), "w_ID  gpu_1 j_ID\n");
}
