//! Who may do what.

use serde::{Deserialize, Serialize};

/// One thing that a person, or a script, may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Permission {
    /// Manage one's own password, API tokens and sessions.
    AccountManage,
    /// Make, see, drain and delete workers, and give them new tokens.
    AdminWorkers,
    /// Make people, and say what they may do.
    AdminUsers,
    /// Read the audit trail.
    AdminAudit,
    /// Read configurations.
    ConfigView,
    /// Add configurations, and change and remove one's own.
    ConfigEdit,
    /// Change and remove configurations of others.
    ConfigManage,
    /// Submit jobs.
    JobSubmit,
    /// See jobs of one's own.
    JobViewOwn,
    /// See everybody's jobs.
    JobViewAll,
    /// Cancel jobs of one's own.
    JobCancelOwn,
    /// Cancel anybody's jobs.
    JobCancelAll,
    /// Say which job is more urgent.
    QueueManage,
    /// Keep secrets that everybody's jobs are given.
    SecretManage,
    /// Read what is measured of the server.
    OpsMetrics,
    /// Read how the server is set up, and how it does.
    AdminSystem,
}

impl Permission {
    /// All there are.
    pub const ALL: [Self; 16] = [
        Self::AccountManage,
        Self::AdminWorkers,
        Self::AdminUsers,
        Self::AdminAudit,
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
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AccountManage => "account.manage",
            Self::AdminWorkers => "admin.workers",
            Self::AdminUsers => "admin.users",
            Self::AdminAudit => "admin.audit",
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
        }
    }

    /// The permission of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == name)
    }

    /// What it brings along: who may see all jobs may see their own.
    const fn narrower(self) -> Option<Self> {
        match self {
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
            format!("{name:?} is no permission; there are {}", names.join(", "))
        })
    }
}

impl From<Permission> for String {
    fn from(permission: Permission) -> Self {
        permission.as_str().to_owned()
    }
}

/// Several of them; what the broader ones bring along is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Permission>", into = "Vec<Permission>")]
pub struct Permissions(u32);

impl Permissions {
    /// Every one.
    pub fn all() -> Self {
        Permission::ALL.into_iter().collect()
    }

    /// Whether it is among them.
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u16) != 0
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether each of them is in `other`.
    pub const fn within(self, other: Self) -> bool {
        self.and(other).0 == self.0
    }

    /// One by one.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        let with = |set: u32, permission: Permission| set | 1 << permission as u16;
        let with_narrower = |broad: Permission| std::iter::successors(Some(broad), |one| one.narrower());
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

/// What somebody is here, from the one who may least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks on.
    Viewer,
    /// Trains.
    Researcher,
    /// Trains, and sees to everybody's jobs.
    Lead,
    /// Does everything.
    Admin,
}

impl Role {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Researcher, Self::Lead, Self::Admin];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Researcher => "researcher",
            Self::Lead => "lead",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// What it may do.
    pub fn permissions(self) -> Permissions {
        use Permission as P;
        match self {
            Self::Viewer => [P::AccountManage, P::JobViewAll, P::ConfigView].into_iter().collect(),
            Self::Researcher => {
                [P::AccountManage, P::JobSubmit, P::JobViewOwn, P::JobCancelOwn, P::ConfigEdit].into_iter().collect()
            }
            Self::Lead => {
                [P::AccountManage, P::JobSubmit, P::JobViewAll, P::JobCancelAll, P::QueueManage, P::ConfigManage]
                    .into_iter()
                    .collect()
            }
            Self::Admin => Permissions::all(),
        }
    }
}

/// Whether somebody, or a token, can be called so: 1 to 32 lower-case letters, digits, `.`, `_` and `-`, beginning with a
/// letter or digit. Names stand in the audit trail and in addresses.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=32).contains(&text.len())
        && text.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
        && text.bytes().next().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
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
    fn the_broad_bring_the_narrow_along() {
        let of = |permissions: &[Permission]| permissions.iter().copied().collect::<Permissions>();
        let all = of(&[Permission::JobViewAll]);
        assert!(all.has(Permission::JobViewOwn) && !all.has(Permission::JobCancelOwn));
        assert!(of(&[Permission::JobCancelAll]).has(Permission::JobCancelOwn));
        assert!(of(&[Permission::ConfigEdit]).has(Permission::ConfigView));
        assert!(of(&[Permission::ConfigManage]).has(Permission::ConfigView));
        assert!(!of(&[Permission::JobViewOwn]).has(Permission::JobViewAll));
        assert_eq!(Vec::from(all), [Permission::JobViewOwn, Permission::JobViewAll]);
        assert_eq!(Permissions::from(Vec::from(Permissions::all())), Permissions::all());
    }

    #[test]
    fn sets() {
        let (viewer, lead) = (Role::Viewer.permissions(), Role::Lead.permissions());
        assert!(viewer.within(lead) && !lead.within(viewer) && Permissions::default().within(viewer));
        assert_eq!(viewer.and(lead), viewer);
        assert_eq!(
            Role::Researcher.permissions().and(viewer).iter().collect::<Vec<_>>(),
            [Permission::AccountManage, Permission::ConfigView, Permission::JobViewOwn]
        );
    }

    #[test]
    fn what_each_role_may_do() {
        let rows = [
            (Role::Viewer, "account.manage config.view job.view.own job.view.all"),
            (Role::Researcher, "account.manage config.view config.edit job.submit job.view.own job.cancel.own"),
            (
                Role::Lead,
                "account.manage config.view config.edit config.manage job.submit job.view.own job.view.all job.cancel.own job.cancel.all queue.manage",
            ),
        ];
        for (role, names) in rows {
            let found: Vec<&str> = role.permissions().iter().map(Permission::as_str).collect();
            assert_eq!(found.join(" "), names);
        }
        assert_eq!(Role::Admin.permissions().iter().count(), Permission::ALL.len());
    }

    #[test]
    fn names_of_people() {
        for good in ["ada", "a", "ada.l-2_x", "7of9", &"x".repeat(32)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Ada", "ä", "a b", "-a", ".a", "a/b", "a\n", &"x".repeat(33)] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
