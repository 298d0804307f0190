//! A file that is not visible under its name yet: who may read it, and until when.

use std::path::PathBuf;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody who knows its name, at `/files`: results and uploads.
    Public,
    /// Only the gateway: input images of a task.
    Private,
}

impl Visibility {
    /// The name of the folder for files of this visibility.
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
    /// When the file expires, in Unix seconds.
    pub(super) expires_at: i64,
    pub(super) name: String,
}
