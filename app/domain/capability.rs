//! What a worker can run on: its GPUs, and the facts about its host.

use super::labels::Labels;

/// One GPU as the rules see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Stable id; GPUs are granted by it.
    pub uuid: String,
    /// Model.
    pub name: String,
    /// Memory in GB; none where the part does not say.
    pub vram_gb: Option<f64>,
}

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
    /// Which work directory the agent uses: tells two hosts with one token apart. Older agents say none.
    pub install_id: Option<String>,
    /// Whether the agent verifies the orchestrator's certificate. Older agents say nothing.
    pub tls_verify: Option<bool>,
    /// How many jobs it takes at once; at least 1. One alone gets the whole host.
    pub max_jobs: u32,
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
            install_id: None,
            tls_verify: None,
            max_jobs: 1,
        }
    }
}

impl Capability {
    /// Whether its agent is an older one, which speaks no version of the contract and reads few answers.
    pub const fn is_older(&self) -> bool {
        self.protocol.is_none()
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
