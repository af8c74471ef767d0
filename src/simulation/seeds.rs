//! Runs many seeds, each in a process of its own: then it is the same as when it is run alone.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One of this many seeds is run twice, and must do the same again.
const REPEAT_EVERY: u64 = 50;
/// A simulation that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(5);

struct Failure {
    seed: u64,
    message: String,
}

/// Runs seeds on all cores, and prints a summary.
pub fn run_seeds(first: u64, count: u64, seconds: Option<u64>, directory: &Path) -> ExitCode {
    // A simulation that fails leaves its files, which are removed with this.
    let directory = match tempfile::Builder::new().prefix("simulations").tempdir_in(directory) {
        Ok(directory) => directory,
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            return ExitCode::FAILURE;
        }
    };
    let begun = Instant::now();
    let deadline = seconds.map(|seconds| begun + Duration::from_secs(seconds));
    let (next, passed) = (AtomicU64::new(first), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    match check_seed(seed, directory.path()) {
                        Ok(()) => drop(passed.fetch_add(1, Ordering::Relaxed)),
                        Err(message) => {
                            println!("seed {seed}: {message}");
                            failures.lock().expect("no panic while it is held").push(Failure { seed, message });
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic while it was held");
    println!("{} simulations hold, {} fail, {} s", passed.into_inner(), failures.len(), begun.elapsed().as_secs());
    for Failure { seed, message } in &failures {
        println!("  simulation --seed {seed} --trace   {message}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_seed(seed: u64, directory: &Path) -> Result<(), String> {
    let result = run_process(seed, directory)?;
    if seed.is_multiple_of(REPEAT_EVERY) {
        let again = run_process(seed, directory)?;
        if again != result {
            return Err(format!("not the same again: {result}, then {again}"));
        }
    }
    Ok(())
}

/// The result of a seed, or why it failed.
fn run_process(seed: u64, directory: &Path) -> Result<String, String> {
    let mut command = Command::new("/proc/self/exe");
    // What the programs read from the environment is not part of a seed.
    command.args(["--seed", &seed.to_string(), "--directory"]).arg(directory).env_clear().stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let begun = Instant::now();
    // Its output fits into the pipes.
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            return Err(format!("not finished after {} s", LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
