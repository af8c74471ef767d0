//! Trainers of a few lines, for what the example trainer does not do. Each has its host's directory as `HOME`.

/// How many lines [`COUNTING`] writes.
const LINES: u32 = 3_000;

/// Writes numbered lines for some seconds, so that a log is always on its way.
pub const COUNTING: &str = r#"
import time
for n in range(3000):
    print(f"line {n} of the log", flush=True)
    time.sleep(0.001)
"#;

/// All that [`COUNTING`] writes.
pub fn counted() -> String {
    (0..LINES).map(|n| format!("line {n} of the log\n")).collect::<Vec<_>>().concat()
}

/// Runs until the host's gate is open.
pub const AT_THE_GATE: &str = r#"
import os, pathlib, time
gate = pathlib.Path(os.environ["HOME"], "gate")
print("at the gate", flush=True)
while not gate.exists():
    time.sleep(0.02)
print("through the gate", flush=True)
"#;

/// The same without a word.
pub const SILENT_AT_THE_GATE: &str = r#"
import os, pathlib, time
while not pathlib.Path(os.environ["HOME"], "gate").exists():
    time.sleep(0.02)
"#;

/// Writes down when it begins and ends.
pub const JOURNAL: &str = r#"
import os, pathlib, time
def note(word):
    with pathlib.Path(os.environ["HOME"], "journal").open("a") as journal:
        journal.write(f"{word} {os.environ['SIMPLETUNER_JOB_ID']}\n")
note("begin")
time.sleep(0.2)
note("end")
"#;

/// Prints its environment.
pub const ENVIRONMENT: &str = r#"
import os
for name, value in os.environ.items():
    print(f"{name}={value}")
"#;

/// Has a child in a session of its own; neither of them minds SIGTERM, and both are silent.
pub const STUBBORN_FAMILY: &str = r#"
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('child', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
time.sleep(600)
"#;

/// Fails after some words.
pub const FAILING: &str = r#"
import sys
print("all is well")
print("out of digits", file=sys.stderr)
sys.exit(3)
"#;

/// Asks to be run again the first time.
pub const WANTS_ANOTHER_TRY: &str = r#"
import os, sys
attempt = int(os.environ["SIMPLETUNER_ATTEMPT"])
print("attempt", attempt)
sys.exit(75 if attempt == 1 else 0)
"#;
