//! [`MediaJob`], the interface of image, video and speech jobs, and [`Units`], the quantity that is billed.

use serde_json::{Map, Value};

use crate::image::format::PixelSize;
use crate::input::input_image::{InputImage, InputRole};

/// The billable quantity of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// That many images.
    Images(u32),
    /// One video of that many seconds.
    Seconds(u32),
    /// A text of that many Unicode scalar values, for text-to-speech.
    Characters(u32),
}

/// The interface that image, video and speech jobs have in common.
pub trait MediaJob {
    /// The model id as the client wrote it.
    fn model(&self) -> &str;
    /// The family's name.
    fn family(&self) -> &str;
    /// The text that a safety review checks: the prompt, or the text to speak.
    fn prompt(&self) -> &str;
    /// The billable quantity.
    fn units(&self) -> Units;
    /// The size of the result in pixels. `None` for speech, and while the size follows a reference image whose
    /// metadata is not known yet.
    fn pixels(&self) -> Option<PixelSize>;
    /// The resolution tier, such as `2K` or `720p`. `None` if the family has no tiers.
    fn tier(&self) -> Option<&str>;
    /// Request values that the task's receipts and records repeat (`echoed_fields` of
    /// [`RecordData`](crate::RecordData)). Small. Complete once reference metadata has been applied.
    fn echoed_fields(&self) -> Map<String, Value>;
    /// The input images: references in order, then the mask.
    fn input_images(&self) -> Vec<(InputRole, &InputImage)>;
    /// Adds an input image. References must be added in order.
    fn add_input_image(&mut self, role: InputRole, image: InputImage);
}
