//! What an agent says of its host, checked.

use app::domain::capability::Capability;
use app::domain::config_paths::is_name;
use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::sandbox::{JobLimits, Sandbox};
use app::domain::text::{acts, is_plain};
use app::protocol::worker::Register;

use super::fitness;
use super::gpus::registered;
use super::refusal::{Invalid, Refusal};

/// The most GPUs that one host may report, and the most jobs that it may take.
pub const MAX_GPUS: u32 = 64;
/// The most directories that a worker gives to jobs.
const MAX_PATHS: usize = 100;
/// The longest text in a registration, in characters.
const MAX_TEXT: usize = 256;

/// What was reported, from whichever of its spellings.
pub fn capability(worker: &WorkerId, register: &Register) -> Result<Capability, Refusal> {
    register.labels.validate()?;
    let info = register.gpu_info.clone().unwrap_or_default();
    let accelerator = register.accelerator_type.clone().or(info.accelerator.clone());
    let name = register.gpu_name.clone().or(info.name.clone());
    let count = register.gpu_count.unwrap_or(info.count);
    let cpu_only = accelerator.as_deref().is_some_and(|word| word == "cpu");
    let gpus: Vec<Gpu> = if register.gpus.is_empty() && !cpu_only {
        let vram_gb = register.gpu_vram_gb.or(info.vram_gb);
        let name = name.unwrap_or_else(|| "GPU".to_owned());
        // Older agents report no ids: these are stable as long as the worker is.
        let uuid = |index| format!("{worker}/gpu{index}");
        let gpu = |index| Gpu { index, uuid: uuid(index), name: name.clone(), vram_gb, ..Gpu::default() };
        (0..count.min(MAX_GPUS + 1)).map(gpu).collect()
    } else {
        register.gpus.iter().map(registered).collect()
    };
    if gpus.len() > MAX_GPUS as usize {
        return Err(Invalid::TooMuch { what: "GPUs", limit: MAX_GPUS.into() }.into());
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
        unfit: fitness::said(register.unfit.as_deref()),
        sandbox: register.sandbox.as_ref().map(sandbox),
        paths: register.paths.clone(),
        gpus,
    };
    if capability.paths.as_ref().is_some_and(|paths| paths.len() > MAX_PATHS || !paths.iter().all(|path| is_name(path)))
    {
        return Err(Invalid::TooMuch { what: "paths", limit: MAX_PATHS as u64 }.into());
    }
    check_texts(&capability)?;
    Ok(capability)
}

/// With the agent's words as short and plain as every other's.
fn sandbox(reported: &Sandbox) -> Sandbox {
    Sandbox {
        why_not_more: fitness::said(reported.why_not_more.as_deref()),
        least: reported.least,
        most: reported.most,
        limits: reported
            .limits
            .as_ref()
            .map(|limits| JobLimits { why_not: fitness::said(limits.why_not.as_deref()), ..limits.clone() }),
    }
}

fn max_jobs(register: &Register) -> Result<u32, Refusal> {
    let number = register.max_jobs.unwrap_or(1);
    let usable = (1..=MAX_GPUS).contains(&number);
    if usable { Ok(number) } else { Err(Invalid::Range { field: "max_jobs", allowed: "1 to 64" }.into()) }
}

fn check_texts(capability: &Capability) -> Result<(), Refusal> {
    let gpus = capability.gpus.iter().flat_map(|gpu| [&gpu.uuid, &gpu.name].into_iter().chain(&gpu.part_of));
    let versions = [&capability.agent_version, &capability.driver, &capability.runtime];
    let others = versions.into_iter().chain([&capability.hostname, &capability.install_id]);
    let texts = gpus.chain(others.flatten()).chain([&capability.accelerator]);
    for text in texts {
        if !is_plain(text, MAX_TEXT) {
            return Err(Invalid::Name(text.chars().take(40).filter(|c| !acts(*c)).collect()).into());
        }
    }
    Ok(())
}
