//! The role of a listener: which routes it serves. With `admin.listen`, operators have a separate listener.

/// The role of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerRole {
    /// The only listener, which serves everything.
    Everybody,
    /// Serves clients and the portal; another listener serves operators.
    Clients,
    /// Serves operators: the admin API, the console, and the parts of the client API that pages of the console need.
    Operators,
}

impl ListenerRole {
    /// Whether the listener serves the admin API and the console.
    pub fn serves_operators(self) -> bool {
        self != Self::Clients
    }

    /// Whether the listener serves the portal.
    pub fn serves_portal(self) -> bool {
        self != Self::Operators
    }
}
