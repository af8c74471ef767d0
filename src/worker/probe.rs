//! `simpletuner-worker probe`: what this machine can run, for an orchestrator that considers running jobs itself.

use app::protocol::agents::ProbeReport;

use crate::worker::config::GpuOverrides;
use crate::worker::exit::FatalError;
use crate::worker::gpu;
use crate::worker::trainer_program::can_start;

/// Prints a [`ProbeReport`] as JSON.
///
/// # Errors
/// If the trainer's command is invalid.
pub fn main(trainer: &str) -> Result<u8, FatalError> {
    let words = shell_words::split(trainer).map_err(|error| FatalError::usage(format!("--trainer: {error}")))?;
    let hardware = gpu::detect(&GpuOverrides::default(), "local");
    let probe = ProbeReport {
        gpus: u32::try_from(hardware.gpus.len()).unwrap_or(u32::MAX),
        accelerator: hardware.accelerator,
        trainer: can_start(&words),
    };
    println!("{}", serde_json::to_string(&probe).expect("plain fields"));
    Ok(0)
}
