//! What the agent's tasks share.

mod shared_status;

use std::sync::atomic::AtomicBool;

use app::domain::sandbox::Sandbox;

pub use self::shared_status::{JobProgress, SharedStatus};
use crate::api::{Api, ReconnectSignal};
use crate::config::AgentConfig;
use crate::disk_space::DiskSpaceMonitor;
use crate::gpu::{GpuMonitor, Hardware};
use crate::host_health::HostHealth;
use crate::limits::HostLimits;
use crate::sandbox::host::SandboxSupport;
use crate::supervisor_pool::SupervisorPool;

#[derive(Debug)]
pub struct AgentContext {
    pub config: AgentConfig,
    pub api: Api,
    /// Wakes retries when the orchestrator can be reached again.
    pub reconnect_signal: ReconnectSignal,
    pub hardware: Hardware,
    pub gpus: GpuMonitor,
    pub disk_space: DiskSpaceMonitor,
    pub host_health: HostHealth,
    pub sandbox: SandboxSupport,
    pub limits: HostLimits,
    pub supervisors: SupervisorPool,
    /// Random per start of the agent.
    pub boot_id: String,
    /// Random per work directory.
    pub install_id: String,
    /// Whether the worker's token was rejected, so that only job tokens are valid.
    pub token_rejected: AtomicBool,
    pub status: SharedStatus,
}

impl AgentContext {
    /// Why this host accepts no new jobs, if so.
    pub fn unhealthy_reason(&self) -> Option<String> {
        self.sandbox
            .unhealthy_reason()
            .or_else(|| self.host_health.unhealthy_reason())
            .or_else(|| self.disk_space.unhealthy_reason())
    }

    /// The sandbox and limits of jobs on this host.
    pub fn sandbox_report(&self) -> Sandbox {
        Sandbox { limits: Some(self.limits.to_report()), ..self.sandbox.to_report() }
    }
}
