//! Permissions and roles.

use serde::{Deserialize, Serialize};

use crate::words::wire_words;

/// What a user or an API token is permitted to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Permission {
    /// Manage one's own password, API tokens and sessions.
    AccountManage,
    /// Create, drain and delete workers, rotate their tokens, and see all of their details.
    AdminWorkers,
    /// Create users, and change their roles.
    AdminUsers,
    /// Read the audit log.
    AdminAudit,
    /// See workers, their GPUs and their jobs.
    FleetView,
    /// Read configurations.
    ConfigView,
    /// Create configurations, and change and delete one's own.
    ConfigEdit,
    /// Change and delete configurations of other users.
    ConfigManage,
    /// Submit jobs.
    JobSubmit,
    /// See one's own jobs.
    JobViewOwn,
    /// See the jobs of all users.
    JobViewAll,
    /// Cancel one's own jobs.
    JobCancelOwn,
    /// Cancel the jobs of all users.
    JobCancelAll,
    /// Change the priority of jobs.
    QueueManage,
    /// Manage shared secrets.
    SecretManage,
    /// Read the server's metrics.
    OpsMetrics,
    /// Read the server's settings and state.
    AdminSystem,
    /// Manage teams and their shares.
    AdminTeams,
    /// Submit urgent jobs.
    JobUrgent,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 19] = [
        Self::AccountManage,
        Self::AdminWorkers,
        Self::AdminUsers,
        Self::AdminAudit,
        Self::FleetView,
        Self::ConfigView,
        Self::ConfigEdit,
        Self::ConfigManage,
        Self::JobSubmit,
        Self::JobViewOwn,
        Self::JobViewAll,
        Self::JobCancelOwn,
        Self::JobCancelAll,
        Self::QueueManage,
        Self::SecretManage,
        Self::OpsMetrics,
        Self::AdminSystem,
        Self::AdminTeams,
        Self::JobUrgent,
    ];

    /// Returns the permission's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountManage => "account.manage",
            Self::AdminWorkers => "admin.workers",
            Self::AdminUsers => "admin.users",
            Self::AdminAudit => "admin.audit",
            Self::FleetView => "fleet.view",
            Self::ConfigView => "config.view",
            Self::ConfigEdit => "config.edit",
            Self::ConfigManage => "config.manage",
            Self::JobSubmit => "job.submit",
            Self::JobViewOwn => "job.view.own",
            Self::JobViewAll => "job.view.all",
            Self::JobCancelOwn => "job.cancel.own",
            Self::JobCancelAll => "job.cancel.all",
            Self::QueueManage => "queue.manage",
            Self::SecretManage => "secret.manage",
            Self::OpsMetrics => "ops.metrics",
            Self::AdminSystem => "admin.system",
            Self::AdminTeams => "admin.teams",
            Self::JobUrgent => "job.urgent",
        }
    }

    /// Parses a permission's name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == name)
    }

    /// The narrower permission that this one includes: seeing all jobs includes seeing one's own.
    const fn implied(self) -> Option<Self> {
        match self {
            Self::AdminWorkers => Some(Self::FleetView),
            Self::JobViewAll => Some(Self::JobViewOwn),
            Self::JobCancelAll => Some(Self::JobCancelOwn),
            Self::ConfigEdit => Some(Self::ConfigView),
            Self::ConfigManage => Some(Self::ConfigEdit),
            _ => None,
        }
    }
}

impl TryFrom<String> for Permission {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::parse(&name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::as_str).collect();
            format!("unknown permission {name:?}; valid permissions: {}", names.join(", "))
        })
    }
}

impl From<Permission> for String {
    fn from(permission: Permission) -> Self {
        permission.as_str().to_owned()
    }
}

/// A set of permissions. Narrower permissions that a broader one includes are always part of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Permission>", into = "Vec<Permission>")]
pub struct Permissions(u32);

impl Permissions {
    /// Returns all permissions.
    pub fn all() -> Self {
        Permission::ALL.into_iter().collect()
    }

    /// Returns whether the set contains a permission.
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u16) != 0
    }

    /// Returns the permissions that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether all permissions are in `other`.
    pub const fn is_subset_of(self, other: Self) -> bool {
        self.intersection(other).0 == self.0
    }

    /// Iterates over the permissions.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.contains(*permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        let with = |set: u32, permission: Permission| set | 1 << permission as u16;
        let with_narrower = |broad: Permission| std::iter::successors(Some(broad), |permission| permission.implied());
        Self(permissions.into_iter().flat_map(with_narrower).fold(0, with))
    }
}

impl From<Vec<Permission>> for Permissions {
    fn from(permissions: Vec<Permission>) -> Self {
        permissions.into_iter().collect()
    }
}

impl From<Permissions> for Vec<Permission> {
    fn from(permissions: Permissions) -> Self {
        permissions.iter().collect()
    }
}

