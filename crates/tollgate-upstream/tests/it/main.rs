//! The providers and the HTTP client through their public faces.

mod ark;
mod ark_fakes;
mod booth;
mod contract;
mod dashscope;
mod desk;
mod egress;
mod fal;
mod google;
mod google_fakes;
mod kling;
mod kling_films;
mod media_fakes;
mod openai_media;
mod pages;
mod pool;
mod providers;
mod replicate;
mod tls;
mod vendor;
mod xai;
