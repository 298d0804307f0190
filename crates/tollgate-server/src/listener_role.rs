//! What a listener of the gateway serves: with `admin.listen`, operators have one of their own.

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerRole {
    /// It is the only one, and serves everything.
    Everybody,
    /// It serves clients and the portal; another one serves operators.
    Clients,
    /// It serves operators: the admin API, the console, and what the pages of the console need of the client API.
    Operators,
}

impl ListenerRole {
    /// Whether the admin API and the console are here.
    pub fn serves_operators(self) -> bool {
        self != Self::Clients
    }

    /// Whether the portal is here.
    pub fn serves_portal(self) -> bool {
        self != Self::Operators
    }
}