wire_words!(
    /// The role of a user, from the least to the most permissions.
    Role {
        /// Can only view.
        Viewer = "viewer",
        /// Can train.
        Researcher = "researcher",
        /// Can train, and manage the jobs of all users.
        Lead = "lead",
        /// Has all permissions.
        Admin = "admin",
    }
);

impl Role {
    /// Returns the role's permissions, which include those of the lower roles.
    pub fn permissions(self) -> Permissions {
        Self::ALL.into_iter().filter(|role| *role <= self).flat_map(Self::own_permissions).copied().collect()
    }

    /// The permissions that the role has in addition to the lower role.
    const fn own_permissions(self) -> &'static [Permission] {
        use Permission as P;
        match self {
            Self::Viewer => &[P::AccountManage, P::FleetView, P::JobViewAll, P::ConfigView],
            Self::Researcher => &[P::JobSubmit, P::JobCancelOwn, P::ConfigEdit],
            Self::Lead => &[P::JobCancelAll, P::QueueManage, P::ConfigManage, P::JobUrgent],
            Self::Admin => &Permission::ALL,
        }
    }
}

/// Returns whether a user or token can have this name: 1 to 32 lower-case letters, digits, `.`, `_` and `-`, starting
/// with a letter or digit. Names appear in the audit log and in URLs.
pub fn is_valid_name(text: &str) -> bool {
    let is_lowercase_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| is_lowercase_or_digit(byte) || b"._-".contains(&byte))
        && text.bytes().next().is_some_and(is_lowercase_or_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Some(permission));
            assert_eq!(Permission::try_from(String::from(permission)), Ok(permission));
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!((Permission::parse("admin"), Role::parse("root")), (None, None));
        assert!(Permission::try_from("x".to_owned()).is_err_and(|error| error.contains("admin.workers")));
    }

    #[test]
    fn broad_permissions_include_narrow_ones() {
        let permission_set = |permissions: &[Permission]| permissions.iter().copied().collect::<Permissions>();
        let all = permission_set(&[Permission::JobViewAll]);
        assert!(all.contains(Permission::JobViewOwn) && !all.contains(Permission::JobCancelOwn));
        assert!(permission_set(&[Permission::JobCancelAll]).contains(Permission::JobCancelOwn));
        assert!(permission_set(&[Permission::ConfigEdit]).contains(Permission::ConfigView));
        assert!(permission_set(&[Permission::ConfigManage]).contains(Permission::ConfigView));
        assert!(!permission_set(&[Permission::JobViewOwn]).contains(Permission::JobViewAll));
        assert_eq!(Vec::from(all), [Permission::JobViewOwn, Permission::JobViewAll]);
        assert_eq!(Permissions::from(Vec::from(Permissions::all())), Permissions::all());
    }

    #[test]
    fn permission_sets_intersect_and_compare() {
        let (viewer, lead) = (Role::Viewer.permissions(), Role::Lead.permissions());
        assert!(!lead.is_subset_of(viewer) && Permissions::default().is_subset_of(viewer));
        assert_eq!(viewer.intersection(lead), viewer);
        assert_eq!(
            Role::Researcher.permissions().intersection(viewer).iter().collect::<Vec<_>>(),
            viewer.iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn role_includes_the_permissions_of_lower_roles() {
        for roles in Role::ALL.windows(2) {
            let (lower, higher) = (roles[0].permissions(), roles[1].permissions());
            assert!(lower.is_subset_of(higher) && !higher.is_subset_of(lower), "{roles:?}");
        }
    }

    #[test]
    fn every_role_sees_jobs_and_workers() {
        for role in Role::ALL {
            let permissions = role.permissions();
            assert!(
                permissions.contains(Permission::JobViewAll) && permissions.contains(Permission::FleetView),
                "{role:?}"
            );
        }
        let admins = [Permission::AdminWorkers].into_iter().collect::<Permissions>();
        assert!(admins.contains(Permission::FleetView), "managing workers includes seeing them");
    }

    #[test]
    fn permissions_of_each_role() {
        let rows = [
            (Role::Viewer, "account.manage fleet.view config.view job.view.own job.view.all"),
            (
                Role::Researcher,
                "account.manage fleet.view config.view config.edit job.submit job.view.own job.view.all job.cancel.own",
            ),
            (
                Role::Lead,
                "account.manage fleet.view config.view config.edit config.manage job.submit job.view.own job.view.all job.cancel.own job.cancel.all queue.manage job.urgent",
            ),
        ];
        for (role, names) in rows {
            let found: Vec<&str> = role.permissions().iter().map(Permission::as_str).collect();
            assert_eq!(found.join(" "), names);
        }
        assert_eq!(Role::Admin.permissions().iter().count(), Permission::ALL.len());
    }

    #[test]
    fn user_names_are_validated() {
        for good in ["ada", "a", "ada.l-2_x", "7of9", &"x".repeat(32)] {
            assert!(is_valid_name(good), "{good}");
        }
        for bad in ["", "Ada", "ä", "a b", "-a", ".a", "a/b", "a\n", &"x".repeat(33)] {
            assert!(!is_valid_name(bad), "{bad:?}");
        }
    }
}
