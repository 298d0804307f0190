//! The sandbox and the HTTP client through their public faces.

mod ark;
mod ark_fakes;
mod booth;
mod chat;
mod dashscope;
mod desk;
mod egress;
mod fal;
mod film;
mod google;
mod google_fakes;
mod kling;
mod kling_films;
mod media_fakes;
mod openai_media;
mod pages;
mod pool;
mod providers;
mod references;
mod replicate;
mod sandbox;
mod studio;
mod tls;
mod vendor;
mod voice;
mod xai;
