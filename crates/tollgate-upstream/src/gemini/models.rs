//! Google's ids of the catalogue's image and video models, on its two surfaces.
//!
//! Ids as of November 2026, from <https://ai.google.dev/gemini-api/docs/changelog>, <https://ai.google.dev/gemini-api/docs/models> and the official
//! SDK. Google shuts down old ids: a channel that configures the upstream's id itself does not use this table.

use super::platform::Surface;
use crate::channel::ChannelModel;

/// Name in the catalogue, id on the Developer API, id on the Agent Platform.
type Row = (&'static str, &'static str, &'static str);

const TABLE: &[Row] = &[
    same("gemini-2.5-flash-image-preview", "gemini-2.5-flash-image"),
    same(
        "gemini-2.5-flash-image-preview-official",
        "gemini-2.5-flash-image",
    ),
    same("gemini-3.1-flash-image-preview", "gemini-3.1-flash-image"),
    same(
        "gemini-3.1-flash-image-preview-official",
        "gemini-3.1-flash-image",
    ),
    same("gemini-3-pro-image-preview", "gemini-3-pro-image"),
    same("gemini-3-pro-image-preview-official", "gemini-3-pro-image"),
    // Imagen was removed from the Developer API on 17 August 2026; Google names this model as its successor there.
    (
        "imagen-4.0-partner",
        "gemini-3.1-flash-image",
        "imagen-4.0-generate-001",
    ),
    // Veo was removed from the Developer API in November 2026; compatible servers still have it.
    (
        "veo-3.1-flash",
        "veo-3.1-fast-generate-preview",
        "veo-3.1-fast-generate-001",
    ),
    (
        "veo-3.1-pro",
        "veo-3.1-generate-preview",
        "veo-3.1-generate-001",
    ),
];

const fn same(name: &'static str, id: &'static str) -> Row {
    (name, id, id)
}

/// Google's id for `model`: the configured one, or the table's if the configuration only repeats the catalogue's id.
pub(super) fn id(model: &ChannelModel, surface: Surface) -> &str {
    if model.upstream != model.name {
        return &model.upstream;
    }
    let row = TABLE.iter().find(|(name, ..)| *name == model.name);
    row.map_or(&model.upstream, |(_, developer, platform)| match surface {
        Surface::Developer => developer,
        Surface::AgentPlatform => platform,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_names_are_mapped_to_the_ids_of_the_surface() {
        use Surface::{AgentPlatform, Developer};
        for (name, surface, expected) in [
            (
                "gemini-3-pro-image-preview-official",
                Developer,
                "gemini-3-pro-image",
            ),
            ("imagen-4.0-partner", Developer, "gemini-3.1-flash-image"),
            (
                "imagen-4.0-partner",
                AgentPlatform,
                "imagen-4.0-generate-001",
            ),
            ("veo-3.1-pro", AgentPlatform, "veo-3.1-generate-001"),
            ("my-own", Developer, "my-own"),
        ] {
            assert_eq!(id(&ChannelModel::new(name, name), surface), expected);
        }
        let configured = ChannelModel::new("veo-3.1-pro", "veo-4");
        assert_eq!(id(&configured, Developer), "veo-4");
    }
}
