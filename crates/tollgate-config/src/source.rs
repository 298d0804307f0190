//! [`Source`]: where a channel, price or model is configured.

/// Where a channel, price or model is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the file, the environment or on the command line.
    File,
    /// In the database, written by the admin API.
    Database,
    /// Not configured: a built-in default, which applies if nothing else is configured.
    BuiltIn,
}

impl Source {
    /// The name in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Database => "database",
            Self::BuiltIn => "builtin",
        }
    }
}
