//! What the environment of a confined trainer says of the places it can use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directories that libraries write to. Without them they use one below the home directory.
const CACHES: &[&str] = &[
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

/// Lead to the owner's own session.
const SESSION: &[&str] = &["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// With a home and a place for temporary files of its own. Caches stay where they are only if the owner gives their directory
/// to jobs.
pub fn confined(
    mut variables: BTreeMap<String, String>,
    home: &Path,
    tmp: &Path,
    given: &[PathBuf],
) -> BTreeMap<String, String> {
    variables.retain(|name, value| {
        let is_given = || given.iter().any(|dir| Path::new(value).starts_with(dir));
        !SESSION.contains(&name.as_str()) && (!CACHES.contains(&name.as_str()) || is_given())
    });
    variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    for name in ["TMPDIR", "TEMP", "TMP"] {
        variables.insert(name.to_owned(), tmp.to_string_lossy().into_owned());
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_stay_where_the_owner_gave_their_directory() {
        let given = [
            ("HF_HOME", "/data/hf"),
            ("TORCH_HOME", "/root/torch"),
            ("XDG_RUNTIME_DIR", "/run/user/0"),
            ("HOME", "/root"),
            ("TMPDIR", "/var/tmp"),
            ("PATH", "/bin"),
        ];
        let variables = given.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let got = confined(variables, Path::new("/h"), Path::new("/tmp"), &[PathBuf::from("/data")]);
        let got: Vec<_> = got.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("HF_HOME", "/data/hf"),
            ("HOME", "/h"),
            ("PATH", "/bin"),
            ("TEMP", "/tmp"),
            ("TMP", "/tmp"),
            ("TMPDIR", "/tmp"),
        ];
        assert_eq!(got, expected);
    }
}
