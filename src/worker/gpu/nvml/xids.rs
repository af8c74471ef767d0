//! The errors that NVIDIA's driver reports by number, as they come. A thread of its own waits for them, because NVML hands
//! them out one by one to whoever is waiting.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;

/// How long one wait takes, in ms; as long may ending take.
const WAIT_MS: u32 = 1_000;
/// What NVML's calls need of a stack, and more.
const STACK: usize = 512 * 1024;

/// The thread, until it is dropped.
pub(super) struct Xids {
    end: Arc<AtomicBool>,
    thrown: mpsc::Receiver<(String, u64)>,
    thread: Option<JoinHandle<()>>,
}

impl Xids {
    /// Waits for errors of these devices from now on.
    pub(super) fn watch(nvml: &Arc<Nvml>, devices: BTreeSet<String>) -> Self {
        let (tell, thrown) = mpsc::channel();
        let end = Arc::new(AtomicBool::new(false));
        let (nvml, until) = (Arc::clone(nvml), Arc::clone(&end));
        let work = move || {
            if let Err(error) = wait(&nvml, &devices, &until, &tell) {
                tracing::info!("errors of the GPUs are not told by the driver here: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("xids".to_owned()).stack_size(STACK).spawn(work).ok();
        Self { end, thrown, thread }
    }

    /// What was thrown since the last call: the device and the number.
    pub(super) fn thrown(&self) -> Vec<(String, u64)> {
        self.thrown.try_iter().collect()
    }
}

impl Drop for Xids {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It holds the library, which cannot be loaded anew before.
            let _ = thread.join();
        }
    }
}

fn wait(
    nvml: &Nvml,
    devices: &BTreeSet<String>,
    end: &AtomicBool,
    tell: &mpsc::Sender<(String, u64)>,
) -> Result<(), NvmlError> {
    let mut set = nvml.create_event_set()?;
    let mut watched = 0;
    for uuid in devices {
        let Ok(device) = nvml.device_by_uuid(uuid.as_str()) else { continue };
        if device.supported_event_types().is_ok_and(|types| types.contains(EventTypes::CRITICAL_XID_ERROR)) {
            set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).map_err(|error| error.error)?;
            watched += 1;
        }
    }
    if watched == 0 {
        return Err(NvmlError::NotSupported);
    }
    while !end.load(Ordering::Relaxed) {
        let event = match set.wait(WAIT_MS) {
            Ok(event) => event,
            Err(NvmlError::Timeout) => continue,
            Err(error) => return Err(error),
        };
        if let (Some(XidError::Value(xid)), Ok(uuid)) = (event.event_data, event.device.uuid()) {
            // Nobody listens any more: then it is about to end.
            let _ = tell.send((uuid, xid));
        }
    }
    Ok(())
}
