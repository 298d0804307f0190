//! The data directory, and the storage of files in a folder or in S3: reading, writing and deleting them, their names and types.
//!
//! The futures of `s3` are boxed: an async function is compiled in the crate that awaits it, and this code does not need the optimisation of that
//! crate.

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
