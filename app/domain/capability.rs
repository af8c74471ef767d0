//! The capability of a worker: its GPUs, and facts about its host.

use super::gpu::Gpu;
use super::labels::Labels;
use super::sandbox::Sandbox;

/// What an agent reported at its registration.
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// All GPUs; empty on a host without GPUs.
    pub gpus: Vec<Gpu>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
    /// The host's name.
    pub hostname: Option<String>,
    /// Labels that the agent reported.
    pub labels: Labels,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The protocol version of the agent; none for older agents.
    pub protocol: Option<u32>,
    /// The GPU driver's version.
    pub driver: Option<String>,
    /// The newest CUDA (or `ROCm`) version that the driver supports.
    pub runtime: Option<String>,
    /// Identifies the agent's work directory, and so distinguishes two hosts with one token. Not sent by older agents.
    pub install_id: Option<String>,
    /// Whether the agent verifies the orchestrator's certificate. Not sent by older agents.
    pub tls_verify: Option<bool>,
    /// Maximum number of concurrent jobs, at least 1. With 1, a job gets the whole host.
    pub max_jobs: u32,
    /// Why the host cannot run new jobs now, as reported by the agent. Running jobs continue.
    pub unhealthy_reason: Option<String>,
    /// The host's sandbox. Older agents do not report it and have none.
    pub sandbox: Option<Sandbox>,
    /// The names of the directories that it provides to jobs. Not sent by some agents.
    pub paths: Option<Vec<String>>,
}

impl Default for Capability {
    fn default() -> Self {
        Self {
            gpus: Vec::new(),
            accelerator: String::new(),
            hostname: None,
            labels: Labels::default(),
            agent_version: None,
            protocol: None,
            driver: None,
            runtime: None,
            install_id: None,
            tls_verify: None,
            max_jobs: 1,
            unhealthy_reason: None,
            sandbox: None,
            paths: None,
        }
    }
}

impl Capability {
    /// Returns whether the agent runs on another installation; false if either is unknown.
    pub fn is_other_installation(&self, other: &Self) -> bool {
        self.install_id.is_some() && other.install_id.is_some() && self.install_id != other.install_id
    }

    /// Returns whether the agent is an older one, which does not send a protocol version and ignores most responses.
    pub const fn is_older_agent(&self) -> bool {
        self.protocol.is_none()
    }

    /// Returns whether the host could run any job: it is healthy and, if it has GPUs, at least one can be used.
    pub fn can_run_jobs(&self) -> bool {
        self.unhealthy_reason.is_none()
            && (self.gpus.is_empty() || self.gpus.iter().any(|gpu| gpu.unavailable.is_none()))
    }

    /// Returns the number of GPUs that are quarantined or in use.
    pub fn unavailable_gpu_count(&self) -> usize {
        self.gpus.iter().filter(|gpu| gpu.unavailable.is_some()).count()
    }

    /// Returns a fact that can be matched like a label.
    pub fn builtin_label(&self, key: &str) -> Option<&str> {
        match key {
            "accelerator_type" => Some(self.accelerator.as_str()),
            "gpu_name" => self.gpus.first().map(|gpu| gpu.name.as_str()),
            "hostname" => self.hostname.as_deref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::gpus;

    #[test]
    fn host_facts_match_like_labels() {
        let host = Capability {
            gpus: gpus(1, &[80, 24]),
            accelerator: "cuda".to_owned(),
            hostname: Some("rack-7".to_owned()),
            ..Capability::default()
        };
        let facts =
            [("accelerator_type", Some("cuda")), ("gpu_name", Some("A80")), ("hostname", Some("rack-7")), ("x", None)];
        for (key, value) in facts {
            assert_eq!(host.builtin_label(key), value, "{key}");
        }
        assert_eq!(Capability::default().builtin_label("gpu_name"), None);
    }
}
