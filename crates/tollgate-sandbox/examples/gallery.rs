//! Generates sandbox images of many sizes and prompts in a folder and prints how long each took.
//!
//! `cargo run --release -p tollgate-sandbox --example gallery -- /tmp/gallery`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tollgate_core::Adjustment;
use tollgate_media::image::{Background, ImageFormat, ImageJob, PixelSize, Size};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::Settings;
use tollgate_upstream::{
    Attempt, Channel, ImageCall, InputFile, ProviderError, ResultData, ResultSink,
};

const PROMPTS: &[(&str, u32, u32, &str)] = &[
    ("fox", 1024, 1024, "A red fox in the snow at dawn"),
    ("word", 1024, 1024, "Lighthouse"),
    (
        "poem",
        1024,
        1536,
        "The old harbour where fishing boats sleep under a blanket of fog, and one lantern is still burning",
    ),
    (
        "chinese",
        1024,
        1024,
        "雪山脚下的小村庄，夕阳西下，炊烟袅袅，一只红狐狸从林间小路上走过。",
    ),
    (
        "mixed",
        1536,
        864,
        "Cyberpunk 上海 skyline, 霓虹灯 reflections — ultra detailed, 8k",
    ),
    ("emoji", 768, 768, "Party time 🎉🎉 with cats 🐱 and cake"),
    ("wide", 3072, 1024, "Desert caravan crossing the dunes"),
    ("panorama", 4096, 512, "Eight times as wide as high"),
    ("tower", 512, 4096, "A tower that reaches into the clouds"),
    (
        "odd",
        887,
        1774,
        "An odd size that some models take as asked",
    ),
    ("small", 512, 512, "Tiny watercolour of a kingfisher"),
    ("kanji", 1365, 1024, "東京の夜、雨に濡れた路地と赤い提灯"),
    (
        "large",
        4096,
        4096,
        "Cathedral of light in an ancient forest",
    ),
    (
        "url",
        1024,
        1024,
        "https://example.com/averyveryveryverylongpaththatneverends/andgoesonandonandon/withoutanyspace?x=1",
    ),
];

struct Folder {
    path: PathBuf,
}

#[async_trait::async_trait]
impl ResultSink for Folder {
    async fn deliver(&self, result: ResultData) -> Result<(), ProviderError> {
        let ResultData::Bytes(bytes) = result else {
            panic!("the sandbox returns complete images");
        };
        println!("   {} bytes", bytes.len());
        std::fs::write(&self.path, &bytes).expect("the folder is writable");
        Ok(())
    }

    fn progress(&self, _percent: u8) {}

    fn record_adjustment(&self, adjustment: Adjustment) {
        println!("   {adjustment:?}");
    }
}

fn job(prompt: &str, width: u32, height: u32) -> ImageJob {
    ImageJob {
        model: "gallery".into(),
        family: "gallery".into(),
        prompt: prompt.into(),
        negative_prompt: None,
        n: 1,
        size: Size {
            pixels: Some(PixelSize::new(width, height)),
            ratio: None,
            tier: None,
        },
        quality: None,
        output_format: ImageFormat::Png,
        output_compression: None,
        background: None,
        moderation: None,
        seed: None,
        watermark: None,
        references: Vec::new(),
        mask: None,
        extra: serde_json::Map::new(),
    }
}

async fn make(folder: &Path, name: &str, job: &ImageJob) {
    make_from(folder, name, job, &[], None).await;
}

/// An earlier image of the gallery as an input.
fn input(folder: &Path, name: &str, width: u32, height: u32) -> InputFile {
    let path = folder.join(name);
    InputFile {
        field: "image_urls".into(),
        bytes: std::fs::metadata(&path)
            .expect("it was generated before")
            .len(),
        path,
        format: ImageFormat::Png,
        size: PixelSize::new(width, height),
    }
}

