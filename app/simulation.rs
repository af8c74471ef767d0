//! Time and randomness of a simulation, in which all hosts share one thread.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::time::Instant;

thread_local! {
    /// An instant of the current runtime's clock, if one is entered, and the simulation's time then.
    static CLOCK: Cell<(Option<Instant>, Duration)> = const { Cell::new((None, Duration::ZERO)) };
    static RANDOM: RefCell<SplitMix64> = const { RefCell::new(SplitMix64(0)) };
}

/// Sets the time at which a runtime is entered. Each has a clock of its own.
pub fn enter(time: Duration) {
    CLOCK.set((Some(Instant::now()), time));
}

/// Sets the time at which a runtime was left. It stands still until the next one is entered.
pub fn leave(time: Duration) {
    CLOCK.set((None, time));
}

/// The time since the simulation began.
pub fn time() -> Duration {
    let (entered, time) = CLOCK.get();
    time + entered.map_or(Duration::ZERO, |instant| instant.elapsed())
}

/// Begins the sequence of random numbers of a seed.
pub fn set_seed(seed: u64) {
    RANDOM.replace(SplitMix64(seed));
}

/// The next random number.
pub fn random_u64() -> u64 {
    RANDOM.with_borrow_mut(SplitMix64::next_u64)
}

/// Fills a buffer with random bytes.
pub fn fill_random(buffer: &mut [u8]) {
    for chunk in buffer.chunks_mut(8) {
        chunk.copy_from_slice(&random_u64().to_be_bytes()[..chunk.len()]);
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators": small, and good enough for a simulation.
#[derive(Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
