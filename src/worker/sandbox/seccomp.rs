//! Denies system calls that no trainer needs: those that leave sandboxes, inspect other processes, or reach parts of
//! the kernel with a history of escapes. Everything else is allowed, because CUDA, NCCL and Python need much.

use std::collections::BTreeMap;

use nix::libc::{self, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// They return "not permitted".
const DENIED_CALLS: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    467, // open_tree_attr, which libc does not name on every target
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_vhangup,
    // Keys, and the host's clock and name.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// They return "not implemented", so that libraries fall back to older calls. `clone3` and `openat2` keep their flags
/// in memory, where no filter can read them; `io_uring` makes calls that no filter sees.
const UNSUPPORTED_CALLS: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// A file with this mode runs as its owner, also outside the sandbox. Mask and value.
const SETUID_MASK: (u64, u64) = (0o4000, 0o4000);

/// Calls that set a mode, and the index of that argument.
const MODE_CALLS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2), // fchmodat2, which libc does not name on every target
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
];

/// Calls that open a file, and the index of the flags; the mode is the next argument.
const OPEN_CALLS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// `clone` with one of these creates a namespace.
const NAMESPACE_FLAGS: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME, which libc does not name on every target
];

/// Socket families that reach the kernel's cryptography, the hypervisor's host or raw links.
const DENIED_SOCKET_FAMILIES: [i32; 4] = [libc::AF_ALG, libc::AF_VSOCK, libc::AF_PACKET, libc::AF_KEY];

/// On `x86_64` the same calls have other numbers in its 32-bit variant.
#[cfg(target_arch = "x86_64")]
const X32_SYSCALL_BIT: c_long = 0x4000_0000;

/// Restricts this thread and all its children. `deny_truncate` is for levels where nothing else prevents truncating a
/// read-only file.
///
/// # Errors
/// A message, if the kernel rejects the filter.
pub fn restrict(deny_truncate: bool) -> Result<(), String> {
    let build_error = |error: BackendError| format!("cannot build the system call filter: {error}");
    for filter in build_filters(deny_truncate).map_err(build_error)? {
        seccompiler::apply_filter(&filter)
            .map_err(|error| format!("cannot install the system call filter: {error}"))?;
    }
    Ok(())
}

fn build_filters(deny_truncate: bool) -> Result<[BpfProgram; 2], BackendError> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = DENIED_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACE_FLAGS.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule_for_argument(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
    });
    denied.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    let families = DENIED_SOCKET_FAMILIES.map(|family| rule_equals(0, u64::from(family.unsigned_abs())));
    denied.insert(libc::SYS_socket, families.into_iter().collect::<Result<_, _>>()?);
    // Simulated input to another terminal.
    let terminal_input = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| rule_equals(1, request));
    denied.insert(libc::SYS_ioctl, terminal_input.into_iter().collect::<Result<_, _>>()?);
    // Limits of other processes: a limit of CPU time kills them.
    let other_process = vec![
        condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?,
        condition(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?,
    ];
    denied.insert(libc::SYS_prlimit64, vec![SeccompRule::new(other_process)?]);
    for (call, mode) in MODE_CALLS {
        denied.insert(*call, vec![rule_for_masked_bits(&[(*mode, SETUID_MASK)])?]);
    }
    for (call, flags) in OPEN_CALLS {
        let creation_flags = [libc::O_CREAT, libc::O_TMPFILE].map(|flag| u64::from(flag.unsigned_abs()));
        let mut rules = Vec::new();
        for flag in creation_flags {
            rules.push(rule_for_masked_bits(&[(*flags, (flag, flag)), (flags + 1, SETUID_MASK)])?);
        }
        if deny_truncate {
            let truncating =
                (u64::from((libc::O_TRUNC | libc::O_ACCMODE).unsigned_abs()), u64::from(libc::O_TRUNC.unsigned_abs()));
            rules.push(rule_for_masked_bits(&[(*flags, truncating)])?);
        }
        denied.insert(*call, rules);
    }
    if deny_truncate {
        denied.insert(libc::SYS_truncate, Vec::new());
    }
    let unsupported = UNSUPPORTED_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    Ok([build_program(denied, libc::EPERM)?, build_program(unsupported, libc::ENOSYS)?])
}

