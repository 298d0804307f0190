//! Draws the sandbox's pictures: pure work on the processor, the same bytes for the same order.

mod encode;
mod seed;

use tiny_skia::{
    Color, GradientStop, LinearGradient, Paint, Pixmap, Point, Rect, SpreadMode, Transform,
};
use tollgate_media::image::{ImageJob, PixelSize};

use crate::provider::{ImageCall, InputFile, Picture, ProviderError, ProviderErrorKind};
use encode::Raster;
use seed::Dice;

/// Everything that drawing needs to know, owned so that it can move to another thread.
pub(super) struct Order {
    job: ImageJob,
    size: PixelSize,
    /// The prompt without directives.
    text: String,
    references: Vec<InputFile>,
    mask: Option<InputFile>,
}

impl Order {
    /// The order of one call, its prompt's directives already taken out of `text`.
    pub(super) fn new(call: &ImageCall<'_>, text: String) -> Result<Self, ProviderError> {
        let size = call.job.size.pixels.ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::Rejected,
                "the size of the picture is unknown",
            )
        })?;
        Ok(Self {
            job: call.job.clone(),
            size,
            text,
            references: call.references.to_vec(),
            mask: call.mask.cloned(),
        })
    }

    /// The dice of picture `index`: nothing in them depends on the task or the time.
    fn dice(&self, index: u32) -> Dice {
        Dice::of(&[
            self.text.trim(),
            &self.job.model,
            &self.size.to_string(),
            self.job.quality.as_deref().unwrap_or_default(),
            &self
                .job
                .seed
                .map(|seed| seed.to_string())
                .unwrap_or_default(),
            &index.to_string(),
        ])
    }
}

/// Makes picture `index` of `order`.
pub(super) fn make(order: &Order, index: u32) -> Result<Picture, ProviderError> {
    let mut dice = order.dice(index);
    let PixelSize { width, height } = order.size;
    let mut canvas = Pixmap::new(width, height).ok_or_else(|| {
        ProviderError::new(
            ProviderErrorKind::Rejected,
            format!("the sandbox cannot draw {}", order.size),
        )
    })?;
    let mut colour = || {
        Color::from_rgba(
            dice.between(0.0, 1.0),
            dice.between(0.0, 1.0),
            dice.between(0.0, 1.0),
            1.0,
        )
        .unwrap()
    };
    let shader = LinearGradient::new(
        Point::from_xy(0.0, 0.0),
        Point::from_xy(0.0, height as f32),
        vec![
            GradientStop::new(0.0, colour()),
            GradientStop::new(1.0, colour()),
        ],
        SpreadMode::Pad,
        Transform::identity(),
    )
    .unwrap();
    let paint = Paint {
        shader,
        ..Paint::default()
    };
    canvas.fill_rect(
        Rect::from_xywh(0.0, 0.0, width as f32, height as f32).unwrap(),
        &paint,
        Transform::identity(),
        None,
    );
    let raster = Raster {
        size: order.size,
        rgba: canvas.take_demultiplied(),
    };
    Ok(Picture {
        bytes: encode::encode(
            raster,
            order.job.output_format,
            order.job.output_compression,
        )?,
        format: order.job.output_format,
    })
}
