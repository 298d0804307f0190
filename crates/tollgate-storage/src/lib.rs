//! The data directory, and the storage of files in a folder or in S3: stored files, their names and types.
//!
//! What S3 takes is behind pointers (`s3`): an async function is compiled where it is awaited, and this code is not worth the
//! optimisation of the crate that awaits it.

mod audio_end;
pub mod availability;
pub mod data_dir;
mod file_head;
pub mod file_name;
pub mod files;
mod health;
mod local_folder;
mod mp4_end;
mod pending_file;
mod s3;
pub mod types;
