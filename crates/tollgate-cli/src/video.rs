//! `tollgate video PROMPT`: submits, shows progress, saves the video.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tollgate_media::Endpoint;

use super::client::{Gateway, Target};
use super::common::{Common, Failed};
use super::generation::{self, build_body};

#[derive(Args)]
pub(super) struct Video {
    /// The prompt
    prompt: String,
    /// The model
    #[arg(long, value_name = "ID", default_value = "seedance-1.0-fast")]
    model: String,
    /// Duration in seconds, if the model supports it
    #[arg(long, value_name = "S")]
    seconds: Option<u32>,
    /// Pixels such as 1280x720, if the model supports it
    #[arg(long)]
    size: Option<String>,
    /// Aspect ratio such as 16:9, if the model supports it
    #[arg(long, value_name = "RATIO")]
    aspect_ratio: Option<String>,
    /// A tier such as 720p, if the model supports it
    #[arg(long)]
    resolution: Option<String>,
    /// A reference image: a URL, or a file to upload. May be repeated
    #[arg(long, value_name = "URL|FILE")]
    image: Vec<String>,
    /// File to write [default: video.EXT]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Video {
    pub(super) async fn run(&self, common: &Common) -> Result<(), Failed> {
        let gateway = self.target.open()?;
        let body = self.body(&gateway).await?;
        let path = Endpoint::VideoGenerations.path();
        let output = self.output.as_deref();
        generation::generate_and_save(&gateway, path, &body, output, "video", common).await
    }

    async fn body(&self, gateway: &Gateway) -> Result<Value, Failed> {
        let mut images = Vec::with_capacity(self.image.len());
        for image in &self.image {
            images.push(gateway.link_to(image).await?);
        }
        Ok(build_body([
            ("model", Some(json!(self.model))),
            ("prompt", Some(json!(self.prompt))),
            ("duration", self.seconds.map(|v| json!(v))),
            ("size", self.size.as_ref().map(|v| json!(v))),
            ("aspect_ratio", self.aspect_ratio.as_ref().map(|v| json!(v))),
            ("resolution", self.resolution.as_ref().map(|v| json!(v))),
            ("images", (!images.is_empty()).then(|| json!(images))),
        ]))
    }
}
