//! TLS and reverse proxies.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use ipnet::IpNet;

#[derive(Debug, Clone, Args)]
pub struct EdgeArgs {
    /// Serve HTTPS with --ssl-cert, or with a generated self-signed certificate.
    #[arg(long, env = "SIMPLETUNER_SSL", value_parser = BoolishValueParser::new())]
    pub ssl: bool,
    /// Certificate chain (PEM), reloaded on change.
    #[arg(long, env = "SIMPLETUNER_SSL_CERT", value_name = "FILE")]
    pub ssl_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    #[arg(long, env = "SIMPLETUNER_SSL_KEY", value_name = "FILE")]
    pub ssl_key: Option<PathBuf>,
    /// Trust X-Forwarded-For and X-Forwarded-Proto of these proxies (networks or addresses).
    #[arg(long, env = "SIMPLETUNER_TRUSTED_PROXIES", value_name = "CIDR", value_delimiter = ',', value_parser = parse_network)]
    pub trusted_proxies: Vec<IpNet>,
}

/// Parses `10.0.0.0/8`, or a single address.
fn parse_network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let single = || text.parse().map(|host: IpAddr| IpNet::from(host));
    text.parse().or_else(|_| single()).map_err(|_| "write a network like 10.0.0.0/8 or an address like ::1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        edge: EdgeArgs,
    }

    fn proxies(text: &str) -> Option<Vec<String>> {
        let parsed = Cli::try_parse_from(["server", "--trusted-proxies", text]).ok()?;
        Some(parsed.edge.trusted_proxies.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn proxies_are_networks_or_addresses() {
        let expected = ["10.0.0.0/8", "192.0.2.7/32", "::1/128", "fd00::/8"].map(str::to_owned).to_vec();
        assert_eq!(proxies("10.0.0.0/8,192.0.2.7, ::1,fd00::/8"), Some(expected));
        for text in ["", "10.0.0.0/33", "proxy.example", "*", "10.0.0.0/8;::1"] {
            assert_eq!(proxies(text), None, "{text:?}");
        }
    }
}
