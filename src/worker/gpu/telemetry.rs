//! Samples of the GPUs that are not delivered yet: the newest ones, until a heartbeat with them was acknowledged.

use std::collections::VecDeque;

use app::protocol::gpu::GpuTelemetry;

/// Max samples; older ones are dropped.
const MAX_SAMPLES: usize = 12;

/// The samples, numbered.
#[derive(Debug, Default)]
pub struct TelemetryBuffer {
    next: u64,
    pending: VecDeque<(u64, GpuTelemetry)>,
}

/// The samples of one heartbeat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetryBatch {
    /// Oldest first.
    pub samples: Vec<GpuTelemetry>,
    /// The number after the last one.
    end: u64,
}

impl TelemetryBuffer {
    pub fn push(&mut self, sample: GpuTelemetry) {
        self.pending.push_back((self.next, sample));
        self.next += 1;
        if self.pending.len() > MAX_SAMPLES {
            self.pending.pop_front();
        }
    }

    /// All pending samples.
    pub fn batch(&self) -> TelemetryBatch {
        TelemetryBatch { samples: self.pending.iter().map(|(_, sample)| sample.clone()).collect(), end: self.next }
    }

    /// Removes an acknowledged batch.
    pub fn acknowledge(&mut self, batch: &TelemetryBatch) {
        self.pending.retain(|(number, _)| *number >= batch.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::domain::time::Timestamp;

    #[test]
    fn newest_samples_wait_for_acknowledgement() {
        let mut telemetry = TelemetryBuffer::default();
        let times = |batch: &TelemetryBatch| batch.samples.iter().map(|sample| sample.at.0).collect::<Vec<_>>();
        for at in 0..15 {
            telemetry.push(GpuTelemetry { at: Timestamp(at), gpus: Vec::new() });
        }
        let batch = telemetry.batch();
        assert_eq!(times(&batch), (3..15).collect::<Vec<_>>());
        // Without an acknowledgement, all of them are sent again with newer ones.
        telemetry.push(GpuTelemetry { at: Timestamp(15), gpus: Vec::new() });
        assert_eq!(times(&telemetry.batch()), (4..16).collect::<Vec<_>>());
        telemetry.acknowledge(&batch);
        assert_eq!(times(&telemetry.batch()), [15]);
    }
}
