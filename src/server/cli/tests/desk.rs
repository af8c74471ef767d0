//! A server on a socket, and somebody who types commands.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use app::remote::Trust;
use clap::Parser;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::boot::connections::Connections;
use crate::boot::exit::Exit;
use crate::boot::serve::{Patience, serve_within};
use crate::cli::client::Client;
use crate::cli::client::key::Key;
use crate::cli::client::way::Way;
use crate::cli::screen::{Form, Person, Screen, form};
use crate::cli::{Cli, Command, Noun, Secret, auth, configs, jobs, workers};
use crate::tests::harness::{ADMIN, Server};

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: u8,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// What it printed, if it ended well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// What it printed, as JSON.
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("one document")
    }

    /// The only line that it printed.
    pub fn line(self) -> String {
        let out = self.ok();
        assert_eq!(out.lines().count(), 1, "{out:?}");
        out.trim_end().to_owned()
    }

    /// Checks that it ended so, and said this.
    pub fn refused(self, code: u8, words: &str) {
        assert!(self.code == code && self.err.contains(words), "{code} {words:?}: {self:?}");
    }
}

/// What a person types, in turn; nobody sits there if it is empty.
#[derive(Default)]
pub struct Typed(VecDeque<String>);

impl Person for Typed {
    fn ask(&mut self, _: &str, _: bool) -> io::Result<Option<String>> {
        Ok(self.0.pop_front())
    }
}

/// A reader that leaves after so many bytes, as `head` does.
pub struct Leaves {
    pub after: usize,
    pub read: Vec<u8>,
}

impl Write for Leaves {
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

/// See the module.
pub struct Desk {
    pub server: Server,
    pub address: SocketAddr,
    pub client: Client,
    /// How many columns its terminal has; none where it prints elsewhere.
    pub width: Option<usize>,
}

impl Desk {
    /// One of the admin's.
    pub async fn open() -> Self {
        Self::with(Server::start().await).await
    }

    pub async fn with(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = server.router.clone();
        tokio::spawn(async move {
            let room = Arc::new(Connections::new(64, 64, Vec::new()));
            serve_within(Patience::default(), listener, router, None, &room, &CancellationToken::new()).await;
        });
        Self { server, address, client: client(address, Some(ADMIN)), width: None }
    }

    /// A client for an API token.
    pub fn client(&self, token: &str) -> Client {
        client(self.address, Some(token))
    }

    /// The client of the server's own host.
    pub fn operator(&self) -> Client {
        let token = self.server.app.core.operator_token();
        let key = Key::Operator { token: Secret(token), note: None };
        Client::over(Way { key, ..way(self.address, None) }).expect("a client")
    }

    /// Runs a command where nobody sits.
    pub async fn run(&self, args: &[&str]) -> Ran {
        self.typing(&self.client, args, &[]).await
    }

    /// Runs a command of somebody else's.
    pub async fn run_by(&self, client: &Client, args: &[&str]) -> Ran {
        self.typing(client, args, &[]).await
    }

    /// Runs a command whose questions are answered so.
    pub async fn typing(&self, client: &Client, args: &[&str], answers: &[&str]) -> Ran {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let ended = self.print(client, args, answers, &mut out, &mut err).await;
        let code = ended.as_ref().map_or_else(Exit::code, |()| 0);
        if let Err(exit) = ended
            && !exit.sentence().is_empty()
        {
            writeln!(err, "error: {}", exit.sentence()).expect("into memory");
        }
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Ran { code, out: text(out), err: text(err) }
    }

    /// Runs a command that prints there.
    pub async fn print(
        &self,
        client: &Client,
        args: &[&str],
        answers: &[&str],
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<(), Exit> {
        let cli = Cli::try_parse_from([&["simpletuner"], args].concat());
        let cli = cli.map_err(|error| Exit::usage(error.to_string()))?;
        let mut person = Typed(answers.iter().map(|answer| (*answer).to_owned()).collect());
        let clock = self.server.clock.clone();
        let mut screen = Screen {
            out,
            err,
            person: &mut person,
            form: Form::Words,
            colour: false,
            width: self.width,
            draws: false,
            yes: false,
            clock,
        };
        match cli.command {
            Command::Workers(Noun { command, output, .. }) => {
                (screen.form, screen.yes) = (form(&output), output.yes);
                workers::run(command, client, &mut screen).await
            }
            Command::Jobs(Noun { command, output, .. }) => {
                (screen.form, screen.yes) = (form(&output), output.yes);
                jobs::run(command, client, &mut screen).await
            }
            Command::Configs(Noun { command, output, .. }) => {
                (screen.form, screen.yes) = (form(&output), output.yes);
                configs::run(command, client, &mut screen).await
            }
            Command::Auth(args) => {
                (screen.form, screen.yes) = (form(&args.noun.output), args.noun.output.yes);
                auth::run(args.noun.command, client, &mut screen).await
            }
            other => panic!("{other:?} asks no server"),
        }
    }
}

/// A client of whoever listens there.
pub fn client(address: SocketAddr, token: Option<&str>) -> Client {
    let mut client = Client::over(way(address, token)).expect("a client");
    client.pause = Duration::from_millis(1);
    client
}

fn way(address: SocketAddr, token: Option<&str>) -> Way {
    Way {
        url: format!("http://{address}/").parse().expect("a URL"),
        trust: Trust::System,
        key: token.map_or(Key::None, |token| Key::Token(Secret(token.to_owned()))),
        warnings: Vec::new(),
    }
}

/// The ids in a text, by their prefixes: they differ from run to run, and are all of one length.
pub fn masked(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('_') {
        let long = rest.len() >= at + 27 && rest.as_bytes()[at + 1..at + 27].iter().all(u8::is_ascii_alphanumeric);
        let end = if long { at + 27 } else { at + 1 };
        masked.push_str(&rest[..=at]);
        if long {
            masked.push_str("ID");
        }
        rest = &rest[end..];
    }
    masked + rest
}

/// Between a client and a server: what passes can be cut off.
pub struct Relay {
    pub address: SocketAddr,
    target: SocketAddr,
    connections: Arc<tokio::sync::Mutex<JoinSet<()>>>,
    accepting: Option<tokio::task::JoinHandle<()>>,
}

impl Relay {
    pub async fn before(target: SocketAddr) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut relay = Self { address: nowhere, target, connections: Arc::default(), accepting: None };
        relay.listen().await;
        relay
    }

    /// Lets connections through, on the same port as before.
    pub async fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("a port");
        self.address = listener.local_addr().expect("an address");
        let (target, connections) = (self.target, Arc::clone(&self.connections));
        self.accepting = Some(tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                connections.lock().await.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        // Either side may end it.
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        }));
    }

    /// Cuts all connections, and answers no more.
    pub async fn cut(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // Its end is that it was aborted.
            let _ = accepting.await;
        }
        self.connections.lock().await.shutdown().await;
    }
}

#[test]
fn ids_are_masked_and_nothing_else() {
    let text = "w_01hm5z4f40000000000000000a  gpu_1 j_01hm5z4f40000000000000000b\n";
    assert_eq!(masked(text), "w_ID  gpu_1 j_ID\n");
}