fn build_program(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, BackendError> {
    #[cfg(target_arch = "x86_64")]
    let calls = with_x32(calls);
    let rejection = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, rejection, std::env::consts::ARCH.try_into()?)?.try_into()
}

#[cfg(target_arch = "x86_64")]
fn with_x32(mut calls: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    /// Calls with their own numbers there: ioctl, ptrace, `kexec_load`, `move_pages`, `process_vm_readv`,
    /// `process_vm_writev`.
    const OWN_NUMBERS: [i64; 6] = [514, 521, 528, 533, 539, 540];
    let x32_calls: Vec<_> = calls.iter().map(|(call, rules)| (call | X32_SYSCALL_BIT, rules.clone())).collect();
    calls.extend(x32_calls);
    calls.extend(OWN_NUMBERS.map(|call| (call | X32_SYSCALL_BIT, Vec::new())));
    calls
}

fn rule_equals(index: u8, value: u64) -> Result<SeccompRule, BackendError> {
    rule_for_argument(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn rule_for_argument(
    index: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(index, length, operator, value)?])
}

fn condition(
    index: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(index, length, operator, value)
}

/// Matches if the masked bits of each of these arguments have this value.
fn rule_for_masked_bits(arguments: &[(u8, (u64, u64))]) -> Result<SeccompRule, BackendError> {
    let to_condition = |(index, (mask, value)): &(u8, (u64, u64))| {
        condition(*index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(*mask), *value)
    };
    SeccompRule::new(arguments.iter().map(to_condition).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    use nix::unistd::truncate;

    use super::*;

    /// Results of calls in a thread under the filter: `true` if the call works.
    fn call_results(dir: &Path) -> Vec<(&'static str, bool)> {
        let file = dir.join("file");
        let set_user_id = Permissions::from_mode(0o4755);
        let create = |mode, flags| {
            OpenOptions::new().write(true).create(true).mode(mode).custom_flags(flags).open(dir.join("new"))
        };
        let unnamed = |mode| OpenOptions::new().write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(dir);
        let open_truncating = || OpenOptions::new().read(true).custom_flags(libc::O_TRUNC).open(&file).map(drop);
        vec![
            ("chmod", fs::set_permissions(&file, Permissions::from_mode(0o755)).is_ok()),
            ("chmod of a directory", fs::set_permissions(dir, Permissions::from_mode(0o2755)).is_ok()),
            ("chmod set-user-id", fs::set_permissions(&file, set_user_id.clone()).is_ok()),
            ("fchmod set-user-id", File::open(&file).is_ok_and(|file| file.set_permissions(set_user_id).is_ok())),
            ("create set-user-id", create(0o4755, 0).is_ok()),
            ("create", create(0o755, 0).is_ok()),
            ("unnamed set-user-id", unnamed(0o4755).is_ok()),
            ("truncate", truncate(&file, 0).is_ok()),
            ("open to empty", open_truncating().is_ok()),
            ("write anew", fs::write(&file, "x").is_ok()),
            ("ftruncate", OpenOptions::new().write(true).open(&file).is_ok_and(|file| file.set_len(0).is_ok())),
            (
                "own limits",
                getrlimit(Resource::RLIMIT_NOFILE)
                    .and_then(|(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft, hard))
                    .is_ok(),
            ),
        ]
    }

    fn results_under_filter(deny_truncate: bool) -> io::Result<Vec<(&'static str, bool)>> {
        let temp = tempfile::tempdir()?;
        fs::write(temp.path().join("file"), "x")?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                nix::sys::prctl::set_no_new_privs().expect("no privileges");
                restrict(deny_truncate).expect("a filter");
                call_results(temp.path())
            });
            Ok(thread.join().expect("no panic"))
        })
    }

    #[test]
    fn setuid_is_denied_and_other_modes_work() -> io::Result<()> {
        for deny_truncate in [false, true] {
            let denied: Vec<_> = results_under_filter(deny_truncate)?
                .into_iter()
                .filter(|(_, works)| !works)
                .map(|(name, _)| name)
                .collect();
            let setuid_calls = ["chmod set-user-id", "fchmod set-user-id", "create set-user-id", "unnamed set-user-id"];
            let truncating_calls = ["truncate", "open to empty"];
            let expected: Vec<_> =
                setuid_calls.into_iter().chain(truncating_calls.into_iter().filter(|_| deny_truncate)).collect();
            assert_eq!(denied, expected);
        }
        Ok(())
    }
}
