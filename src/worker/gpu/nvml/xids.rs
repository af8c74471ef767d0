//! Receives the errors that NVIDIA's driver reports by number. A separate thread waits for them, because NVML delivers
//! them one by one to a waiting caller.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;

/// Timeout of one wait, in ms; stopping takes at most as long.
const WAIT_MS: u32 = 1_000;
/// Enough for NVML's calls.
const STACK_BYTES: usize = 512 * 1024;

/// The thread, which runs until this is dropped.
pub(super) struct XidListener {
    stop: Arc<AtomicBool>,
    events: mpsc::Receiver<(String, u64)>,
    thread: Option<JoinHandle<()>>,
}

impl XidListener {
    /// Waits for errors of these devices from now on.
    pub(super) fn start(nvml: &Arc<Nvml>, devices: BTreeSet<String>) -> Self {
        let (sender, receiver) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (nvml, thread_stop) = (Arc::clone(nvml), Arc::clone(&stop));
        let work = move || {
            if let Err(error) = wait_for_events(&nvml, &devices, &thread_stop, &sender) {
                tracing::info!("the driver does not report GPU errors here: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("xids".to_owned()).stack_size(STACK_BYTES).spawn(work).ok();
        Self { stop, events: receiver, thread }
    }

    /// The errors since the last call: device and number.
    pub(super) fn drain(&self) -> Vec<(String, u64)> {
        self.events.try_iter().collect()
    }
}

impl Drop for XidListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread holds the library, which cannot be reloaded before it ends.
            let _ = thread.join();
        }
    }
}

fn wait_for_events(
    nvml: &Nvml,
    devices: &BTreeSet<String>,
    stop: &AtomicBool,
    sender: &mpsc::Sender<(String, u64)>,
) -> Result<(), NvmlError> {
    let mut set = nvml.create_event_set()?;
    let mut registered = 0;
    for uuid in devices {
        let Ok(device) = nvml.device_by_uuid(uuid.as_str()) else { continue };
        if device.supported_event_types().is_ok_and(|types| types.contains(EventTypes::CRITICAL_XID_ERROR)) {
            set = device.register_events(EventTypes::CRITICAL_XID_ERROR, set).map_err(|error| error.error)?;
            registered += 1;
        }
    }
    if registered == 0 {
        return Err(NvmlError::NotSupported);
    }
    while !stop.load(Ordering::Relaxed) {
        let event = match set.wait(WAIT_MS) {
            Ok(event) => event,
            Err(NvmlError::Timeout) => continue,
            Err(error) => return Err(error),
        };
        if let (Some(XidError::Value(xid)), Ok(uuid)) = (event.event_data, event.device.uuid()) {
            // If the receiver was dropped, the thread is about to end.
            let _ = sender.send((uuid, xid));
        }
    }
    Ok(())
}
