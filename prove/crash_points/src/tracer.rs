//! Runs a program, and stops its threads at each system call (ptrace). Calls that an observer wants alone are never
//! concurrent, so that their order is the order of their effects.

use std::collections::VecDeque;
use std::io::Write;
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::program::Program;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("registers of system calls are read for x86_64 only");

/// A system call at which a thread is stopped.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub thread: Pid,
    pub number: i64,
    pub arguments: [u64; 6],
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Ignore,
    /// Run it while no other such call runs, and report its result.
    Alone,
    /// Kill the program before the call.
    Kill,
}

/// Decides about calls.
pub trait Observer {
    /// A thread begins a call. Not called for one that must wait until it may run.
    fn enter(&mut self, call: &Call) -> Result<Decision>;
    /// Whether the call may be one that must run alone; without side effects.
    fn is_watched(&self, number: i64) -> bool;
    /// A call that runs alone has ended.
    fn leave(&mut self, call: &Call, result: i64) -> Result<()>;
}

/// Which processes are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// The threads of the program.
    Threads,
    /// Also its children.
    Processes,
}

/// A program that is traced by a thread.
pub struct TracedProgram {
    pub pid: Pid,
    tracer: Option<JoinHandle<Result<()>>>,
}

impl Drop for TracedProgram {
    fn drop(&mut self) {
        if self.is_running() {
            // It may just have ended.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
    }
}

impl TracedProgram {
    pub fn start(
        program: &Program,
        stderr: impl Into<Stdio> + Send + 'static,
        follow: Follow,
        mut observer: impl Observer + Send + 'static,
    ) -> Result<Self> {
        let (started, pid) = channel();
        let program = program.clone();
        let tracer = std::thread::spawn(move || trace(&program, stderr.into(), follow, &mut observer, &started));
        match pid.recv() {
            Ok(pid) => Ok(Self { pid, tracer: Some(tracer) }),
            Err(_) => match join(tracer) {
                Err(error) => Err(error),
                Ok(()) => bail!("the program did not start"),
            },
        }
    }

    /// Whether it is still traced.
    pub fn is_running(&self) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| !tracer.is_finished())
    }

    /// Waits until all traced processes have ended.
    pub fn wait(mut self) -> Result<()> {
        self.tracer.take().map_or(Ok(()), join)
    }

    /// Sends a signal and waits for the end.
    pub fn end(self, signal: Signal) -> Result<()> {
        ignore_ended(kill(self.pid, signal))?;
        self.wait()
    }
}

fn join(tracer: JoinHandle<Result<()>>) -> Result<()> {
    tracer.join().map_err(|_| anyhow!("the tracer has failed"))?
}

/// Runs the program until all traced processes have ended. Its process ID is sent before it starts.
fn trace(
    program: &Program,
    stderr: Stdio,
    follow: Follow,
    observer: &mut impl Observer,
    started: &Sender<Pid>,
) -> Result<()> {
    let root = start(program, stderr, follow)?;
    // The receiver may only wait for the program's end.
    let _ = started.send(root);
    let traced = trace_until_end(root, observer);
    if traced.is_err() {
        ignore_ended(kill(root, Signal::SIGKILL))?;
    }
    traced
}

fn trace_until_end(root: Pid, observer: &mut impl Observer) -> Result<()> {
    let mut turn = Turn { root, running: None, waiting: VecDeque::new() };
    loop {
        let status = match waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
            Err(Errno::ECHILD) => return Ok(()),
            Err(Errno::EINTR) => continue,
            status => status?,
        };
        match status {
            WaitStatus::PtraceSyscall(thread) => turn.stopped(thread, observer)?,
            WaitStatus::Stopped(thread, signal) => resume(thread, Some(signal))?,
            WaitStatus::PtraceEvent(thread, ..) => resume(thread, None)?,
            WaitStatus::Exited(thread, _) | WaitStatus::Signaled(thread, ..) => turn.ended(thread, observer)?,
            _ => {}
        }
    }
}

/// Starts a shell that becomes the program once it is traced.
fn start(program: &Program, stderr: Stdio, follow: Follow) -> Result<Pid> {
    let mut shell = program.command_of("/bin/sh", &["-c", "read -r _; exec \"$0\" \"$@\" </dev/null"]);
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr).spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let processes = match follow {
        Follow::Threads => Options::empty(),
        Follow::Processes => Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK,
    };
    let threads = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEEXEC;
    // No traced process outlives its tracer.
    ptrace::seize(pid, threads | processes | Options::PTRACE_O_EXITKILL)?;
    ptrace::interrupt(pid)?;
    child.stdin.take().context("a pipe")?.write_all(b"\n")?;
    Ok(pid)
}

/// The call that runs alone, and those that wait for its end.
struct Turn {
    root: Pid,
    running: Option<Call>,
    waiting: VecDeque<Call>,
}

impl Turn {
    /// A thread stopped at the begin or end of a call.
    fn stopped(&mut self, thread: Pid, observer: &mut impl Observer) -> Result<()> {
        let Some((is_begin, call, result)) = read_call(thread)? else { return Ok(()) };
        if is_begin && observer.is_watched(call.number) {
            self.waiting.push_back(call);
            return self.next(observer);
        }
        if !is_begin && self.running.is_some_and(|running| running.thread == thread) {
            self.running = None;
            observer.leave(&call, result).with_context(|| format!("{call:?} returned {result}"))?;
            resume(thread, None)?;
            return self.next(observer);
        }
        resume(thread, None)
    }

    fn ended(&mut self, thread: Pid, observer: &mut impl Observer) -> Result<()> {
        self.waiting.retain(|call| call.thread != thread);
        if self.running.is_some_and(|running| running.thread == thread) {
            self.running = None;
        }
        self.next(observer)
    }

    /// Lets calls run until one must be alone.
    fn next(&mut self, observer: &mut impl Observer) -> Result<()> {
        while self.running.is_none()
            && let Some(call) = self.waiting.pop_front()
        {
            match observer.enter(&call).with_context(|| format!("{call:?}"))? {
                Decision::Ignore => {}
                Decision::Alone => self.running = Some(call),
                Decision::Kill => return ignore_ended(kill(self.root, Signal::SIGKILL)),
            }
            resume(call.thread, None)?;
        }
        Ok(())
    }
}

/// Returns whether a call begins, the call, and its result if it ends; `None` if the thread was killed.
fn read_call(thread: Pid) -> Result<Option<(bool, Call, i64)>> {
    let info = match ptrace::syscall_info(thread) {
        Err(Errno::ESRCH) => return Ok(None),
        info => info?,
    };
    let registers = match ptrace::getregs(thread) {
        Err(Errno::ESRCH) => return Ok(None),
        registers => registers?,
    };
    let call = Call {
        thread,
        number: registers.orig_rax.cast_signed(),
        arguments: [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9],
    };
    Ok(Some((info.op == libc::PTRACE_SYSCALL_INFO_ENTRY, call, registers.rax.cast_signed())))
}

fn resume(thread: Pid, signal: Option<Signal>) -> Result<()> {
    ignore_ended(ptrace::syscall(thread, signal))
}

/// A thread may be killed at any time.
fn ignore_ended(result: nix::Result<()>) -> Result<()> {
    match result {
        Err(Errno::ESRCH) => Ok(()),
        result => Ok(result?),
    }
}
