//! The displayed status of a worker.

use super::ConnectionState;

/// The displayed status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// Registered, without a stream.
    Connecting,
    /// Connected, without jobs.
    Idle,
    /// Connected, with jobs.
    Busy,
    /// Accepts no new jobs.
    Draining,
    /// Not connected, or never connected.
    Offline,
}

/// The connection, without the reported capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// Created; its agent has never connected.
    NeverConnected,
    /// Registered, without a stream.
    Connecting,
    /// Connected by a stream.
    Online,
    /// Disconnected, or silent for too long.
    Offline,
}

impl ConnectionState {
    /// Returns whether its stream ended and the agent is expected to reconnect.
    pub const fn is_reconnecting(&self) -> bool {
        matches!(self, Self::Connecting { connection_lost: true, .. })
    }
}

impl ConnectionStatus {
    /// Converts a connection state.
    pub const fn from_state(connection: &ConnectionState) -> Self {
        match connection {
            ConnectionState::NeverConnected => Self::NeverConnected,
            ConnectionState::Connecting { .. } => Self::Connecting,
            ConnectionState::Online { .. } => Self::Online,
            ConnectionState::Offline { .. } => Self::Offline,
        }
    }

    /// Returns the status to show for a worker that is draining or busy.
    pub const fn worker_state(self, is_draining: bool, is_busy: bool) -> WorkerState {
        match self {
            Self::NeverConnected | Self::Offline => WorkerState::Offline,
            Self::Connecting | Self::Online if is_draining => WorkerState::Draining,
            Self::Connecting | Self::Online if is_busy => WorkerState::Busy,
            Self::Connecting => WorkerState::Connecting,
            Self::Online => WorkerState::Idle,
        }
    }
}
