//! Rules that several image families share.

use tollgate_core::ApiError;

use crate::fields::draft::Draft;
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::input::input_image::InputRole;

/// Rejects a mask without a reference image to which it applies.
pub(super) const MASK_NEEDS_REFERENCES: Rule = Rule {
    text: "`mask_url` requires `image_urls`; the mask must have an alpha channel and the pixel size of the first reference.",
    apply: |draft| {
        let masked = draft
            .inputs
            .iter()
            .any(|input| input.role == InputRole::Mask);
        if masked && draft.references() == 0 {
            return Err(ApiError::invalid(
                "`mask_url` requires `image_urls`: the mask applies to the first reference image, got none",
            ));
        }
        Ok(())
    },
};

/// Drops `output_compression` unless the results are of one of `formats`.
pub(super) fn compression_only_for(draft: &mut Draft<'_>, formats: &[ImageFormat]) {
    let output = draft.text("output_format").unwrap_or_default();
    if !formats.iter().any(|format| format.name() == output) {
        let why = format!("no effect on {output} files");
        draft.drop_field("output_compression", why);
    }
}
