//! Renders the sandbox's images: a landscape with the prompt as caption, or the reference images edited.
//!
//! CPU-bound, without I/O except for reading reference images. The same request always generates the same bytes.

mod canvas;
mod caption;
mod colour;
mod fill;
mod inpaint;
mod landscape;
mod palette;
mod reference_cards;
mod ridge;
mod rng;
mod text;

use bytes::Bytes;
use tiny_skia::{FillRule, Mask, Pixmap, PixmapPaint, Transform};
use tollgate_media::image::{Background, ImageJob, PixelSize};

use canvas::Canvas;
use caption::Caption;
use inpaint::MaskedRegion;
use palette::Palette;
use rng::Rng;
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};
use tollgate_upstream::provider::{ImageCall, InputFile};
use tollgate_upstream::raster::{self, Fit, Raster};

/// The input from which an image is rendered. Owned, so that it can be moved to another thread.
pub(super) struct ImageSpec {
    job: ImageJob,
    size: PixelSize,
    /// The prompt without directives.
    text: String,
    references: Vec<InputFile>,
    mask: Option<InputFile>,
}

impl ImageSpec {
    /// The spec of one call. `text` is its prompt without directives.
    ///
    /// # Errors
    /// [`UpstreamErrorKind::Rejected`] if the job has no size in pixels.
    pub(super) fn for_call(call: &ImageCall<'_>, text: &str) -> Result<Self, ProviderError> {
        let size = call.job.size.pixels.ok_or_else(|| {
            ProviderError::new(
                UpstreamErrorKind::Rejected,
                "the size of the image in pixels is unknown",
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

    /// The spec of one image of `size` without reference images.
    pub(super) fn without_references(job: ImageJob, size: PixelSize, text: &str) -> Self {
        Self {
            job,
            size,
            text: text.trim().to_owned(),
            references: Vec::new(),
            mask: None,
        }
    }

    /// The random numbers of image `index`. They depend only on the request, not on the task id or the time.
    fn rng(&self, index: u32) -> Rng {
        let seed = self.job.seed.map(|seed| seed.to_string());
        Rng::from_parts(&[
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
            over_reference: !self.references.is_empty() && self.mask.is_none(),
        }
    }
}

/// A spec with its reference images decoded and scaled.
pub(super) struct Renderer {
    spec: ImageSpec,
    /// The first reference image at the size of the result. `None` if there are no reference images.
    background: Option<Raster>,
    /// The other reference images, scaled down.
    cards: Vec<Pixmap>,
    /// The part of the image that the mask selects. `None` if there is no mask or no reference image.
    region: Option<MaskedRegion>,
}

impl Renderer {
    /// Decodes the reference images of `spec`, one at a time. CPU-bound: not for an async thread.
    pub(super) fn new(spec: ImageSpec) -> Result<Self, ProviderError> {
        let size = spec.size;
        let mut renderer = Self {
            background: None,
            cards: Vec::new(),
            region: None,
            spec,
        };
        let Some((first, others)) = renderer.spec.references.split_first() else {
            return Ok(renderer);
        };
        // With a mask, the pixels outside it keep their place: no cropping.
        let fit = if renderer.spec.mask.is_some() {
            Fit::Stretch
        } else {
            Fit::Cover
        };
        renderer.background = Some(raster::load_scaled(first, size, fit)?);
        let side =
            reference_cards::max_card_side(size.width as f32, size.height as f32, others.len());
        let card = PixelSize::new((side * 0.84) as u32 + 1, (side * 0.84) as u32 + 1);
        for file in others {
            let raster = raster::load_scaled(file, card, Fit::Inside)?;
            renderer.cards.extend(reference_cards::to_pixmap(raster));
        }
        if let Some(mask) = &renderer.spec.mask {
            renderer.region = Some(MaskedRegion::new(raster::load_mask(mask, size)?, size));
        }
        Ok(renderer)
    }

    /// Renders and encodes image `index`. CPU-bound: not for an async thread.
    pub(super) fn encode_image(&self, index: u32) -> Result<Bytes, ProviderError> {
        let raster = match (&self.background, &self.region) {
            (Some(background), Some(region)) => self.inpaint(background, region, index)?,
            _ => self.render(index)?,
        };
        let job = &self.spec.job;
        raster::encode(raster, job.output_format, job.output_compression)
    }

    /// Renders the landscape, or the reference images combined, with the caption.
    fn render(&self, index: u32) -> Result<Raster, ProviderError> {
        let spec = &self.spec;
        let mut rng = spec.rng(index);
        let palette = Palette::choose(&spec.job.extra, &mut rng);
        let mut canvas = new_canvas(spec.size)?;
        match &self.background {
            None => landscape::draw(&mut canvas, &palette, &mut rng),
            Some(background) => {
                canvas.fill_sky(palette.sky, canvas.height);
                if let Some(image) = reference_cards::to_pixmap(background.clone()) {
                    let paint = PixmapPaint::default();
                    let pixmap = &mut canvas.pixmap;
                    pixmap.draw_pixmap(0, 0, image.as_ref(), &paint, Transform::identity(), None);
                }
                reference_cards::tint(&mut canvas, &palette, &mut rng);
                reference_cards::draw(&mut canvas, &self.cards, &palette, &mut rng);
            }
        }
        let is_sticker = spec.job.background == Some(Background::Transparent);
        // The caption stays clear of the rounded corners of a sticker.
        let inset = canvas.unit * if is_sticker { 0.15 } else { 0.062 };
        caption::draw(&mut canvas, &palette, &spec.caption(index), inset);
        if is_sticker {
            crop_to_sticker(&mut canvas, &palette);
        }
        Ok(to_raster(canvas.pixmap))
    }

    /// The first reference image with a new landscape in the masked region; every other pixel is unchanged.
    fn inpaint(
        &self,
        background: &Raster,
        region: &MaskedRegion,
        index: u32,
    ) -> Result<Raster, ProviderError> {
        let mut result = background.clone();
        let Some(rect) = region.bounding_rect() else {
            return Ok(result);
        };
        let spec = &self.spec;
        let mut rng = spec.rng(index);
        let palette = Palette::choose(&spec.job.extra, &mut rng);
        let mut canvas = new_canvas(rect.size)?;
        landscape::draw(&mut canvas, &palette, &mut rng);
        reference_cards::draw(&mut canvas, &self.cards, &palette, &mut rng);
        // In a region of another shape the caption would be cut.
        if region.fills(&rect) {
            let inset = canvas.unit * 0.062;
            caption::draw(&mut canvas, &palette, &spec.caption(index), inset);
        }
        region.composite(&mut result, &rect, &to_raster(canvas.pixmap));
        Ok(result)
    }
}

/// The RGBA pixels of a video's first frame: `reference` scaled to the size of `spec`, or the rendered image. CPU-bound:
/// not for an async thread.
pub(super) fn render_first_frame(
    spec: ImageSpec,
    reference: Option<&InputFile>,
) -> Result<Vec<u8>, ProviderError> {
    if let Some(file) = reference {
        return Ok(raster::load_scaled(file, spec.size, Fit::Cover)?.rgba);
    }
    Ok(Renderer::new(spec)?.render(0)?.rgba)
}

/// The pixels of a finished canvas, with straight alpha.
fn to_raster(pixmap: Pixmap) -> Raster {
    let size = PixelSize::new(pixmap.width(), pixmap.height());
    // Premultiplied and straight alpha are the same bytes if every pixel is opaque.
    let opaque = pixmap.data().chunks_exact(4).all(|pixel| pixel[3] == 255);
    let rgba = if opaque {
        pixmap.take()
    } else {
        pixmap.take_demultiplied()
    };
    Raster { size, rgba }
}

fn new_canvas(size: PixelSize) -> Result<Canvas, ProviderError> {
    Canvas::new(size.width, size.height).ok_or_else(|| {
        ProviderError::new(
            UpstreamErrorKind::Rejected,
            format!("the sandbox cannot allocate an image of {size}"),
        )
    })
}

/// Crops the canvas to a sticker: rounded corners, a light border, transparent outside.
fn crop_to_sticker(canvas: &mut Canvas, palette: &Palette) {
    let margin = canvas.unit * 0.03;
    let (width, height) = (canvas.width - 2.0 * margin, canvas.height - 2.0 * margin);
    let shape = canvas::rounded(margin, margin, width, height, canvas.unit * 0.27);
    let mask = Mask::new(canvas.pixmap.width(), canvas.pixmap.height());
    if let (Some(shape), Some(mut mask)) = (shape, mask) {
        canvas.stroke(&shape, canvas.unit * 0.045, palette.ink.solid());
        mask.fill_path(&shape, FillRule::Winding, true, Transform::identity());
        canvas.pixmap.apply_mask(&mask);
    }
}
