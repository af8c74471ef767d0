//! GPUs, and what keeps one from jobs: its agent withholds it while it is broken, or while somebody else uses it.

/// One GPU, or one partition of one, as the rules see it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gpu {
    /// Its number on the host; people know it by it.
    pub index: u32,
    /// Stable id; GPUs are granted by it.
    pub uuid: String,
    /// Model.
    pub name: String,
    /// Memory in GB; none where the part does not say.
    pub vram_gb: Option<f64>,
    /// Whose memory that is; none where nobody knows.
    pub memory: Option<MemoryKind>,
    /// Of a partition, the id of the GPU that it is a part of.
    pub part_of: Option<String>,
    /// Why no job may have it now. Who has it already keeps it.
    pub withheld: Option<Withheld>,
}

/// Whose memory a GPU uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Its own.
    Dedicated,
    /// The host's.
    Unified,
}

impl MemoryKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dedicated, Self::Unified];

    /// Its word in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::Unified => "unified",
        }
    }
}

/// Why a GPU is not given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    /// What kind of reason.
    pub reason: WithheldReason,
    /// In the agent's words: which error, or whose process. May be empty.
    pub detail: String,
}

/// What keeps a GPU from jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WithheldReason {
    /// It has shown an error, or did not pass the test before a job.
    Quarantined,
    /// A process that belongs to no job uses it.
    InUse,
}

impl WithheldReason {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Quarantined, Self::InUse];

    /// Its word: in the database, in the trail and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::InUse => "in_use",
        }
    }
}

/// Where a GPU stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A job has it.
    Busy,
    /// A job may have it.
    Free,
    /// Its agent withholds it.
    Withheld(WithheldReason),
    /// Its worker is not connected.
    NotConnected,
}

impl Gpu {
    /// Where it stands. That it is withheld comes before that a job has it: who has it already keeps it.
    pub fn standing(&self, is_connected: bool, is_held: bool) -> Standing {
        match (is_connected, &self.withheld) {
            (false, _) => Standing::NotConnected,
            (true, Some(withheld)) => Standing::Withheld(withheld.reason),
            (true, None) if is_held => Standing::Busy,
            (true, None) => Standing::Free,
        }
    }
}

/// What an agent says of a GPU: why no job may have it, or that one may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Which, by its id.
    pub uuid: String,
    /// Why not.
    pub withheld: Option<Withheld>,
}

/// The GPUs of which something is said that was not known, each with what is said. Ids that are not here mean nothing, a
/// GPU that nothing is said of stays as it is, and of two words about one the first counts.
pub fn news<'g>(gpus: &'g [Gpu], said: &'g [Word]) -> impl Iterator<Item = (&'g Gpu, &'g Option<Withheld>)> {
    let word = |gpu: &'g Gpu| said.iter().find(|word| word.uuid == gpu.uuid).map(|word| (gpu, &word.withheld));
    gpus.iter().filter_map(word).filter(|(gpu, withheld)| gpu.withheld != **withheld)
}

/// How new it is what an agent says of its GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Novelty {
    /// It was known.
    None,
    /// What is withheld was known, and is explained in other words: it is another process by now.
    Words,
    /// A GPU is withheld, or for another kind of reason, or is given back.
    State,
}

/// How new that is.
pub fn novelty(gpus: &[Gpu], said: &[Word]) -> Novelty {
    let reason = |withheld: &Option<Withheld>| withheld.as_ref().map(|withheld| withheld.reason);
    let of = |(gpu, now): (&Gpu, &Option<Withheld>)| {
        if reason(&gpu.withheld) == reason(now) { Novelty::Words } else { Novelty::State }
    };
    news(gpus, said).map(of).max().unwrap_or(Novelty::None)
}

/// The GPUs as they are after that was said.
pub fn taken_in(gpus: &[Gpu], said: &[Word]) -> Vec<Gpu> {
    let now = |gpu: &Gpu| match news(std::slice::from_ref(gpu), said).next() {
        Some((_, withheld)) => Gpu { withheld: withheld.clone(), ..gpu.clone() },
        None => gpu.clone(),
    };
    gpus.iter().map(now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{gpus, withheld};

    fn says(uuid: &str, withheld: Option<Withheld>) -> Word {
        Word { uuid: uuid.to_owned(), withheld }
    }

    #[test]
    fn what_is_said_of_gpus_and_what_of_it_is_new() {
        let mut known = gpus(1, &[80, 80]);
        known[1].withheld = Some(withheld("XID 79"));
        let (first, other) = (|withheld| says("GPU-1-0", withheld), |withheld| says("GPU-1-1", withheld));
        let (old, new) = (|| Some(withheld("XID 79")), || Some(withheld("XID 48")));
        let rows: [(&[Word], &[&str], Novelty); 9] = [
            (&[], &[], Novelty::None),
            (&[first(None), other(old())], &[], Novelty::None),
            (&[first(new())], &["GPU-1-0"], Novelty::State),
            (&[other(None)], &["GPU-1-1"], Novelty::State),
            (&[other(new())], &["GPU-1-1"], Novelty::Words),
            (&[says("GPU-9-9", new())], &[], Novelty::None),
            (&[first(None), first(new())], &[], Novelty::None),
            (&[other(None), first(new())], &["GPU-1-0", "GPU-1-1"], Novelty::State),
            (&[other(new()), first(new())], &["GPU-1-0", "GPU-1-1"], Novelty::State),
        ];
        for (n, (said, expected, how_new)) in rows.into_iter().enumerate() {
            let found: Vec<&str> = news(&known, said).map(|(gpu, _)| gpu.uuid.as_str()).collect();
            assert_eq!((found.as_slice(), novelty(&known, said)), (expected, how_new), "row {n}");
        }
        let in_use = Withheld { reason: WithheldReason::InUse, ..withheld("XID 79") };
        assert_eq!(novelty(&known, &[other(Some(in_use))]), Novelty::State, "another reason in the same words");
    }

    #[test]
    fn where_a_gpu_stands() {
        let free = gpus(1, &[80]).remove(0);
        let broken = Gpu { withheld: Some(withheld("XID 79")), ..free.clone() };
        let reason = broken.withheld.as_ref().map(|withheld| withheld.reason).expect("it is withheld");
        for is_held in [false, true] {
            assert_eq!(broken.standing(true, is_held), Standing::Withheld(reason), "whoever has it");
            assert_eq!([&free, &broken].map(|gpu| gpu.standing(false, is_held)), [Standing::NotConnected; 2]);
        }
        assert_eq!([true, false].map(|is_held| free.standing(true, is_held)), [Standing::Busy, Standing::Free]);
    }
}
