//! Finds out why the kernel refuses namespaces: a system call only returns an error number.

use std::fs;

use nix::unistd::geteuid;

/// The relevant settings.
#[derive(Debug, Default)]
pub struct NamespaceDiagnosis {
    is_root: bool,
    /// `user.max_user_namespaces`
    max_user_namespaces: Option<String>,
    /// `kernel.unprivileged_userns_clone`, of Debian's kernels.
    unprivileged_userns_clone: Option<String>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu's kernels.
    apparmor_restrict: Option<String>,
    /// This process's profile with its mode.
    apparmor_profile: Option<String>,
    /// What is mounted over a part of `/proc`.
    covered_proc_path: Option<String>,
    has_seccomp_filter: bool,
}

/// Empty directories that the kernel provides as mount points.
const MOUNT_POINTS: [&str; 2] = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];

/// The first path of `/proc` that is covered by a mount. In a user namespace, the kernel then refuses to mount another
/// `/proc`, which would reveal it.
fn find_covered_proc_path(mountinfo: &str) -> Option<String> {
    let mut points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4));
    points.find(|point| point.starts_with("/proc/") && !MOUNT_POINTS.contains(point)).map(str::to_owned)
}

impl NamespaceDiagnosis {
    pub fn collect() -> Self {
        let value = |path: &str| {
            let text = fs::read_to_string(path).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        Self {
            is_root: geteuid().is_root(),
            max_user_namespaces: value("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: value("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restrict: value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            apparmor_profile: value("/proc/self/attr/apparmor/current"),
            covered_proc_path: value("/proc/self/mountinfo").and_then(|text| find_covered_proc_path(&text)),
            has_seccomp_filter: value("/proc/self/status")
                .is_some_and(|text| text.lines().any(|line| line == "Seccomp:\t2")),
        }
    }

    pub fn likely_cause(&self) -> Option<String> {
        let is_set = |value: &Option<String>, to: &str| value.as_deref() == Some(to);
        let profile = self.apparmor_profile.as_deref();
        if is_set(&self.max_user_namespaces, "0") {
            return Some("user.max_user_namespaces is 0".to_owned());
        }
        if !self.is_root && is_set(&self.unprivileged_userns_clone, "0") {
            return Some("kernel.unprivileged_userns_clone is 0".to_owned());
        }
        if let Some(profile) = profile.filter(|profile| *profile != "unconfined" && !profile.ends_with("(unconfined)"))
        {
            return Some(format!("AppArmor confines the agent with the profile {profile}"));
        }
        if !self.is_root && is_set(&self.apparmor_restrict, "1") && profile == Some("unconfined") {
            let install = "install deploy/apparmor/simpletuner-worker";
            return Some(format!(
                "AppArmor prevents programs without a profile from creating user namespaces: {install}"
            ));
        }
        if let Some(path) = &self.covered_proc_path {
            return Some(format!(
                "{path} is covered by a mount, from ProtectHostname= or a similar setting of a service, or from a \
                container"
            ));
        }
        self.has_seccomp_filter.then(|| "the agent's system calls are filtered, as in a container".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_description() {
        let set = |value: &str| Some(value.to_owned());
        let unrestricted = || NamespaceDiagnosis {
            max_user_namespaces: set("63000"),
            unprivileged_userns_clone: set("1"),
            apparmor_restrict: set("0"),
            apparmor_profile: set("unconfined"),
            ..NamespaceDiagnosis::default()
        };
        for (facts, expected) in [
            (unrestricted(), None),
            (NamespaceDiagnosis::default(), None),
            (
                NamespaceDiagnosis { max_user_namespaces: set("0"), is_root: true, ..unrestricted() },
                Some("max_user_namespaces is 0"),
            ),
            (
                NamespaceDiagnosis { unprivileged_userns_clone: set("0"), ..unrestricted() },
                Some("unprivileged_userns_clone is 0"),
            ),
            (NamespaceDiagnosis { unprivileged_userns_clone: set("0"), is_root: true, ..unrestricted() }, None),
            (
                NamespaceDiagnosis { apparmor_restrict: set("1"), ..unrestricted() },
                Some("deploy/apparmor/simpletuner-worker"),
            ),
            (NamespaceDiagnosis { apparmor_restrict: set("1"), is_root: true, ..unrestricted() }, None),
            (
                NamespaceDiagnosis {
                    apparmor_restrict: set("1"),
                    apparmor_profile: set("simpletuner-worker (unconfined)"),
                    ..unrestricted()
                },
                None,
            ),
            (
                NamespaceDiagnosis { apparmor_profile: set("docker-default (enforce)"), ..unrestricted() },
                Some("profile docker-default"),
            ),
            (
                NamespaceDiagnosis { covered_proc_path: set("/proc/kmsg"), has_seccomp_filter: true, ..unrestricted() },
                Some("/proc/kmsg is covered"),
            ),
            (NamespaceDiagnosis { has_seccomp_filter: true, ..unrestricted() }, Some("as in a container")),
        ] {
            let cause = facts.likely_cause();
            assert_eq!(cause.is_some(), expected.is_some(), "{facts:?}: {cause:?}");
            assert!(cause.unwrap_or_default().contains(expected.unwrap_or_default()), "{facts:?}");
        }
    }

    #[test]
    fn covered_part_of_proc_is_found() {
        let mounts = |extra: &str| {
            format!(
                "21 27 0:19 / /proc rw,nosuid shared:12 - proc proc rw\n\
                 31 21 0:27 / /proc/sys/fs/binfmt_misc rw shared:14 - autofs systemd-1 rw\n{extra}"
            )
        };
        assert_eq!(find_covered_proc_path(&mounts("")), None);
        let service = mounts("90 21 0:24 /systemd/inaccessible/reg /proc/kmsg ro - tmpfs tmpfs rw\n");
        assert_eq!(find_covered_proc_path(&service).as_deref(), Some("/proc/kmsg"));
    }
}
