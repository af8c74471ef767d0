//! Asks the provider's metadata service again and again; never through a proxy.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::remote::Trust;
use reqwest::{Client, RequestBuilder, Url};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{HostEnd, Notice, Source, judge};
use crate::api::{self, body};
use crate::clock;
use crate::exit::Fatal;
use crate::session::Context;
use crate::state::Input;

/// An answer of a metadata service has a few lines; no more of it is read, in bytes.
const LARGEST_ANSWER: usize = 1 << 20;
/// As often as the providers ask for.
const PERIOD: Duration = Duration::from_secs(5);
const PERIOD_OF_FILES: Duration = Duration::from_secs(1);
/// The service is on the host itself, or next to it.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where all of them are.
const LINK_LOCAL: &str = "http://169.254.169.254/";
const AWS_TOKEN: &str = "X-aws-ec2-metadata-token";
/// A token of AWS's service lasts so long, in seconds.
const AWS_TOKEN_SECONDS: u32 = 21_600;

/// Begins to listen, if somebody is to be listened to.
///
/// # Errors
/// If that is impossible here.
pub fn start(context: &Arc<Context>, inbox: mpsc::Sender<Input>) -> Result<(), Fatal> {
    let ops = &context.config.ops;
    let Some(source) = ops.spot.clone() else { return Ok(()) };
    let Some(source) = resolved(source) else {
        tracing::warn!(
            "--spot-notice auto: this host says of no provider that it belongs to it; nobody will warn of its end"
        );
        return Ok(());
    };
    let base = match &ops.spot_metadata_url {
        Some(url) => url.clone(),
        None => Url::parse(LINK_LOCAL).map_err(|error| Fatal::error(error.to_string()))?,
    };
    let client = api::client(&Trust::System, &base)?.no_proxy().timeout(PATIENCE).build();
    let client = client.map_err(|error| Fatal::error(format!("--spot-notice: {error}")))?;
    let service = Service { client, base, source, token: None, own: None };
    let context = Arc::clone(context);
    tokio::task::spawn_local(async move {
        let name = service.source.name();
        let notice = service.wait().await;
        let sentence = format!("the host is being taken away (spot notice of {name})");
        let left = notice.left.map(|left| format!(" in {} s", left.as_secs())).unwrap_or_default();
        tracing::warn!("{sentence}{left}: stopping what runs, so that it goes on elsewhere");
        context.shared.ends(HostEnd { sentence, at: notice.left.map(|left| Instant::now() + left) });
        // The loop has ended: then the process ends.
        let _ = inbox.send(Input::HostEnds).await;
    });
    Ok(())
}

fn resolved(source: Source) -> Option<Source> {
    if source != Source::Auto {
        return Some(source);
    }
    let firmware = |name: &str| std::fs::read_to_string(Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default();
    let (vendor, product, asset) = (firmware("sys_vendor"), firmware("product_name"), firmware("chassis_asset_tag"));
    Source::by_firmware(vendor.trim(), product.trim(), asset.trim())
}

struct Service {
    client: Client,
    base: Url,
    source: Source,
    /// AWS's, that opens the rest.
    token: Option<String>,
    /// This machine's name in Azure.
    own: Option<String>,
}

impl Service {
    async fn wait(mut self) -> Notice {
        let mut told = false;
        loop {
            match self.ask().await {
                Ok(Some(notice)) => return notice,
                Ok(None) => told = false,
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!("--spot-notice {}: nobody answers ({error}); asking again", self.source.name());
                    }
                }
            }
            let is_file = matches!(self.source, Source::File(_));
            tokio::time::sleep(if is_file { PERIOD_OF_FILES } else { PERIOD }).await;
        }
    }

    async fn ask(&mut self) -> Result<Option<Notice>, String> {
        match &self.source {
            Source::File(path) => Ok(path.exists().then_some(Notice { left: None })),
            Source::Aws => self.ask_aws().await,
            Source::Gcp => {
                let get = self.get("computeMetadata/v1/instance/preempted")?.header("Metadata-Flavor", "Google");
                let (status, body) = answer(get).await?;
                Ok(judge::gcp(status, &body))
            }
            Source::Azure => self.ask_azure().await,
            // It was resolved before.
            Source::Auto => Ok(None),
        }
    }

    async fn ask_aws(&mut self) -> Result<Option<Notice>, String> {
        if self.token.is_none() {
            let url = self.url("latest/api/token")?;
            let put = self.client.put(url).header("X-aws-ec2-metadata-token-ttl-seconds", AWS_TOKEN_SECONDS);
            let (status, body) = answer(put).await?;
            if status != 200 {
                return Err(format!("it gives no token: {status}"));
            }
            self.token = Some(body);
        }
        let token = self.token.as_deref().unwrap_or_default();
        let get = self.get("latest/meta-data/spot/instance-action")?.header(AWS_TOKEN, token);
        let (status, body) = answer(get).await?;
        if status == 401 {
            // It has ended.
            self.token = None;
        }
        Ok(judge::aws(status, &body, clock::now()))
    }

    async fn ask_azure(&mut self) -> Result<Option<Notice>, String> {
        const NAME: &str = "metadata/instance/compute/name?api-version=2021-02-01&format=text";
        const EVENTS: &str = "metadata/scheduledevents?api-version=2020-07-01";
        if self.own.is_none() {
            let (status, name) = answer(self.get(NAME)?.header("Metadata", "true")).await?;
            self.own = (status == 200 && !name.is_empty()).then_some(name);
        }
        let (status, body) = answer(self.get(EVENTS)?.header("Metadata", "true")).await?;
        Ok(judge::azure(status, &body, self.own.as_deref(), clock::now()))
    }

    fn url(&self, path: &str) -> Result<Url, String> {
        self.base.join(path).map_err(|error| error.to_string())
    }

    fn get(&self, path: &str) -> Result<RequestBuilder, String> {
        Ok(self.client.get(self.url(path)?))
    }
}

async fn answer(request: RequestBuilder) -> Result<(u16, String), String> {
    let words = |error: reqwest::Error| app::remote::innermost(&error);
    let response = request.send().await.map_err(words)?;
    let status = response.status().as_u16();
    let body = body::read(response, LARGEST_ANSWER).await.map_err(|error| error.to_string())?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
