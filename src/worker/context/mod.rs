//! What the agent's tasks share.

mod shared_status;

use std::sync::atomic::AtomicBool;

use app::domain::sandbox::Sandbox;

pub use self::shared_status::{JobProgress, SharedStatus};
use crate::worker::api::{Api, ReconnectSignal};
use crate::worker::config::AgentConfig;
use crate::worker::disk_space::DiskSpaceMonitor;
use crate::worker::gpu::{GpuMonitor, Hardware};
use crate::worker::host_health::HostHealth;
use crate::worker::limits::HostLimits;
use crate::worker::sandbox::host::SandboxSupport;
use crate::worker::supervisor_pool::SupervisorPool;

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
    /// A host of a simulation, with these GPUs.
    #[cfg(feature = "simulation")]
    pub fn simulated(config: AgentConfig, api: Api, hardware: Hardware, boot_id: String, install_id: String) -> Self {
        use app::domain::sandbox::SandboxLevel;

        Self {
            reconnect_signal: ReconnectSignal::default(),
            gpus: GpuMonitor::unpolled(hardware.clone(), &config),
            hardware,
            disk_space: DiskSpaceMonitor::always_free(),
            host_health: HostHealth::unchecked(&config.trainer),
            sandbox: SandboxSupport {
                min_level: SandboxLevel::None,
                max_level: SandboxLevel::Full,
                limit_reason: None,
                isolates_users: true,
                isolates_users_at_files: true,
                program_files: Vec::new(),
            },
            limits: HostLimits::none(),
            supervisors: SupervisorPool::new(0, config.work_dir.clone(), None),
            api,
            config,
            boot_id,
            install_id,
            token_rejected: AtomicBool::new(false),
            status: SharedStatus::default(),
        }
    }

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
