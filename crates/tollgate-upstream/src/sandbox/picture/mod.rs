//! Draws the sandbox's pictures: pure work on the processor, the same bytes for the same order.

mod brush;
mod caption;
mod collage;
mod colour;
mod palette;
mod repaint;
mod scene;
mod seed;
mod text;
mod wash;

use bytes::Bytes;
use tiny_skia::{FillRule, Mask, Pixmap, PixmapPaint, Transform};
use tollgate_media::image::{Background, ImageJob, PixelSize};

use crate::provider::{ImageCall, InputFile, ProviderError, ProviderErrorKind};
use crate::raster::{self, Fit, Raster};
use brush::Canvas;
use caption::Caption;
use palette::Palette;
use repaint::Hole;
use seed::Dice;

/// One finished picture.
pub(super) struct Picture {
    /// The encoded file.
    pub(super) bytes: Bytes,
}

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
    pub(super) fn new(call: &ImageCall<'_>, text: &str) -> Result<Self, ProviderError> {
        let size = call.job.size.pixels.ok_or_else(|| {
            ProviderError::new(
                ProviderErrorKind::Rejected,
                "the size of the picture is unknown",
            )
        })?;
        Ok(Self {
            job: call.job.clone(),
            size,
            text: text.trim().to_owned(),
            references: call.references.to_vec(),
            mask: call.mask.cloned(),
        })
    }

    /// The order of one picture of `size` without references.
    pub(super) fn of(job: ImageJob, size: PixelSize, text: &str) -> Self {
        Self {
            job,
            size,
            text: text.trim().to_owned(),
            references: Vec::new(),
            mask: None,
        }
    }

    /// The dice of picture `index`: nothing in them depends on the task or the time.
    fn dice(&self, index: u32) -> Dice {
        let seed = self.job.seed.map(|seed| seed.to_string());
        Dice::of(&[
            &self.text,
            &self.job.model,
            &self.size.to_string(),
            self.job.quality.as_deref().unwrap_or_default(),
            seed.as_deref().unwrap_or_default(),
            &index.to_string(),
        ])
    }

    fn caption(&self, index: u32) -> Caption {
        let PixelSize { width, height } = self.size;
        let number = if self.job.n > 1 {
            format!("  ·  {} of {}", index + 1, self.job.n)
        } else {
            String::new()
        };
        Caption {
            title: self.text.clone(),
            note: format!("{}  ·  {width} × {height}{number}", self.job.model),
            watermark: self.job.watermark == Some(true),
            over_picture: !self.references.is_empty() && self.mask.is_none(),
        }
    }
}

/// An order with its reference images read and brought to size, ready to draw from.
pub(super) struct Studio {
    order: Order,
    /// The first reference at the size of the result.
    ground: Option<Raster>,
    /// The others, small.
    cards: Vec<Pixmap>,
    /// What the mask leaves to paint.
    hole: Option<Hole>,
}

impl Studio {
    /// Reads the references of `order`, one at a time. Takes long: not for an async thread.
    pub(super) fn open(order: Order) -> Result<Self, ProviderError> {
        let size = order.size;
        let mut studio = Self {
            ground: None,
            cards: Vec::new(),
            hole: None,
            order,
        };
        let Some((first, others)) = studio.order.references.split_first() else {
            return Ok(studio);
        };
        // What is not repainted must lie where it lay, so a mask forbids cutting sides off.
        let fit = if studio.order.mask.is_some() {
            Fit::Stretch
        } else {
            Fit::Cover
        };
        studio.ground = Some(raster::load(first, size, fit)?);
        let room = collage::card_room(size.width as f32, size.height as f32, others.len());
        let card = PixelSize::new((room * 0.84) as u32 + 1, (room * 0.84) as u32 + 1);
        for file in others {
            let raster = raster::load(file, card, Fit::Inside)?;
            studio.cards.extend(collage::pixmap(raster));
        }
        if let Some(mask) = &studio.order.mask {
            studio.hole = Some(Hole::new(raster::load_mask(mask, size)?, size));
        }
        Ok(studio)
    }

