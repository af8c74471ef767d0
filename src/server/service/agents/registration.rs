//! Validation of an agent's registration.

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::capability::Capability;
use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::path_placeholders::is_placeholder_name;
use app::domain::sandbox::{JobLimits, Sandbox};
use app::domain::text::{is_control_or_invisible, is_plain};
use app::protocol::agents::RegisterRequest;

use super::host_health;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::gpus::{MAX_GPUS, gpu_from_wire};

/// The maximum number of directories that a worker offers to jobs.
const MAX_PATHS: usize = 100;
/// The maximum length of a text in a registration, in characters.
const MAX_TEXT: usize = 256;

/// Parses the reported capability, in current or older form.
pub fn parse_capability(worker: &WorkerId, register: &RegisterRequest) -> Result<Capability, ServiceError> {
    register.labels.validate()?;
    let info = register.gpu_info.clone().unwrap_or_default();
    let accelerator = register.accelerator_type.clone().or(info.accelerator.clone());
    let name = register.gpu_name.clone().or(info.name.clone());
    let count = register.gpu_count.unwrap_or(info.count);
    let cpu_only = accelerator.as_deref().is_some_and(|name| name == "cpu");
    let gpus: Vec<Gpu> = if register.gpus.is_empty() && !cpu_only {
        let vram_gb = register.gpu_vram_gb.or(info.vram_gb);
        let name = name.unwrap_or_else(|| "GPU".to_owned());
        // Older agents report no ids: these are stable as long as the worker is.
        let uuid = |index| format!("{worker}/gpu{index}");
        let gpu = |index| Gpu { index, uuid: uuid(index), name: name.clone(), vram_gb, ..Gpu::default() };
        (0..count.min(MAX_GPUS + 1)).map(gpu).collect()
    } else {
        register.gpus.iter().map(gpu_from_wire).collect()
    };
    if gpus.len() > MAX_GPUS as usize {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Gpus, limit: MAX_GPUS.into() }.into());
    }
    let accelerator = accelerator.unwrap_or_else(|| if gpus.is_empty() { "cpu" } else { "cuda" }.to_owned());
    let capability = Capability {
        accelerator,
        hostname: register.host.clone(),
        labels: register.labels.clone(),
        agent_version: register.agent_version.clone(),
        protocol: register.protocol,
        driver: info.driver,
        runtime: info.runtime,
        install_id: register.install_id.clone(),
        tls_verify: register.tls_verify,
        max_jobs: max_jobs(register)?,
        unhealthy_reason: host_health::checked_reason(register.unhealthy_reason.as_deref()),
        sandbox: register.sandbox.as_ref().map(checked_sandbox),
        paths: register.paths.clone(),
        gpus,
    };
    if capability
        .paths
        .as_ref()
        .is_some_and(|paths| paths.len() > MAX_PATHS || !paths.iter().all(|path| is_placeholder_name(path)))
    {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Paths, limit: MAX_PATHS as u64 }.into());
    }
    check_texts(&capability)?;
    Ok(capability)
}

/// Shortens and cleans the agent's texts about its sandbox.
fn checked_sandbox(reported: &Sandbox) -> Sandbox {
    Sandbox {
        why_not_more: host_health::checked_reason(reported.why_not_more.as_deref()),
        least: reported.least,
        most: reported.most,
        limits: reported.limits.as_ref().map(|limits| JobLimits {
            why_not: host_health::checked_reason(limits.why_not.as_deref()),
            ..limits.clone()
        }),
    }
}

fn max_jobs(register: &RegisterRequest) -> Result<u32, ServiceError> {
    let number = register.max_jobs.unwrap_or(1);
    let is_valid = (1..=MAX_GPUS).contains(&number);
    let allowed = AllowedValues::Number { min: 1, max: MAX_GPUS.into() };
    if is_valid { Ok(number) } else { Err(InvalidInput::OutOfRange { field: "max_jobs", allowed }.into()) }
}

fn check_texts(capability: &Capability) -> Result<(), ServiceError> {
    let gpus = capability.gpus.iter().flat_map(|gpu| [&gpu.uuid, &gpu.name].into_iter().chain(&gpu.part_of));
    let versions = [&capability.agent_version, &capability.driver, &capability.runtime];
    let others = versions.into_iter().chain([&capability.hostname, &capability.install_id]);
    let texts = gpus.chain(others.flatten()).chain([&capability.accelerator]);
    for text in texts {
        if !is_plain(text, MAX_TEXT) {
            return Err(
                InvalidInput::Name(text.chars().take(40).filter(|c| !is_control_or_invisible(*c)).collect()).into()
            );
        }
    }
    Ok(())
}
