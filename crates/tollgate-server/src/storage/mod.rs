//! The data directory and the storage folder: stored files, their names and types, image uploads.

mod audio_end;
pub mod availability;
pub mod data_dir;
pub mod file_name;
pub mod files;
mod local_folder;
mod mp4_end;
pub mod types;
pub mod uploads;
