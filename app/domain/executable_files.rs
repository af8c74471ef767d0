//! Configuration files that Python would execute: imported, or loaded as an object that runs code when it is read.

/// File extensions, in lower case.
const CODE_EXTENSIONS: [&str; 31] = [
    // Imported, or executed when Python starts.
    "py", "pyc", "pyd", "pyo", "pyw", "pyx", "pth", "_pth", "so", "dll", "dylib", "egg", "whl", "zip", "pyz", "pyzw",
    // Loaded by `pickle`, which can run code.
    "pkl", "pickle", "pck", "p", "pt", "pt2", "ptl", "ckpt", "bin", "joblib", "dill", "npy", "npz", "msgpack", "h5",
];

/// Returns whether a file with this name could be executed or could contain code.
pub fn is_executable(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    // Also matches `libx.so.1`.
    name.split('.').skip(1).any(|part| part == "so")
        || name.rsplit_once('.').is_some_and(|(_, extension)| CODE_EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_python_executes_are_detected() {
        for code in [
            "simpletuner/train.py",
            "json.py",
            "sitecustomize.PY",
            "a/b/x.pth",
            "python311._pth",
            "lib/_x.cpython-311-x86_64-linux-gnu.so",
            "libx.so.6",
            "__pycache__/json.cpython-311.pyc",
            "x.pkl",
            "model.pt",
            "x.zip",
        ] {
            assert!(is_executable(code), "{code}");
        }
        for text in [
            "config.json",
            "prompts.txt",
            "a.py/config.json",
            "py",
            "so",
            "multidatabackend.json",
            "a.yaml",
            "soap.toml",
            "x.env",
        ] {
            assert!(!is_executable(text), "{text}");
        }
    }
}
