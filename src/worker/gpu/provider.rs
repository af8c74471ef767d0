//! What every kind of GPU can be asked, by whichever interface its vendor has.

use app::protocol::gpu::GpuReading;

use super::{Hardware, amd, apple, fake, intel, nvml};

/// One kind of GPU on this host. Its calls may block for seconds; only the sampler's thread makes them.
pub trait Provider: Send {
    /// What is there. Without GPUs of this kind: none, and no error.
    ///
    /// # Errors
    /// A sentence, if there should be some and nobody can say which.
    fn detect(&mut self) -> Result<Hardware, String>;

    /// How those are that [`Provider::detect`] found last. One that is not there any more may be left out.
    ///
    /// # Errors
    /// A sentence, if the driver as a whole does not answer.
    fn look(&mut self) -> Result<Vec<Seen>, String>;
}

/// One GPU at one look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// What is measured; what the part does not tell is left out.
    pub reading: GpuReading,
    /// The processes that compute on it; none where nobody can tell.
    pub users: Option<Vec<User>>,
    /// What went wrong since the look before.
    pub faults: Vec<Fault>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Its id. In a container it may be the host's.
    pub pid: u32,
    /// What it is called, where that can be seen.
    pub name: Option<String>,
}

impl User {
    /// With the name that `/proc` shows.
    pub fn of(pid: u32) -> Self {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        Self { pid, name: name.map(|name| name.trim().to_owned()) }
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} ({name})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// These in words, the first few by name.
pub fn in_words(users: &[User]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = users.iter().take(NAMED).map(User::to_string).collect();
    match users.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// What went wrong with a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// NVIDIA's driver reported an error by this number.
    Xid(u64),
    /// It does not answer any more, and why.
    Lost(String),
}

/// The kind of GPU that this host computes on, and what there is of it: the first kind that there is.
///
/// A job has one kind of accelerator, and so has a worker.
pub fn find() -> (Box<dyn Provider>, Hardware) {
    find_saying(|kind, why| tracing::warn!("{kind} GPUs cannot be used: {why}"))
}

/// The same, saying by this which kind cannot be used and why.
pub fn find_saying(say: impl Fn(&str, &str)) -> (Box<dyn Provider>, Hardware) {
    let kinds: Vec<(&str, Box<dyn Provider>)> = match fake::Fake::from_environment() {
        Some(fake) => vec![("made-up", Box::new(fake))],
        None => vec![
            ("NVIDIA", Box::new(nvml::Nvidia::default())),
            ("AMD", Box::new(amd::Amd::at("/"))),
            ("Intel", Box::new(intel::Intel::at("/"))),
            ("Apple", Box::new(apple::Apple)),
        ],
    };
    for (kind, mut provider) in kinds {
        match provider.detect() {
            Ok(found) if !found.gpus.is_empty() => return (provider, found),
            Ok(_) => {}
            Err(why) => say(kind, &why),
        }
    }
    (Box::new(Nothing), Hardware::none())
}

/// A host without GPUs.
struct Nothing;

impl Provider for Nothing {
    fn detect(&mut self) -> Result<Hardware, String> {
        Ok(Hardware::none())
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        Ok(Vec::new())
    }
}

/// Bytes in GB, to a hundredth.
#[expect(clippy::cast_precision_loss, reason = "hundredths of a GB are enough")]
pub fn gb(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 100.0).round() / 100.0
}

/// Bytes in GB, to a tenth: the size of a memory.
#[expect(clippy::cast_precision_loss, reason = "tenths of a GB are enough")]
pub fn size_gb(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 10.0).round() / 10.0
}