async fn make_from(
    folder: &Path,
    name: &str,
    job: &ImageJob,
    references: &[InputFile],
    mask: Option<&InputFile>,
) {
    let channel = Arc::new(Channel::new("sandbox", "sandbox"));
    let egress = Client::new(ClientOptions::default());
    let provider = tollgate_sandbox::open(&channel, &Settings::default(), &egress);
    let images = provider.image.expect("the sandbox supports images");
    let delivery = Folder {
        path: folder.join(format!("{name}.{}", job.output_format.extension())),
    };
    let start = Instant::now();
    let model = ChannelModel::new(&job.model, &job.model);
    let call = ImageCall {
        attempt: Attempt {
            task_id: "gallery",
            external_id: "gallery-1",
            model: &model,
            key: None,
            failed_attempts: 0,
            trace: None,
            sink: &delivery,
            cancel: CancellationToken::new(),
        },
        job,
        references,
        mask,
    };
    images.start(call).await.expect("it draws");
    println!("{name}.{}: {:?}", job.output_format.name(), start.elapsed());
}

#[tokio::main]
async fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("name a folder"));
    std::fs::create_dir_all(&folder).expect("the folder can be created");
    for (name, width, height, prompt) in PROMPTS {
        make(&folder, name, &job(prompt, *width, *height)).await;
    }
    for number in 0..12 {
        let prompt = format!("Variation number {number} on a theme");
        make(
            &folder,
            &format!("variation-{number}"),
            &job(&prompt, 768, 768),
        )
        .await;
    }
    let long = "The quick brown fox jumps over the lazy dog while rain falls softly on the roofs. "
        .repeat(20);
    make(&folder, "long", &job(&long, 1024, 1024)).await;
    variants(&folder).await;
    for format in [ImageFormat::Jpeg, ImageFormat::Webp] {
        for (width, height) in [(1024, 1024), (4096, 4096)] {
            let mut job = job("Formats and how long they take", width, height);
            job.output_format = format;
            make(&folder, &format!("format-{width}"), &job).await;
        }
    }
}

async fn variants(folder: &Path) {
    for (name, width, height) in [("sticker", 1024, 1024), ("sticker-wide", 1536, 1024)] {
        let mut job = job("A badge for the mountain rescue team", width, height);
        job.background = Some(Background::Transparent);
        job.watermark = Some(true);
        make(folder, name, &job).await;
    }
    let mut coloured = job("Only the colours that were asked for", 1024, 1024);
    coloured.extra = serde_json::from_value(serde_json::json!({"color_palette": [
        {"hex": "#0B3954", "ratio": "25.00%"}, {"hex": "#BFD7EA", "ratio": "25.00%"},
        {"hex": "#FF6663", "ratio": "25.00%"}, {"hex": "#E0FF4F", "ratio": "25.00%"},
    ]}))
    .expect("an object");
    coloured.watermark = Some(true);
    for seed in 0..6 {
        coloured.seed = Some(seed);
        make(folder, &format!("palette-{seed}"), &coloured).await;
    }
    let mut edit = job("Turn it into a postcard", 1024, 1024);
    edit.n = 1;
    let fox = input(folder, "fox.png", 1024, 1024);
    make_from(folder, "edit", &edit, std::slice::from_ref(&fox), None).await;
    let many: Vec<InputFile> = [
        ("word.png", 1024, 1024),
        ("odd.png", 887, 1774),
        ("wide.png", 3072, 1024),
        ("small.png", 512, 512),
    ]
    .map(|(name, width, height)| input(folder, name, width, height))
    .to_vec();
    make_from(folder, "fusion", &edit, &many, None).await;
    let all: Vec<InputFile> = many.iter().cycle().take(16).cloned().collect();
    make_from(
        folder,
        "fusion-16",
        &job("Sixteen of them", 1536, 1024),
        &all,
        None,
    )
    .await;
    let mut mask = image::RgbaImage::from_pixel(1024, 1024, image::Rgba([0, 0, 0, 255]));
    for (x, y, pixel) in mask.enumerate_pixels_mut() {
        let (dx, dy) = (f64::from(x) - 600.0, f64::from(y) - 420.0);
        if dx.hypot(dy) < 300.0 {
            pixel.0[3] = 0;
        }
    }
    mask.save(folder.join("mask.png"))
        .expect("the folder is writable");
    let mask = input(folder, "mask.png", 1024, 1024);
    make_from(folder, "masked", &edit, &[fox], Some(&mask)).await;
}
