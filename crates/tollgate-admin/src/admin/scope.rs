//! Permissions of callers of the admin API: scopes, sets of scopes, and the roles of admins.

/// One permission of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Read users, ledger entries, usage and budgets.
    UsersRead,
    /// Change users and budgets.
    UsersWrite,
    /// Read keys.
    KeysRead,
    /// Change keys.
    KeysWrite,
    /// Read tasks.
    TasksRead,
    /// Cancel tasks, send webhooks again.
    TasksWrite,
    /// Read chats.
    ChatsRead,
    /// Change chats. No endpoint needs it yet.
    ChatsWrite,
    /// Read channels and their health.
    ChannelsRead,
    /// Change channels.
    ChannelsWrite,
    /// Read prices and models.
    PricesRead,
    /// Change prices and models.
    PricesWrite,
    /// Read the configuration, nodes, admins, tokens and alerts.
    ConfigRead,
    /// Change admins, tokens and alerts.
    ConfigWrite,
    /// Read the trail and audits.
    EventsRead,
    /// Start audits.
    EventsWrite,
    /// Credit users, refund tasks and chats.
    MoneyWrite,
    /// Change the keys of providers.
    SecretsWrite,
}

/// Every scope with its name. `X:read` comes directly before `X:write`.
const SCOPES: [(Scope, &str); 18] = [
    (Scope::UsersRead, "users:read"),
    (Scope::UsersWrite, "users:write"),
    (Scope::KeysRead, "keys:read"),
    (Scope::KeysWrite, "keys:write"),
    (Scope::TasksRead, "tasks:read"),
    (Scope::TasksWrite, "tasks:write"),
    (Scope::ChatsRead, "chats:read"),
    (Scope::ChatsWrite, "chats:write"),
    (Scope::ChannelsRead, "channels:read"),
    (Scope::ChannelsWrite, "channels:write"),
    (Scope::PricesRead, "prices:read"),
    (Scope::PricesWrite, "prices:write"),
    (Scope::ConfigRead, "config:read"),
    (Scope::ConfigWrite, "config:write"),
    (Scope::EventsRead, "events:read"),
    (Scope::EventsWrite, "events:write"),
    (Scope::MoneyWrite, "money:write"),
    (Scope::SecretsWrite, "secrets:write"),
];

impl Scope {
    /// The scope's name, such as `users:read`.
    pub fn name(self) -> &'static str {
        SCOPES[self as usize].1
    }

    /// The scope of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = SCOPES.iter().find(|(_, known)| *known == name);
        found.map(|(scope, _)| *scope)
    }

    /// Whether a session needs to have entered its password in the last five minutes to use the scope.
    pub fn needs_fresh_session(self) -> bool {
        matches!(self, Self::MoneyWrite | Self::SecretsWrite)
    }
}

/// The names of all scopes.
pub fn scope_names() -> Vec<&'static str> {
    SCOPES.iter().map(|(_, name)| *name).collect()
}

/// A set of scopes. `X:write` includes `X:read`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scopes(u32);

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self((1 << SCOPES.len()) - 1);

    /// Whether the set has the scope.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u32) != 0
    }

    /// Whether the set has every scope of `other`.
    pub fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the scopes in the set.
    pub fn names(self) -> Vec<&'static str> {
        let own = SCOPES.iter().filter(|(scope, _)| self.contains(*scope));
        own.map(|(_, name)| *name).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        for scope in scopes {
            set.0 |= 1 << scope as u32;
            if let Some(resource) = scope.name().strip_suffix(":write")
                && let Some(read) = Scope::from_name(&format!("{resource}:read"))
            {
                set.0 |= 1 << read as u32;
            }
        }
        set
    }
}

/// The role of an admin: a set of scopes with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All scopes.
    Owner,
    /// All scopes except those for money and provider keys.
    Operator,
    /// All scopes for reading except `config:read`; writes prices and money.
    Finance,
    /// Reads users, keys, tasks, chats, channels and prices; cancels tasks and resends webhooks.
    Support,
    /// All scopes for reading.
    Viewer,
}

/// Every role with its name.
pub const ROLES: [(Role, &str); 5] = [
    (Role::Owner, "owner"),
    (Role::Operator, "operator"),
    (Role::Finance, "finance"),
    (Role::Support, "support"),
    (Role::Viewer, "viewer"),
];

impl Role {
    /// The role's name.
    pub fn name(self) -> &'static str {
        ROLES[self as usize].1
    }

    /// The role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = ROLES.iter().find(|(_, known)| *known == name);
        found.map(|(role, _)| *role)
    }

    /// The scopes of an admin with the role.
    pub fn scopes(self) -> Scopes {
        let all = || SCOPES.iter().map(|(scope, _)| *scope);
        let is_read = |scope: &Scope| scope.name().ends_with(":read");
        match self {
            Self::Owner => Scopes::ALL,
            Self::Operator => all().filter(|scope| !scope.needs_fresh_session()).collect(),
            Self::Finance => all()
                .filter(|scope| is_read(scope) && *scope != Scope::ConfigRead)
                .chain([Scope::PricesWrite, Scope::MoneyWrite])
                .collect(),
            Self::Support => [
                Scope::UsersRead,
                Scope::KeysRead,
                Scope::TasksWrite,
                Scope::ChatsRead,
                Scope::ChannelsRead,
                Scope::PricesRead,
            ]
            .into_iter()
            .collect(),
            Self::Viewer => all().filter(is_read).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_roles_stand_at_their_index_and_write_includes_read() {
        for (at, (scope, name)) in SCOPES.iter().enumerate() {
            assert_eq!(
                (*scope as usize, Scope::from_name(name)),
                (at, Some(*scope))
            );
        }
        for (at, (role, name)) in ROLES.iter().enumerate() {
            assert_eq!((*role as usize, Role::from_name(name)), (at, Some(*role)));
        }
        let one = |scope| [scope].into_iter().collect::<Scopes>();
        assert_eq!(one(Scope::KeysWrite).names(), ["keys:read", "keys:write"]);
        assert_eq!(one(Scope::MoneyWrite).names(), ["money:write"]);
    }

    #[test]
    fn roles_have_the_documented_scopes() {
        let missing = |role: Role| -> Vec<&str> {
            let scopes = role.scopes();
            let others = SCOPES.iter().filter(|(scope, _)| !scopes.contains(*scope));
            others.map(|(_, name)| *name).collect()
        };
        assert!(missing(Role::Owner).is_empty());
        assert_eq!(missing(Role::Operator), ["money:write", "secrets:write"]);
        let support = [
            "users:read",
            "keys:read",
            "tasks:read",
            "tasks:write",
            "chats:read",
            "channels:read",
            "prices:read",
        ];
        assert_eq!(Role::Support.scopes().names(), support);
        let finance = [
            "users:read",
            "keys:read",
            "tasks:read",
            "chats:read",
            "channels:read",
            "prices:read",
            "prices:write",
            "events:read",
            "money:write",
        ];
        assert_eq!(Role::Finance.scopes().names(), finance);
        assert!(
            Role::Viewer
                .scopes()
                .names()
                .iter()
                .all(|name| name.ends_with(":read"))
        );
        assert_eq!(Role::Viewer.scopes().names().len(), 8);
    }
}
