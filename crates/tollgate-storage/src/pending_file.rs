//! A file before it appears under its name: who may read it, and until when.

use std::path::PathBuf;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody who knows its name, under `/files`: results and uploads.
    Public,
    /// Only the gateway: input images of a task.
    Private,
}

impl Visibility {
    /// The name of the folder that holds these files.
    pub(super) fn folder_name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// A file that is not visible yet.
#[derive(Debug, Clone)]
pub(super) struct PendingFile {
    pub(super) temporary: PathBuf,
    pub(super) visibility: Visibility,
    /// In Unix seconds.
    pub(super) expires_at: i64,
    pub(super) name: String,
}
