//! The operator's commands on a terminal: passwords are not echoed, and a long upload shows its progress.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use tokio::process::{Child, Command};

use crate::harness::{TestFleet, wait_until};
use crate::operator::{logs_in, typed};

const WINDOW: Winsize = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
const PASSWORD: &str = "typed-at-a-terminal";

/// A terminal with a program at its other end.
struct Terminal {
    keyboard: File,
    shown: Arc<Mutex<String>>,
    program: Child,
}

impl Terminal {
    fn with(mut command: Command) -> Self {
        let pair = openpty(&WINDOW, None).expect("a terminal");
        let end = |side: &OwnedFd| side.try_clone().expect("another handle");
        command.stdin(end(&pair.slave)).stdout(end(&pair.slave)).stderr(pair.slave).env("TERM", "xterm");
        let program = command.kill_on_drop(true).spawn().expect("a program");
        let (keyboard, mut screen) = (File::from(end(&pair.master)), File::from(pair.master));
        let shown = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the other end is closed.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                seen.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Self { keyboard, shown, program }
    }

    fn shows(&self) -> String {
        self.shown.lock().expect("no panic").clone()
    }

    /// Types a line at a prompt without echo.
    async fn type_unseen(&mut self, question: &str, line: &str) {
        wait_until(question, async || self.shows().contains(question).then_some(())).await;
        let echoes = || tcgetattr(&self.keyboard).expect("a terminal").local_flags.contains(LocalFlags::ECHO);
        wait_until("a terminal that does not echo", async || (!echoes()).then_some(())).await;
        self.keyboard.write_all(format!("{line}\n").as_bytes()).expect("the terminal is open");
    }

    /// Returns the program's exit code.
    async fn ended(&mut self) -> Option<i32> {
        wait_until("the command's end", async || self.program.try_wait().expect("a child")).await.code()
    }
}

#[tokio::test]
async fn password_prompt_repeats_and_hides_input() {
    let fleet = TestFleet::start().await;
    let mut terminal = Terminal::with(typed(&fleet, &["auth", "users", "create", "ada", "--role", "admin"]));
    terminal.type_unseen("New password of ada", PASSWORD).await;
    terminal.type_unseen("Repeat the password", PASSWORD).await;
    assert_eq!(terminal.ended().await, Some(0), "{}", terminal.shows());
    assert!(logs_in(&fleet, "ada", PASSWORD).await);

    let mut terminal = Terminal::with(typed(&fleet, &["auth", "reset-password", "ada"]));
    terminal.type_unseen("New password of ada", "one-long-password").await;
    terminal.type_unseen("Repeat the password", "another-password").await;
    assert_ne!(terminal.ended().await, Some(0), "{}", terminal.shows());
    for secret in [PASSWORD, "one-long-password", "another-password"] {
        assert!(!terminal.shows().contains(secret), "{}", terminal.shows());
    }
    assert!(logs_in(&fleet, "ada", PASSWORD).await, "two passwords that differ change nothing");
}

#[tokio::test]
async fn long_upload_shows_progress_on_a_terminal() {
    let fleet = TestFleet::start().await;
    let directory = fleet.path().join("large");
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("config.json"), "{}").expect("written");
    std::fs::write(directory.join("prompts.json"), format!("\"{}\"", "x".repeat(600 << 10))).expect("written");
    let push = ["configs", "push", directory.to_str().expect("text")];

    let mut terminal = Terminal::with(typed(&fleet, &push));
    assert_eq!(terminal.ended().await, Some(0), "{}", terminal.shows());
    let shown =
        wait_until("the last word", async || Some(terminal.shows()).filter(|shown| shown.contains("revision 1"))).await;
    assert!(shown.contains("/600.") && shown.contains("KiB"), "{shown}");

    let piped = typed(&fleet, &push).output().await.expect("a program");
    let stderr = String::from_utf8_lossy(&piped.stderr);
    assert!(
        piped.status.success() && stderr.contains("Stored large as revision") && !stderr.contains("KiB"),
        "{stderr}"
    );
}