    /// Makes picture `index`. Takes long: not for an async thread.
    pub(super) fn make(&self, index: u32) -> Result<Picture, ProviderError> {
        let raster = match (&self.ground, &self.hole) {
            (Some(ground), Some(hole)) => self.repaint(ground, hole, index)?,
            _ => self.compose(index)?,
        };
        let job = &self.order.job;
        Ok(Picture {
            bytes: raster::encode(raster, job.output_format, job.output_compression)?,
        })
    }

    /// A whole picture: a scene, or what the references make.
    fn compose(&self, index: u32) -> Result<Raster, ProviderError> {
        let order = &self.order;
        let mut dice = order.dice(index);
        let palette = Palette::choose(&order.job.extra, &mut dice);
        let mut canvas = blank(order.size)?;
        match &self.ground {
            None => scene::draw(&mut canvas, &palette, &mut dice),
            Some(ground) => {
                canvas.sky(palette.sky, canvas.height);
                if let Some(picture) = collage::pixmap(ground.clone()) {
                    let paint = PixmapPaint::default();
                    let pixmap = &mut canvas.pixmap;
                    pixmap.draw_pixmap(0, 0, picture.as_ref(), &paint, Transform::identity(), None);
                }
                collage::grade(&mut canvas, &palette, &mut dice);
                collage::lay(&mut canvas, &self.cards, &palette, &mut dice);
            }
        }
        let cut_out = order.job.background == Some(Background::Transparent);
        // Words keep away from corners that are cut off.
        let inset = canvas.unit * if cut_out { 0.15 } else { 0.062 };
        caption::draw(&mut canvas, &palette, &order.caption(index), inset);
        if cut_out {
            self::cut_out(&mut canvas, &palette);
        }
        Ok(Raster::of(canvas.pixmap))
    }

    /// The first reference with a new picture in its hole, and not a pixel changed elsewhere.
    fn repaint(&self, ground: &Raster, hole: &Hole, index: u32) -> Result<Raster, ProviderError> {
        let mut result = ground.clone();
        let Some(patch) = hole.patch() else {
            return Ok(result);
        };
        let order = &self.order;
        let mut dice = order.dice(index);
        let palette = Palette::choose(&order.job.extra, &mut dice);
        let mut canvas = blank(patch.size)?;
        scene::draw(&mut canvas, &palette, &mut dice);
        collage::lay(&mut canvas, &self.cards, &palette, &mut dice);
        // In a hole that is no rectangle the words would be cut in pieces.
        if hole.is_rectangle(&patch) {
            let inset = canvas.unit * 0.062;
            caption::draw(&mut canvas, &palette, &order.caption(index), inset);
        }
        hole.fill(&mut result, &patch, &Raster::of(canvas.pixmap));
        Ok(result)
    }
}

/// The pixels (red, green, blue, alpha) of one picture: `reference` at the order's size, or what the order draws. Takes
/// long: not for an async thread.
pub(super) fn still(order: Order, reference: Option<&InputFile>) -> Result<Vec<u8>, ProviderError> {
    if let Some(file) = reference {
        return Ok(raster::load(file, order.size, Fit::Cover)?.rgba);
    }
    Ok(Studio::open(order)?.compose(0)?.rgba)
}

fn blank(size: PixelSize) -> Result<Canvas, ProviderError> {
    Canvas::new(size.width, size.height).ok_or_else(|| {
        ProviderError::new(
            ProviderErrorKind::Rejected,
            format!("the sandbox cannot draw {size}"),
        )
    })
}

/// Leaves of the canvas a round-cornered sticker with a light border, and nothing around it.
fn cut_out(canvas: &mut Canvas, palette: &Palette) {
    let margin = canvas.unit * 0.03;
    let (width, height) = (canvas.width - 2.0 * margin, canvas.height - 2.0 * margin);
    let shape = brush::rounded(margin, margin, width, height, canvas.unit * 0.27);
    let mask = Mask::new(canvas.pixmap.width(), canvas.pixmap.height());
    if let (Some(shape), Some(mut mask)) = (shape, mask) {
        canvas.stroke(&shape, canvas.unit * 0.045, palette.ink.solid());
        mask.fill_path(&shape, FillRule::Winding, true, Transform::identity());
        canvas.pixmap.apply_mask(&mask);
    }
}
