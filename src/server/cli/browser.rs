//! Opens a page in the user's browser.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use reqwest::Url;

/// The platform's program that opens addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Browser {
    opener: PathBuf,
}

impl Browser {
    /// Finds the opener of this platform (`std::env::consts::OS`), if there is a screen for a browser.
    pub fn find(platform: &str, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let (name, has_screen) = match platform {
            "macos" => ("open", !is_set("SSH_CONNECTION")),
            _ => ("xdg-open", is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")),
        };
        let paths = variable("PATH").filter(|_| has_screen)?;
        let mut openers = std::env::split_paths(&paths).map(|directory| directory.join(name));
        openers.find(|path| path.is_absolute() && path.is_file()).map(|opener| Self { opener })
    }

    /// Opens an address. An opener may be the browser itself, so it is not waited for, and survives this command.
    pub fn open(&self, url: &Url) -> io::Result<Child> {
        let mut command = Command::new(&self.opener);
        command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn find(platform: &str, path: &str, variables: &[&str]) -> Option<PathBuf> {
        let variable = |name: &str| match name {
            "PATH" => Some(path.to_owned()),
            _ => variables.contains(&name).then(|| ":0".to_owned()),
        };
        Browser::find(platform, variable).map(|browser| browser.opener)
    }

    #[test]
    fn opener_needs_a_screen() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["xdg-open", "open"] {
            fs::write(directory.path().join(name), "").expect("written");
        }
        let path = format!("/nowhere:{}", directory.path().display());
        let opener = |name| Some(directory.path().join(name));
        assert_eq!(find("linux", &path, &["DISPLAY"]), opener("xdg-open"));
        assert_eq!(find("linux", &path, &["WAYLAND_DISPLAY", "SSH_CONNECTION"]), opener("xdg-open"));
        assert_eq!(find("linux", &path, &[]), None);
        assert_eq!(find("macos", &path, &[]), opener("open"));
        assert_eq!(find("macos", &path, &["SSH_CONNECTION"]), None);
        assert_eq!(find("linux", "/nowhere:.:", &["DISPLAY"]), None);
    }
}
