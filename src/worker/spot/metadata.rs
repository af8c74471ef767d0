//! Polls the provider's metadata service; never through a proxy.

use std::path::Path;
use std::time::Duration;

use app::remote::ServerTrust;
use reqwest::{Client, RequestBuilder, Url};
use tokio::time::Instant;

use super::{HostTermination, TerminationNotice, notices};
use crate::worker::api::{self, body};
use crate::worker::clock;
use crate::worker::config::{NoticeSource, ShutdownConfig};
use crate::worker::exit::FatalError;

/// Maximum that is read of a response, in bytes; responses have a few lines.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// As often as the providers recommend.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
const FILE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The service is on the host itself or close to it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The same address for all of them.
const METADATA_URL: &str = "http://169.254.169.254/";
const AWS_TOKEN_HEADER: &str = "X-aws-ec2-metadata-token";
/// Lifetime of a token of AWS's service, in seconds.
const AWS_TOKEN_SECONDS: u32 = 21_600;

/// Finds the service to poll, if a source is configured.
///
/// # Errors
/// If polling is impossible here.
pub fn find_service(config: &ShutdownConfig) -> Result<Option<MetadataService>, FatalError> {
    let Some(source) = config.spot_source.clone() else { return Ok(None) };
    let Some(source) = resolve_source(source) else {
        tracing::warn!("--spot-notice auto: this host's firmware names no known provider, so there will be no notice");
        return Ok(None);
    };
    let base = match &config.spot_metadata_url {
        Some(url) => url.clone(),
        None => Url::parse(METADATA_URL).map_err(|error| FatalError::error(error.to_string()))?,
    };
    let client =
        api::http_client_builder(&ServerTrust::SystemRoots, &base)?.no_proxy().timeout(REQUEST_TIMEOUT).build();
    let client = client.map_err(|error| FatalError::error(format!("--spot-notice: {error}")))?;
    Ok(Some(MetadataService { client, base, source, token: None, machine_name: None }))
}

fn resolve_source(source: NoticeSource) -> Option<NoticeSource> {
    if source != NoticeSource::Auto {
        return Some(source);
    }
    let firmware = |name: &str| std::fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default();
    let (vendor, product, asset) = (firmware("sys_vendor"), firmware("product_name"), firmware("chassis_asset_tag"));
    NoticeSource::from_firmware(vendor.trim(), product.trim(), asset.trim())
}

/// A provider's metadata service.
pub struct MetadataService {
    client: Client,
    base: Url,
    source: NoticeSource,
    /// Session token of AWS's service.
    token: Option<String>,
    /// This machine's name in Azure.
    machine_name: Option<String>,
}

impl MetadataService {
    /// Polls until the host is about to be terminated.
    pub async fn wait_for_termination(self) -> HostTermination {
        let name = self.source.display_name();
        let notice = self.wait_for_notice().await;
        let sentence = format!("the host is being terminated (spot notice of {name})");
        let time_left = notice.time_left.map(|time_left| format!(" in {} s", time_left.as_secs())).unwrap_or_default();
        tracing::warn!("{sentence}{time_left}: stopping jobs, so that they run elsewhere");
        HostTermination { sentence, at: notice.time_left.map(|time_left| Instant::now() + time_left) }
    }

    async fn wait_for_notice(mut self) -> TerminationNotice {
        let mut is_warned = false;
        loop {
            match self.fetch_notice().await {
                Ok(Some(notice)) => return notice,
                Ok(None) => is_warned = false,
                Err(error) => {
                    if !std::mem::replace(&mut is_warned, true) {
                        tracing::warn!("--spot-notice {}: no response ({error}); retrying", self.source.display_name());
                    }
                }
            }
            let is_file = matches!(self.source, NoticeSource::File(_));
            tokio::time::sleep(if is_file { FILE_POLL_INTERVAL } else { POLL_INTERVAL }).await;
        }
    }

    async fn fetch_notice(&mut self) -> Result<Option<TerminationNotice>, String> {
        match &self.source {
            NoticeSource::File(path) => Ok(path.exists().then_some(TerminationNotice { time_left: None })),
            NoticeSource::Aws => self.fetch_aws_notice().await,
            NoticeSource::Gcp => {
                let get = self.get("computeMetadata/v1/instance/preempted")?.header("Metadata-Flavor", "Google");
                let (status, body) = send_request(get).await?;
                Ok(notices::parse_gcp(status, &body))
            }
            NoticeSource::Azure => self.fetch_azure_notice().await,
            // Resolved before.
            NoticeSource::Auto => Ok(None),
        }
    }

    async fn fetch_aws_notice(&mut self) -> Result<Option<TerminationNotice>, String> {
        if self.token.is_none() {
            let url = self.url("latest/api/token")?;
            let put = self.client.put(url).header("X-aws-ec2-metadata-token-ttl-seconds", AWS_TOKEN_SECONDS);
            let (status, body) = send_request(put).await?;
            if status != 200 {
                return Err(format!("no token: {status}"));
            }
            self.token = Some(body);
        }
        let token = self.token.as_deref().unwrap_or_default();
        let get = self.get("latest/meta-data/spot/instance-action")?.header(AWS_TOKEN_HEADER, token);
        let (status, body) = send_request(get).await?;
        if status == 401 {
            // It has expired.
            self.token = None;
        }
        Ok(notices::parse_aws(status, &body, clock::now()))
    }

    async fn fetch_azure_notice(&mut self) -> Result<Option<TerminationNotice>, String> {
        const NAME: &str = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
        const EVENTS: &str = "metadata/scheduledevents?api-version=2020-07-01";
        if self.machine_name.is_none() {
            let (status, name) = send_request(self.get(NAME)?.header("Metadata", "true")).await?;
            self.machine_name = (status == 200 && !name.is_empty()).then_some(name);
        }
        let (status, body) = send_request(self.get(EVENTS)?.header("Metadata", "true")).await?;
        Ok(notices::parse_azure(status, &body, self.machine_name.as_deref(), clock::now()))
    }

    fn url(&self, path: &str) -> Result<Url, String> {
        self.base.join(path).map_err(|error| error.to_string())
    }

    fn get(&self, path: &str) -> Result<RequestBuilder, String> {
        Ok(self.client.get(self.url(path)?))
    }
}

async fn send_request(request: RequestBuilder) -> Result<(u16, String), String> {
    let describe = |error: reqwest::Error| app::remote::root_cause(&error);
    let response = request.send().await.map_err(describe)?;
    let status = response.status().as_u16();
    let body = body::read_limited(response, MAX_RESPONSE_BYTES).await.map_err(|error| error.to_string())?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
