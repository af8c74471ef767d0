//! Which of what is in the way of a job on a worker stays there.

use crate::protocol::explain::BlockerCode;

/// Whether it stays in the way however long one waits: worker and job do not match.
pub(crate) fn is_lasting(code: BlockerCode) -> bool {
    match code {
        BlockerCode::WrongTarget
        | BlockerCode::Label
        | BlockerCode::Accelerator
        | BlockerCode::GpuCount
        | BlockerCode::Vram
        | BlockerCode::Sandbox
        | BlockerCode::Spent
        | BlockerCode::CannotStop
        | BlockerCode::LacksFiles => true,
        BlockerCode::GpusWithheld
        | BlockerCode::LacksPaths
        | BlockerCode::Draining
        | BlockerCode::Unfit
        | BlockerCode::Offline
        | BlockerCode::Connecting
        | BlockerCode::Astray
        | BlockerCode::Finishing
        | BlockerCode::Occupied
        | BlockerCode::GpusBusy
        | BlockerCode::Reserved => false,
    }
}
