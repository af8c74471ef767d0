//! A reverse proxy of Debian in front of a server, with the configuration block in `docs/OPERATIONS.md`.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::process::Command;

use super::{Program, TestFleet, repository, wait_until};

/// The paths, ports and addresses in these blocks.
const CERTIFICATES_DIR: &str = "/etc/ssl/orchestrator";
const DOCUMENTED_SERVER: &str = "127.0.0.1:8001";
/// The address of clients, which differs from the proxy's.
pub const CLIENT_ADDRESS: &str = "127.0.0.2";

/// The kind of proxy.
#[derive(Debug, Clone, Copy)]
pub enum ProxyKind {
    Nginx,
    Haproxy,
    Apache,
}

impl ProxyKind {
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

    /// Returns the listen directive of its block, and the address in it.
    fn listen_directive(self) -> (&'static str, &'static str) {
        match self {
            Self::Nginx => ("listen 443 ", "443"),
            Self::Haproxy => ("bind :443 ", ":443"),
            Self::Apache => ("<VirtualHost *:443>", "*:443"),
        }
    }

    /// The command as a foreground process that ends with its test.
    fn command(self, file: &Path) -> Command {
        let mut command = Command::new(self.program());
        match self {
            Self::Nginx => command.arg("-c").arg(file),
            Self::Haproxy => command.args(["-db", "-f"]).arg(file),
            Self::Apache => command.args(["-X", "-f"]).arg(file),
        };
        command
    }

    /// Adds what a distribution has around the block.
    fn full_config(self, block: &str, dir: &Path, port: u16) -> String {
        let dir = dir.display();
        match self {
            Self::Nginx => {
                let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|module| format!("{module}_temp_path {dir}/{module};"))
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

pub struct ReverseProxy {
    _program: Program,
    port: u16,
    dir: PathBuf,
}

impl ReverseProxy {
    /// Starts it and waits until it forwards requests.
    pub async fn start(fleet: &TestFleet, kind: ProxyKind) -> Self {
        let is_installed = Path::new(kind.program()).exists();
        assert!(is_installed, "{} is missing: `scripts/setup browser` installs it", kind.program());
        let dir = fleet.path().join(kind.name());
        fs::create_dir(&dir).expect("a directory");
        create_certificates(&dir);
        let port = free_port();
        let file = dir.join("proxy.conf");
        fs::write(&file, kind.full_config(&proxy_config(kind, &dir, port, fleet.port()), &dir, port)).expect("a file");
        let log = fleet.path().join(format!("{}.log", kind.name()));
        let proxy = Self { _program: Program::start(kind.command(&file), log), port, dir };
        wait_until("the proxy to forward requests", async || {
            proxy.request(&["--fail", "/healthz"]).await.0.then_some(())
        })
        .await;
        proxy
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Returns the certificate of the authority that signed its certificate.
    pub fn ca_certificate(&self) -> PathBuf {
        self.dir.join("authority.pem")
    }

    /// Sends a request; returns whether it succeeded, and the output. The last argument is a path.
    pub async fn request(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.curl(arguments).output().await.expect("curl");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Sends a long-running request, with its output in the log.
    pub fn request_in_background(&self, arguments: &[&str], log: PathBuf) -> Program {
        Program::start(self.curl(&[&["--no-buffer"], arguments].concat()), log)
    }

    fn curl(&self, arguments: &[&str]) -> Command {
        let (path, options) = arguments.split_last().expect("a path");
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--interface", CLIENT_ADDRESS, "--cacert"]).arg(self.ca_certificate());
        curl.args(options).arg(format!("{}{path}", self.url()));
        curl
    }
}

/// Returns the documented block with this test's port, server and certificates.
fn proxy_config(kind: ProxyKind, dir: &Path, port: u16, server: u16) -> String {
    let guide = fs::read_to_string(repository("docs/OPERATIONS.md")).expect("the guide");
    let fence = format!("```{}\n", kind.name());
    let block = guide.split_once(&fence).and_then(|(_, rest)| rest.split_once("```")).map(|(block, _)| block);
    let block = block.unwrap_or_else(|| panic!("docs/OPERATIONS.md has no block in {}", kind.name()));
    let (directive, address) = kind.listen_directive();
    [
        (directive, directive.replace(address, &format!("127.0.0.1:{port}"))),
        (DOCUMENTED_SERVER, format!("127.0.0.1:{server}")),
        (CERTIFICATES_DIR, dir.display().to_string()),
    ]
    .iter()
    .fold(block.to_owned(), |block, (text, replacement)| {
        assert!(block.contains(text), "the block in {} has no {text:?}", kind.name());
        block.replace(text, replacement)
    })
}

/// Creates an authority and a certificate for this host, in the files that the blocks name.
fn create_certificates(dir: &Path) {
    let (authority_key, key) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let mut authority = CertificateParams::new(Vec::new()).expect("an authority");
    authority.distinguished_name.push(DnType::CommonName, "authority of the tests");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).expect("a certificate");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("names");
    let certificate = params.signed_by(&key, &Issuer::from_params(&authority, &authority_key)).expect("a certificate");
    for (name, text) in [
        ("authority.pem", root.pem()),
        ("chain.pem", certificate.pem()),
        ("key.pem", key.serialize_pem()),
        ("chain-and-key.pem", certificate.pem() + &key.serialize_pem()),
    ] {
        fs::write(dir.join(name), text).expect("a file");
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}
