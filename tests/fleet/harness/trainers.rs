//! Small trainers for what the example trainer does not do. They exchange files with their test in the directory
//! `MEET`, or at home without one.

/// Number of lines of [`COUNTING`].
const COUNTING_LINES: u32 = 3_000;

/// Prints numbered lines for some seconds, so that log chunks are always in transit.
pub const COUNTING: &str = r#"
import time
for n in range(3000):
    print(f"line {n} of the log", flush=True)
    time.sleep(0.001)
"#;

/// Returns the whole output of [`COUNTING`].
pub fn counting_output() -> String {
    (0..COUNTING_LINES).map(|n| format!("line {n} of the log\n")).collect::<Vec<_>>().concat()
}

/// Runs until the host's gate is open.
pub const AT_THE_GATE: &str = r#"
import os, pathlib, time
gate = pathlib.Path(os.environ.get("MEET", os.environ["HOME"]), "gate")
print("at the gate", flush=True)
while not gate.exists():
    time.sleep(0.02)
print("through the gate", flush=True)
"#;

/// The whole output of [`AT_THE_GATE`].
pub const AT_THE_GATE_OUTPUT: &str = "at the gate\nthrough the gate\n";

/// The same without output.
pub const SILENT_AT_THE_GATE: &str = r#"
import os, pathlib, time
while not pathlib.Path(os.environ.get("MEET", os.environ["HOME"]), "gate").exists():
    time.sleep(0.02)
"#;

/// The same; records when it started and that it is alive, by a clock that all processes share.
pub const ALIVE_AT_THE_GATE: &str = r#"
import os, pathlib, time
home = pathlib.Path(os.environ.get("MEET", os.environ["HOME"]))
def note(name):
    new = home / f"{name}.new"
    new.write_text(str(time.clock_gettime(time.CLOCK_BOOTTIME)))
    new.rename(home / name)
note("began")
while not (home / "gate").exists():
    note("alive")
    time.sleep(0.002)
note("alive")
"#;

/// The same; prints its GPUs.
pub const GPUS_AT_THE_GATE: &str = r#"
import os, pathlib, time
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
while not pathlib.Path(os.environ.get("MEET", os.environ["HOME"]), "gate").exists():
    time.sleep(0.02)
"#;

/// Prints 60 MB once the gate is open.
pub const LARGE_OUTPUT_AT_THE_GATE: &str = r#"
import os, pathlib, time
home = pathlib.Path(os.environ.get("MEET", os.environ["HOME"]))
print("first words", flush=True)
while not (home / "gate").exists():
    time.sleep(0.02)
for first in range(0, 600_000, 10_000):
    print("".join(f"line {n}".ljust(100, ".") + "\n" for n in range(first, first + 10_000)), end="", flush=True)
(home / "talked").write_text("")
while not (home / "leave").exists():
    time.sleep(0.02)
print("last words", flush=True)
"#;

/// Records when it starts and ends.
pub const JOURNAL: &str = r#"
import os, pathlib, time
def note(word):
    with pathlib.Path(os.environ.get("MEET", os.environ["HOME"]), "journal").open("a") as journal:
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

/// Has a child in another session; both ignore SIGTERM and are silent.
pub const IGNORES_SIGTERM: &str = r#"
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('child', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
time.sleep(600)
"#;

/// Fails after some output.
pub const FAILING: &str = r#"
import sys
print("all is well")
print("out of digits", file=sys.stderr)
sys.exit(3)
"#;

/// Requests a retry the first time.
pub const REQUESTS_RETRY: &str = r#"
import os, sys
attempt = int(os.environ["SIMPLETUNER_ATTEMPT"])
print("attempt", attempt)
sys.exit(75 if attempt == 1 else 0)
"#;
