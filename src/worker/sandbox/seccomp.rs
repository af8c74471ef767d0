//! System calls that no trainer needs, refused: those by which processes leave sandboxes, look into others, or reach parts
//! of the kernel that have let people out before. Everything else is allowed, as CUDA, NCCL and Python need much.

use std::collections::BTreeMap;

use nix::libc::{self, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Answered with "not permitted".
const REFUSED: &[c_long] = &[
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

/// Answered as by a kernel that does not have them, so that libraries take the older way. `clone3` keeps its flags in memory,
/// where no filter can look; `io_uring` makes calls that no filter sees.
const ABSENT: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// `clone` with one of these makes a namespace.
const NAMESPACES: [i32; 8] = [
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
const FAMILIES: [i32; 4] = [libc::AF_ALG, libc::AF_VSOCK, libc::AF_PACKET, libc::AF_KEY];

/// On `x86_64` the same calls can be made by other numbers, of its 32-bit variant.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// Restricts this thread and everything that it starts.
///
/// # Errors
/// A sentence, if the kernel takes no filter.
pub fn restrict() -> Result<(), String> {
    let refuse = |error: BackendError| format!("the system call filter cannot be built: {error}");
    for filter in filters().map_err(refuse)? {
        seccompiler::apply_filter(&filter)
            .map_err(|error| format!("the system call filter cannot be used: {error}"))?;
    }
    Ok(())
}

fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        argument(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
    });
    refused.insert(libc::SYS_clone, namespaces.into_iter().collect::<Result<_, _>>()?);
    let families = FAMILIES.map(|family| equals(0, u64::from(family.unsigned_abs())));
    refused.insert(libc::SYS_socket, families.into_iter().collect::<Result<_, _>>()?);
    // Characters typed into somebody's terminal.
    let typed = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| equals(1, request));
    refused.insert(libc::SYS_ioctl, typed.into_iter().collect::<Result<_, _>>()?);
    let absent = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    Ok([program(refused, libc::EPERM)?, program(absent, libc::ENOSYS)?])
}

fn program(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, BackendError> {
    #[cfg(target_arch = "x86_64")]
    let calls = with_x32(calls);
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?.try_into()
}

#[cfg(target_arch = "x86_64")]
fn with_x32(mut calls: BTreeMap<i64, Vec<SeccompRule>>) -> BTreeMap<i64, Vec<SeccompRule>> {
    /// Those with numbers of their own there: ptrace, `kexec_load`, `process_vm_readv`, `process_vm_writev`.
    const OWN_NUMBERS: [i64; 4] = [521, 528, 539, 540];
    let again: Vec<_> = calls.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
    calls.extend(again);
    calls.extend(OWN_NUMBERS.map(|call| (call | X32, Vec::new())));
    calls
}

fn equals(index: u8, value: u64) -> Result<SeccompRule, BackendError> {
    argument(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn argument(index: u8, length: SeccompCmpArgLen, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(index, length, how, value)?])
}
