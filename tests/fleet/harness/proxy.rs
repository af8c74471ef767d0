//! A proxy of Debian's in front of a server, with the very block that `docs/OPERATIONS.md` gives for it.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::process::Command;

use super::{Fleet, Program, repository, until};

/// Where the blocks have the certificate, the port of the proxy, and the server.
const CERTIFICATES: &str = "/etc/ssl/orchestrator";
const SERVER: &str = "127.0.0.1:8001";
/// From where people come here: not from where the proxy is.
pub const VISITOR: &str = "127.0.0.2";

/// Which one.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Nginx,
    Haproxy,
    Apache,
}

impl Kind {
    /// The language of its block, and the package.
    fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Apache => "apache",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Nginx => "/usr/sbin/nginx",
            Self::Haproxy => "/usr/sbin/haproxy",
            Self::Apache => "/usr/sbin/apache2",
        }
    }

    /// Where its block says that it listens, and which part of that is the address.
    fn listens(self) -> (&'static str, &'static str) {
        match self {
            Self::Nginx => ("listen 443 ", "443"),
            Self::Haproxy => ("bind :443 ", ":443"),
            Self::Apache => ("<VirtualHost *:443>", "*:443"),
        }
    }

    /// As one process that stays, and ends with its test.
    fn command(self, file: &Path) -> Command {
        let mut command = Command::new(self.program());
        match self {
            Self::Nginx => command.arg("-c").arg(file),
            Self::Haproxy => command.args(["-db", "-f"]).arg(file),
            Self::Apache => command.args(["-X", "-f"]).arg(file),
        };
        command
    }

    /// What a distribution has around the block.
    fn around(self, block: &str, dir: &Path, port: u16) -> String {
        let dir = dir.display();
        match self {
            Self::Nginx => {
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|of| format!("{of}_temp_path {dir}/{of};"))
                    .join("\n");
                format!(
                    "daemon off;\nmaster_process off;\npid {dir}/pid;\nerror_log stderr;\nevents {{}}\n\
                     http {{\naccess_log off;\n{temporary}\n{block}}}\n"
                )
            }
            Self::Haproxy => block.to_owned(),
            Self::Apache => {
                let modules = ["mpm_event", "authz_core", "ssl", "proxy", "proxy_http", "headers"]
                    .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so"))
                    .join("\n");
                format!(
                    "{modules}\nServerName localhost\nDefaultRuntimeDir {dir}\nPidFile {dir}/pid\nErrorLog /dev/stderr\n\
                     User www-data\nGroup www-data\nListen 127.0.0.1:{port}\n{block}"
                )
            }
        }
    }
}

/// See the module.
pub struct Proxy {
    _program: Program,
    port: u16,
    dir: PathBuf,
}

impl Proxy {
    /// Starts it; answers once it passes on.
    pub async fn before(fleet: &Fleet, kind: Kind) -> Self {
        let there = Path::new(kind.program()).exists();
        assert!(there, "{} is missing: `scripts/setup browser` installs it", kind.program());
        let dir = fleet.path().join(kind.name());
        fs::create_dir(&dir).expect("a directory");
        certify(&dir);
        let port = free_port();
        let file = dir.join("proxy.conf");
        fs::write(&file, kind.around(&block(kind, &dir, port, fleet.port()), &dir, port)).expect("a file");
        let log = fleet.path().join(format!("{}.log", kind.name()));
        let proxy = Self { _program: Program::start(kind.command(&file), log), port, dir };
        until("the proxy to pass on", async || proxy.visit(&["--fail", "/healthz"]).await.0.then_some(())).await;
        proxy
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The certificate of the authority that vouches for it.
    pub fn authority(&self) -> PathBuf {
        self.dir.join("authority.pem")
    }

    /// Whether a visitor is answered, and what. The last argument is a path.
    pub async fn visit(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.curl(arguments).output().await.expect("curl");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A visitor who stays, and whose log is what has come.
    pub fn listen(&self, arguments: &[&str], log: PathBuf) -> Program {
        Program::start(self.curl(&[&["--no-buffer"], arguments].concat()), log)
    }

    fn curl(&self, arguments: &[&str]) -> Command {
        let (path, options) = arguments.split_last().expect("a path");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--interface", VISITOR, "--cacert"]).arg(self.authority());
        curl.args(options).arg(format!("{}{path}", self.url()));
        curl
    }
}

/// The block of the documentation, with this test's port, server and certificates.
fn block(kind: Kind, dir: &Path, port: u16, server: u16) -> String {
    let guide = fs::read_to_string(repository("docs/OPERATIONS.md")).expect("the guide");
    let fence = format!("```{}\n", kind.name());
    let block = guide.split_once(&fence).and_then(|(_, rest)| rest.split_once("```")).map(|(block, _)| block);
    let block = block.unwrap_or_else(|| panic!("docs/OPERATIONS.md has no block in {}", kind.name()));
    let (listens, address) = kind.listens();
    [
        (listens, listens.replace(address, &format!("127.0.0.1:{port}"))),
        (SERVER, format!("127.0.0.1:{server}")),
        (CERTIFICATES, dir.display().to_string()),
    ]
    .iter()
    .fold(block.to_owned(), |block, (text, ours)| {
        assert!(block.contains(text), "the block in {} has no {text:?}", kind.name());
        block.replace(text, ours)
    })
}

/// An authority, and a certificate of it for this machine, as the files that the blocks name.
fn certify(dir: &Path) {
    let (authority_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let mut authority = CertificateParams::new(Vec::new()).expect("an authority");
    authority.distinguished_name.push(DnType::CommonName, "authority of the tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).expect("a certificate");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
    let own = params.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).expect("a certificate");
    for (name, text) in [
        ("authority.pem", root.pem()),
        ("chain.pem", own.pem()),
        ("key.pem", key.serialize_pem()),
        ("chain-and-key.pem", own.pem() + &key.serialize_pem()),
    ] {
        fs::write(dir.join(name), text).expect("a file");
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
