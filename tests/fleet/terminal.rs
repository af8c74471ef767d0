//! The operator's commands on a terminal: passwords are not echoed, and a long upload shows its progress.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use tokio::process::{Child, Command};

use crate::harness::{TestFleet, wait_until};
use crate::operator::{can_sign_in, local_command};

const WINDOW: Winsize = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
const PASSWORD: &str = "typed-at-a-terminal";

/// A terminal with a program at its other end.
struct Terminal {
    keyboard: File,
    output: Arc<Mutex<String>>,
    program: Child,
}

impl Terminal {
    fn with(mut command: Command) -> Self {
        let pty = openpty(&WINDOW, None).expect("a terminal");
        let handle = |side: &OwnedFd| side.try_clone().expect("another handle");
        command.stdin(handle(&pty.slave)).stdout(handle(&pty.slave)).stderr(pty.slave).env("TERM", "xterm");
        let program = command.kill_on_drop(true).spawn().expect("a program");
        let (keyboard, mut screen) = (File::from(handle(&pty.master)), File::from(pty.master));
        let output = Arc::new(Mutex::new(String::new()));
        let shared_output = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the other end is closed.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                shared_output.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Self { keyboard, output, program }
    }

    fn output(&self) -> String {
        self.output.lock().expect("no panic").clone()
    }

    /// Types a line at a prompt without echo.
    async fn type_hidden(&mut self, prompt: &str, line: &str) {
        wait_until(prompt, async || self.output().contains(prompt).then_some(())).await;
        let echoes = || tcgetattr(&self.keyboard).expect("a terminal").local_flags.contains(LocalFlags::ECHO);
        wait_until("a terminal that does not echo", async || (!echoes()).then_some(())).await;
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("the terminal is open");
    }

    /// Returns the program's exit code.
    async fn exit_code(&mut self) -> Option<i32> {
        wait_until("the command's end", async || self.program.try_wait().expect("a child")).await.code()
    }
}

#[tokio::test]
async fn password_prompt_repeats_and_hides_input() {
    let fleet = TestFleet::start().await;
    let mut terminal = Terminal::with(local_command(&fleet, &["auth", "users", "create", "ada", "--role", "admin"]));
    terminal.type_hidden("New password of ada", PASSWORD).await;
    terminal.type_hidden("Repeat the password", PASSWORD).await;
    assert_eq!(terminal.exit_code().await, Some(0), "{}", terminal.output());
    assert!(can_sign_in(&fleet, "ada", PASSWORD).await);

    let mut terminal = Terminal::with(local_command(&fleet, &["auth", "reset-password", "ada"]));
    terminal.type_hidden("New password of ada", "one-long-password").await;
    terminal.type_hidden("Repeat the password", "another-password").await;
    assert_ne!(terminal.exit_code().await, Some(0), "{}", terminal.output());
    for secret in [PASSWORD, "one-long-password", "another-password"] {
        assert!(!terminal.output().contains(secret), "{}", terminal.output());
    }
    assert!(can_sign_in(&fleet, "ada", PASSWORD).await, "two passwords that differ change nothing");
}

#[tokio::test]
async fn long_upload_shows_progress_on_a_terminal() {
    let fleet = TestFleet::start().await;
    let directory = fleet.path().join("large");
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("config.json"), "{}").expect("written");
    std::fs::write(directory.join("prompts.json"), format!("\"{}\"", "x".repeat(600 << 10))).expect("written");
    let push = ["configs", "push", directory.to_str().expect("text")];

    let mut terminal = Terminal::with(local_command(&fleet, &push));
    assert_eq!(terminal.exit_code().await, Some(0), "{}", terminal.output());
    let output =
        wait_until("the last line", async || Some(terminal.output()).filter(|output| output.contains("revision 1")))
            .await;
    assert!(output.contains("/600.") && output.contains("KiB"), "{output}");

    let piped = local_command(&fleet, &push).output().await.expect("a program");
    let stderr = String::from_utf8_lossy(&piped.stderr);
    assert!(
        piped.status.success() && stderr.contains("Stored large as revision") && !stderr.contains("KiB"),
        "{stderr}"
    );
}
