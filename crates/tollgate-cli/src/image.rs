//! `tollgate image PROMPT`: submits, shows progress, saves the images.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tollgate_media::{Catalogue, Endpoint};

use super::client::{Gateway, Target};
use super::common::{Common, Failed};
use super::generation::{self, build_body};

#[derive(Args)]
pub(super) struct Image {
    /// The prompt
    prompt: String,
    /// The model
    #[arg(long, value_name = "ID", default_value = "gpt-image-2-official")]
    model: String,
    /// A ratio such as 16:9, or pixels such as 1024x1024, depending on the model
    #[arg(long)]
    size: Option<String>,
    /// A tier such as 2k, if the model supports it
    #[arg(long)]
    resolution: Option<String>,
    /// A quality such as high, if the model supports it
    #[arg(long)]
    quality: Option<String>,
    /// Number of images
    #[arg(short, value_name = "N")]
    n: Option<u32>,
    /// A reference image: a URL, or a file to upload. May be repeated
    #[arg(long, value_name = "URL|FILE")]
    image: Vec<String>,
    /// File to write; for several images -2, -3, … is appended to the name [default: image.EXT]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Image {
    pub(super) async fn run(&self, common: &Common) -> Result<(), Failed> {
        let gateway = self.target.open()?;
        let body = self.body(&gateway).await?;
        let path = endpoint(&self.model).path();
        generation::generate_and_save(
            &gateway,
            path,
            &body,
            self.output.as_deref(),
            "image",
            common,
        )
        .await
    }

    async fn body(&self, gateway: &Gateway) -> Result<Value, Failed> {
        let mut images = Vec::with_capacity(self.image.len());
        for image in &self.image {
            images.push(gateway.link_to(image).await?);
        }
        Ok(build_body([
            ("model", Some(json!(self.model))),
            ("prompt", Some(json!(self.prompt))),
            ("size", self.size.as_ref().map(|v| json!(v))),
            ("resolution", self.resolution.as_ref().map(|v| json!(v))),
            ("quality", self.quality.as_ref().map(|v| json!(v))),
            ("n", self.n.map(|v| json!(v))),
            ("image_urls", (!images.is_empty()).then(|| json!(images))),
        ]))
    }
}

/// The path for requests with the model. A model that is not built in is assumed to generate images.
fn endpoint(model: &str) -> Endpoint {
    let built_in = Catalogue::new(&[])
        .ok()
        .and_then(|catalogue| catalogue.endpoint(model));
    built_in.unwrap_or(Endpoint::ImageGenerations)
}
