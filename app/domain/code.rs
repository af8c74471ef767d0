//! Files of a configuration that a Python would run: imported, or loaded as an object that runs code when it is read.

/// Ends of names, in lower case.
const EXTENSIONS: [&str; 31] = [
    // Imported, or found and run when Python starts.
    "py", "pyc", "pyd", "pyo", "pyw", "pyx", "pth", "_pth", "so", "dll", "dylib", "egg", "whl", "zip", "pyz", "pyzw",
    // Loaded by `pickle`, which runs what they say.
    "pkl", "pickle", "pck", "p", "pt", "pt2", "ptl", "ckpt", "bin", "joblib", "dill", "npy", "npz", "msgpack", "h5",
];

/// Whether a file of this name would be run or could bring code with it.
pub fn is_code(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    // `libx.so.1` too.
    name.split('.').skip(1).any(|part| part == "so")
        || name.rsplit_once('.').is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_runs_is_code() {
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
            assert!(is_code(code), "{code}");
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
            assert!(!is_code(text), "{text}");
        }
    }
}
