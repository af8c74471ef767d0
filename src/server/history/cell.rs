//! How a GPU was in the time of one cell, in eight bytes.

/// Nothing was heard.
const NOTHING: u8 = 255;
/// It was there, and did not say how much it computed.
const UNSAID: u8 = 254;
const NO_PEAK: u8 = 127;
const HELD: u8 = 128;
const NO_HEAT: u8 = 255;
const NO_WORD: u16 = u16::MAX;
/// The coldest that is told apart, in degrees Celsius.
const COLDEST: f64 = -55.0;

/// How a GPU was at one moment; what the part does not tell is none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// In percent.
    pub utilization: Option<f64>,
    /// In GB.
    pub memory: Option<f64>,
    /// In degrees Celsius.
    pub temperature: Option<f64>,
    /// In watts.
    pub power: Option<f64>,
    /// Whether a job had it.
    pub held: bool,
}

/// Means, and the highest where a mean would hide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Half percents.
    utilization: u8,
    /// Percents; the highest bit says that a job had it.
    peak: u8,
    /// Degrees above the coldest.
    temperature: u8,
    hottest: u8,
    /// Fiftieths of a GB.
    memory: u16,
    /// Tenths of a watt.
    power: u16,
}

impl Cell {
    /// What is not known.
    pub const EMPTY: Self = Self {
        utilization: NOTHING,
        peak: NO_PEAK,
        temperature: NO_HEAT,
        hottest: NO_HEAT,
        memory: NO_WORD,
        power: NO_WORD,
    };

    /// Whether the GPU was heard of.
    pub const fn is_heard(self) -> bool {
        self.utilization != NOTHING
    }

    /// Whether a job had it.
    pub const fn is_held(self) -> bool {
        self.peak & HELD != 0
    }

    /// The mean of how much it computed, in percent.
    pub fn utilization(self) -> Option<f64> {
        (self.utilization < UNSAID).then(|| f64::from(self.utilization) / 2.0)
    }

    /// The most that it computed, in percent.
    pub fn peak(self) -> Option<f64> {
        let peak = self.peak & !HELD;
        (peak != NO_PEAK).then(|| f64::from(peak))
    }

    /// The mean of its temperature.
    pub fn temperature(self) -> Option<f64> {
        (self.temperature != NO_HEAT).then(|| f64::from(self.temperature) + COLDEST)
    }

    /// Its highest temperature.
    pub fn hottest(self) -> Option<f64> {
        (self.hottest != NO_HEAT).then(|| f64::from(self.hottest) + COLDEST)
    }

    /// The mean of the memory in use, in GB.
    pub fn memory(self) -> Option<f64> {
        (self.memory != NO_WORD).then(|| f64::from(self.memory) / 50.0)
    }

    /// The mean of what it drew, in watts.
    pub fn power(self) -> Option<f64> {
        (self.power != NO_WORD).then(|| f64::from(self.power) / 10.0)
    }

    /// The same with what another one knows of the same time: what is missing here is taken from there, and the higher of
    /// the highest stays. Means stay, because nobody knows of how many moments they are.
    pub fn or(self, other: Self) -> Self {
        let known = |ours: u8, theirs: u8, none: u8| if ours == none { theirs } else { ours };
        let higher = |ours: u8, theirs: u8, none: u8| match (ours == none, theirs == none) {
            (false, false) => ours.max(theirs),
            (true, _) => theirs,
            (_, true) => ours,
        };
        let word = |ours: u16, theirs: u16| if ours == NO_WORD { theirs } else { ours };
        let utilization = match (self.utilization, other.utilization) {
            (NOTHING, theirs) => theirs,
            (UNSAID, theirs) if theirs < UNSAID => theirs,
            (ours, _) => ours,
        };
        let held = (self.peak | other.peak) & HELD;
        Self {
            utilization,
            peak: higher(self.peak & !HELD, other.peak & !HELD, NO_PEAK) | held,
            temperature: known(self.temperature, other.temperature, NO_HEAT),
            hottest: higher(self.hottest, other.hottest, NO_HEAT),
            memory: word(self.memory, other.memory),
            power: word(self.power, other.power),
        }
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 8] {
        let ([a, b], [c, d]) = (self.memory.to_le_bytes(), self.power.to_le_bytes());
        [self.utilization, self.peak, self.temperature, self.hottest, a, b, c, d]
    }

    /// Reads them; any eight bytes are a cell.
    pub fn read([utilization, peak, temperature, hottest, a, b, c, d]: [u8; 8]) -> Self {
        let (memory, power) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        Self { utilization, peak, temperature, hottest, memory, power }
    }
}

/// The moments of a cell whose time is not over, added up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    utilization: Mean,
    memory: Mean,
    temperature: Mean,
    power: Mean,
    peak: f32,
    hottest: f32,
    held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Mean {
    sum: f32,
    number: u32,
}

impl Mean {
    #[expect(clippy::cast_possible_truncation, reason = "a reading has three digits")]
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value as f32;
            self.number = self.number.saturating_add(1);
        }
    }

    fn get(self) -> Option<f64> {
        (self.number > 0).then(|| f64::from(self.sum) / f64::from(self.number))
    }
}

impl Sums {
    /// One more moment.
    #[expect(clippy::cast_possible_truncation, reason = "a reading has three digits")]
    pub fn add(&mut self, sample: &Sample) {
        let higher = |so_far: f32, is_first: bool, value: Option<f64>| match value {
            Some(value) if is_first || value as f32 > so_far => value as f32,
            _ => so_far,
        };
        self.peak = higher(self.peak, self.utilization.number == 0, sample.utilization);
        self.hottest = higher(self.hottest, self.temperature.number == 0, sample.temperature);
        self.utilization.add(sample.utilization);
        self.memory.add(sample.memory);
        self.temperature.add(sample.temperature);
        self.power.add(sample.power);
        self.held |= sample.held;
    }

    /// As they are now.
    pub fn cell(&self) -> Cell {
        let byte = |value: Option<f64>, none: u8| value.map_or(none, |value| whole(value, none - 1));
        let peak = self.utilization.get().map(|_| f64::from(self.peak));
        let hottest = self.temperature.get().map(|_| f64::from(self.hottest) - COLDEST);
        Cell {
            utilization: self.utilization.get().map_or(UNSAID, |mean| whole(mean * 2.0, 200)),
            peak: byte(peak, NO_PEAK) | if self.held { HELD } else { 0 },
            temperature: byte(self.temperature.get().map(|mean| mean - COLDEST), NO_HEAT),
            hottest: byte(hottest, NO_HEAT),
            memory: self.memory.get().map_or(NO_WORD, |mean| word(mean * 50.0)),
            power: self.power.get().map_or(NO_WORD, |mean| word(mean * 10.0)),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and within")]
fn whole(value: f64, most: u8) -> u8 {
    value.round().clamp(0.0, f64::from(most)) as u8
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and within")]
fn word(value: f64) -> u16 {
    value.round().clamp(0.0, f64::from(NO_WORD - 1)) as u16
}
