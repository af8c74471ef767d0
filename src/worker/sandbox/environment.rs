//! Adapts the environment of a sandboxed trainer to the directories it can use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories that libraries write to. Without them they use one below the home directory.
const CACHE_VARIABLES: &[&str] = &[
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_DATASETS_CACHE",
    "HF_ASSETS_CACHE",
    "HF_XET_CACHE",
    "HF_MODULES_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "TRANSFORMERS_CACHE",
    "DIFFUSERS_CACHE",
    "TORCH_HOME",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "TRITON_HOME",
    "TRITON_CACHE_DIR",
    "TRITON_DUMP_DIR",
    "CUDA_CACHE_PATH",
    "WANDB_DIR",
    "WANDB_CACHE_DIR",
    "WANDB_CONFIG_DIR",
    "WANDB_DATA_DIR",
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "PYTHONPYCACHEPREFIX",
    "UV_CACHE_DIR",
    "CONDA_PKGS_DIRS",
];

/// They lead to the owner's own session.
const SESSION_VARIABLES: &[&str] = &["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// A job's user is in no list of users of the host, and the optimizers of `PyTorch` do not start without a name.
const USER_NAME: &str = "simpletuner-job";

/// Sets the job's own user name, home and temporary directories. Caches stay where they are only if the owner gives
/// their directory to jobs.
pub fn sandbox_environment(
    mut variables: BTreeMap<String, String>,
    home: &Path,
    tmp: &Path,
    exposed_dirs: &[PathBuf],
) -> BTreeMap<String, String> {
    variables.retain(|name, value| {
        let is_exposed = || exposed_dirs.iter().any(|dir| Path::new(value).starts_with(dir));
        !SESSION_VARIABLES.contains(&name.as_str()) && (!CACHE_VARIABLES.contains(&name.as_str()) || is_exposed())
    });
    variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    for name in ["USER", "LOGNAME"] {
        variables.insert(name.to_owned(), USER_NAME.to_owned());
    }
    for name in ["TMPDIR", "TEMP", "TMP"] {
        variables.insert(name.to_owned(), tmp.to_string_lossy().into_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_stay_in_directories_given_to_jobs() {
        let cases = [
            ("HF_HOME", "/data/hf"),
            ("TORCH_HOME", "/root/torch"),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
            ("HOME", "/root"),
            ("USER", "root"),
            ("TMPDIR", "/var/tmp"),
            ("PATH", "/bin"),
        ];
        let variables = cases.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let actual = sandbox_environment(variables, Path::new("/h"), Path::new("/tmp"), &[PathBuf::from("/data")]);
        let actual: Vec<_> = actual.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("HF_HOME", "/data/hf"),
            ("HOME", "/h"),
            ("LOGNAME", "simpletuner-job"),
            ("PATH", "/bin"),
            ("TEMP", "/tmp"),
            ("TMP", "/tmp"),
            ("TMPDIR", "/tmp"),
            ("USER", "simpletuner-job"),
        ];
        assert_eq!(actual, expected);
    }
}
