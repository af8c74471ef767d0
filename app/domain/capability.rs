//! What a worker can run on: its GPUs, and the facts about its host.

use super::gpu::Gpu;
use super::labels::Labels;
use super::sandbox::Sandbox;

/// What an agent reported when it registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// Every GPU; empty on a host without.
    pub gpus: Vec<Gpu>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
    /// The host's name.
    pub hostname: Option<String>,
    /// Labels the agent reported.
    pub labels: Labels,
    /// The agent's version.
    pub agent_version: Option<String>,
    /// The contract's version it speaks; none for older agents.
    pub protocol: Option<u32>,
    /// The GPU driver's version.
    pub driver: Option<String>,
    /// The newest CUDA (or `ROCm`) version that the driver runs.
    pub runtime: Option<String>,
    /// Which work directory the agent uses: tells two hosts with one token apart. Older agents say none.
    pub install_id: Option<String>,
    /// Whether the agent verifies the orchestrator's certificate. Older agents say nothing.
    pub tls_verify: Option<bool>,
    /// How many jobs it takes at once; at least 1. One alone gets the whole host.
    pub max_jobs: u32,
    /// Why it takes no new job now, in its agent's words. What it has it keeps.
    pub unfit: Option<String>,
    /// How it confines trainers. Older agents say nothing, and confine none.
    pub sandbox: Option<Sandbox>,
    /// The names of the directories that it gives to jobs. Some agents do not say.
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
            unfit: None,
            sandbox: None,
            paths: None,
        }
    }
}

impl Capability {
    /// Whether its agent is an older one, which speaks no version of the contract and reads few answers.
    pub const fn is_older(&self) -> bool {
        self.protocol.is_none()
    }

    /// Whether any job can be given what it takes: a GPU, where there are some, on a host that is fit.
    pub fn gives(&self) -> bool {
        self.unfit.is_none() && (self.gpus.is_empty() || self.gpus.iter().any(|gpu| gpu.withheld.is_none()))
    }

    /// How many of its GPUs their agent withholds.
    pub fn withheld(&self) -> usize {
        self.gpus.iter().filter(|gpu| gpu.withheld.is_some()).count()
    }

    /// A fact that can be matched like a label.
    pub fn fact(&self, key: &str) -> Option<&str> {
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
    fn facts_are_matched_like_labels() {
        let host = Capability {
            gpus: gpus(1, &[80, 24]),
            accelerator: "cuda".to_owned(),
            hostname: Some("rack-7".to_owned()),
            ..Capability::default()
        };
        let facts =
            [("accelerator_type", Some("cuda")), ("gpu_name", Some("A80")), ("hostname", Some("rack-7")), ("x", None)];
        for (key, value) in facts {
            assert_eq!(host.fact(key), value, "{key}");
        }
        assert_eq!(Capability::default().fact("gpu_name"), None);
    }
}
