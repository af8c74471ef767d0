//! The state of a GPU in one period, in eight bytes.

/// No sample.
const NO_DATA: u8 = 255;
/// Samples without utilization.
const NO_UTILIZATION: u8 = 254;
const NO_PEAK: u8 = 127;
const HELD_BIT: u8 = 128;
const NO_TEMPERATURE: u8 = 255;
const NO_VALUE: u16 = u16::MAX;
/// The lowest temperature that can be stored, in degrees Celsius.
const MIN_TEMPERATURE: f64 = -55.0;

/// A sample of a GPU; `None` where the sensor has no value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuSample {
    /// In percent.
    pub utilization: Option<f64>,
    /// In GB.
    pub memory: Option<f64>,
    /// In degrees Celsius.
    pub temperature: Option<f64>,
    /// In watts.
    pub power: Option<f64>,
    /// Whether a job held it.
    pub held: bool,
}

/// Means, and maxima where a mean would hide them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryCell {
    /// In half percents.
    utilization: u8,
    /// In percent; the highest bit is set if a job held the GPU.
    peak: u8,
    /// In degrees above the minimum.
    temperature: u8,
    max_temperature: u8,
    /// In 1/50 GB.
    memory: u16,
    /// In 1/10 W.
    power: u16,
}

impl HistoryCell {
    pub const EMPTY: Self = Self {
        utilization: NO_DATA,
        peak: NO_PEAK,
        temperature: NO_TEMPERATURE,
        max_temperature: NO_TEMPERATURE,
        memory: NO_VALUE,
        power: NO_VALUE,
    };

    /// Whether there was a sample.
    pub const fn has_data(self) -> bool {
        self.utilization != NO_DATA
    }

    /// Whether a job held the GPU.
    pub const fn is_held(self) -> bool {
        self.peak & HELD_BIT != 0
    }

    /// The mean utilization, in percent.
    pub fn utilization(self) -> Option<f64> {
        (self.utilization < NO_UTILIZATION).then(|| f64::from(self.utilization) / 2.0)
    }

    /// The maximum utilization, in percent.
    pub fn peak_utilization(self) -> Option<f64> {
        let peak = self.peak & !HELD_BIT;
        (peak != NO_PEAK).then(|| f64::from(peak))
    }

    /// The mean temperature.
    pub fn temperature(self) -> Option<f64> {
        (self.temperature != NO_TEMPERATURE).then(|| f64::from(self.temperature) + MIN_TEMPERATURE)
    }

    /// The maximum temperature.
    pub fn max_temperature(self) -> Option<f64> {
        (self.max_temperature != NO_TEMPERATURE).then(|| f64::from(self.max_temperature) + MIN_TEMPERATURE)
    }

    /// The mean memory in use, in GB.
    pub fn memory(self) -> Option<f64> {
        (self.memory != NO_VALUE).then(|| f64::from(self.memory) / 50.0)
    }

    /// The mean power, in watts.
    pub fn power(self) -> Option<f64> {
        (self.power != NO_VALUE).then(|| f64::from(self.power) / 10.0)
    }

    /// Merges another cell of the same period: fills in missing values, and takes the higher maxima. Means are not
    /// merged, because their numbers of samples are unknown.
    pub fn merge(self, other: Self) -> Self {
        let first_known = |first: u8, second: u8, none: u8| if first == none { second } else { first };
        let max_known = |first: u8, second: u8, none: u8| match (first == none, second == none) {
            (false, false) => first.max(second),
            (true, _) => second,
            (_, true) => first,
        };
        let first_known_word = |first: u16, second: u16| if first == NO_VALUE { second } else { first };
        let utilization = match (self.utilization, other.utilization) {
            (NO_DATA, second) => second,
            (NO_UTILIZATION, second) if second < NO_UTILIZATION => second,
            (first, _) => first,
        };
        let held = (self.peak | other.peak) & HELD_BIT;
        Self {
            utilization,
            peak: max_known(self.peak & !HELD_BIT, other.peak & !HELD_BIT, NO_PEAK) | held,
            temperature: first_known(self.temperature, other.temperature, NO_TEMPERATURE),
            max_temperature: max_known(self.max_temperature, other.max_temperature, NO_TEMPERATURE),
            memory: first_known_word(self.memory, other.memory),
            power: first_known_word(self.power, other.power),
        }
    }

    pub fn to_bytes(self) -> [u8; 8] {
        let ([a, b], [c, d]) = (self.memory.to_le_bytes(), self.power.to_le_bytes());
        [self.utilization, self.peak, self.temperature, self.max_temperature, a, b, c, d]
    }

    /// Any eight bytes are a cell.
    pub fn from_bytes([utilization, peak, temperature, max_temperature, a, b, c, d]: [u8; 8]) -> Self {
        let (memory, power) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        Self { utilization, peak, temperature, max_temperature, memory, power }
    }
}

/// Sums of the samples of the current cell.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CellAccumulator {
    utilization: Mean,
    memory: Mean,
    temperature: Mean,
    power: Mean,
    peak: f32,
    max_temperature: f32,
    held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Mean {
    sum: f32,
    count: u32,
}

impl Mean {
    #[expect(clippy::cast_possible_truncation, reason = "a reading has three digits")]
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value as f32;
            self.count = self.count.saturating_add(1);
        }
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| f64::from(self.sum) / f64::from(self.count))
    }
}

impl CellAccumulator {
    /// Adds a sample.
    #[expect(clippy::cast_possible_truncation, reason = "a reading has three digits")]
    pub fn add(&mut self, sample: &GpuSample) {
        let max_value = |max: f32, is_first: bool, value: Option<f64>| match value {
            Some(value) if is_first || value as f32 > max => value as f32,
            _ => max,
        };
        self.peak = max_value(self.peak, self.utilization.count == 0, sample.utilization);
        self.max_temperature = max_value(self.max_temperature, self.temperature.count == 0, sample.temperature);
        self.utilization.add(sample.utilization);
        self.memory.add(sample.memory);
        self.temperature.add(sample.temperature);
        self.power.add(sample.power);
        self.held |= sample.held;
    }

    /// Returns the cell so far.
    pub fn finish(&self) -> HistoryCell {
        let byte = |value: Option<f64>, none: u8| value.map_or(none, |value| to_byte(value, none - 1));
        let peak = self.utilization.value().map(|_| f64::from(self.peak));
        let max_temperature = self.temperature.value().map(|_| f64::from(self.max_temperature) - MIN_TEMPERATURE);
        HistoryCell {
            utilization: self.utilization.value().map_or(NO_UTILIZATION, |mean| to_byte(mean * 2.0, 200)),
            peak: byte(peak, NO_PEAK) | if self.held { HELD_BIT } else { 0 },
            temperature: byte(self.temperature.value().map(|mean| mean - MIN_TEMPERATURE), NO_TEMPERATURE),
            max_temperature: byte(max_temperature, NO_TEMPERATURE),
            memory: self.memory.value().map_or(NO_VALUE, |mean| to_word(mean * 50.0)),
            power: self.power.value().map_or(NO_VALUE, |mean| to_word(mean * 10.0)),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and within")]
fn to_byte(value: f64, max: u8) -> u8 {
    value.round().clamp(0.0, f64::from(max)) as u8
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and within")]
fn to_word(value: f64) -> u16 {
    value.round().clamp(0.0, f64::from(NO_VALUE - 1)) as u16
}
