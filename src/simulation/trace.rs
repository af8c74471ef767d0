//! What happens in a simulation, line by line. The same seed leads to the same lines, which their hash shows.

use std::cell::{Cell, RefCell};
use std::fmt::{Arguments, Write};

use app::simulation;

thread_local! {
    static HASH: Cell<u64> = const { Cell::new(FNV_START) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static IS_PRINTED: Cell<bool> = const { Cell::new(false) };
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// FNV-1a, 64 bits.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Prints each line from now on.
pub fn print_lines() {
    IS_PRINTED.set(true);
}

/// Adds a line, with the time before it.
pub fn record(text: Arguments<'_>) {
    LINE.with_borrow_mut(|line| {
        line.clear();
        let ms = simulation::time().as_millis();
        // Writing to a string does not fail.
        let _ = write!(line, "{:>7}.{:03} {text}", ms / 1_000, ms % 1_000);
        let hash = line.bytes().fold(HASH.get(), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        HASH.set(hash);
        COUNT.set(COUNT.get() + 1);
        if IS_PRINTED.get() {
            println!("{line}");
        }
    });
}

/// The number of lines, and their hash.
pub fn summary() -> (u64, u64) {
    (COUNT.get(), HASH.get())
}
