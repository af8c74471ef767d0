//! Restricts which files the trainer may open, with Landlock: any process may restrict itself, and its children inherit
//! the restriction.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// The newest version that these rules were written for; older kernels enforce the rights that they know.
const MAX_ABI: ABI = ABI::V7;
/// The first version that can restrict truncating a file by its path (Linux 6.2).
pub const TRUNCATE_ABI: u32 = 3;

/// Paths by what the trainer may do with them.
pub struct LandlockRules<'a> {
    /// Read and execute.
    pub read: &'a [PathBuf],
    /// Read, execute and change.
    pub write: &'a [PathBuf],
    /// Read, write and control, but not remove.
    pub devices: &'a [PathBuf],
    /// Write to existing files, in addition to what the other rules allow.
    pub update: &'a [PathBuf],
}

/// Restricts this thread and everything that it starts. Returns the kernel's version of Landlock.
///
/// # Errors
/// A message, if the kernel has no Landlock.
pub fn restrict(rules: &LandlockRules) -> Result<u32, String> {
    let ruleset = build_ruleset(rules).map_err(|error| format!("Landlock rejects the rules: {error}"))?;
    let status = ruleset.restrict_self().map_err(|error| format!("Landlock cannot be used: {error}"))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("this kernel has Landlock, but it is switched off: add `landlock` to the kernel's `lsm=` parameter"
                .to_owned())
        }
        (RulesetStatus::NotEnforced, _) => Err("this kernel has no Landlock (Linux 5.13 has)".to_owned()),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u32),
        _ => Ok(0),
    }
}

/// Whether this kernel can block signals and abstract sockets between sandboxes (Linux 6.12).
pub fn has_scopes() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::from_all(ABI::V6)).and_then(Ruleset::create).is_ok()
}

fn build_ruleset(rules: &LandlockRules) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(MAX_ABI);
    let read = AccessFs::from_read(MAX_ABI);
    let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let ruleset = Ruleset::default().handle_access(all)?.scope(Scope::from_all(MAX_ABI))?.create()?;
    let ruleset = add_paths(ruleset, rules.read, read)?;
    let ruleset = add_paths(ruleset, rules.write, all & !AccessFs::MakeChar & !AccessFs::MakeBlock)?;
    let ruleset = add_paths(ruleset, rules.devices, device)?;
    add_paths(ruleset, rules.update, AccessFs::WriteFile | AccessFs::Truncate)
}

fn add_paths(
    ruleset: RulesetCreated,
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    paths.iter().try_fold(ruleset, |ruleset, path| {
        // A missing path needs no rule.
        let Ok(opened) = PathFd::new(path) else { return Ok(ruleset) };
        ruleset.add_rule(PathBeneath::new(opened, access & applicable_access(path)))
    })
}

/// Rights that make sense on a directory only are rejected on a file.
fn applicable_access(path: &Path) -> BitFlags<AccessFs> {
    if path.is_dir() { AccessFs::from_all(MAX_ABI) } else { AccessFs::from_file(MAX_ABI) }
}
