//! Ark's ids of the catalogue's models, at its two sites.
//!
//! Ids as of November 2026, from the model lists of both sites. Ark retires old ids without notice: a channel that configures the upstream's id
//! itself does not use this table.

use std::borrow::Cow;

use url::Url;

use crate::channel::ChannelModel;

/// The site that requests are sent to: each site has its own ids and its own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// Volcengine.
    China,
    /// BytePlus ModelArk.
    International,
}

impl Site {
    /// The site whose host is in `base_url`.
    pub(super) fn at(base_url: &str) -> Self {
        let url = Url::parse(base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        if host == "bytepluses.com" || host.ends_with(".bytepluses.com") {
            return Self::International;
        }
        Self::China
    }
}

/// A model's ids.
struct Ids {
    /// The model's ids in the catalogue.
    names: &'static [&'static str],
    china: &'static str,
    international: &'static str,
}

const fn ids(
    names: &'static [&'static str],
    china: &'static str,
    international: &'static str,
) -> Ids {
    Ids {
        names,
        china,
        international,
    }
}

const TABLE: &[Ids] = &[
    ids(
        &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
        ],
        "doubao-seedream-4-5-251128",
        "seedream-4-5-251128",
    ),
    ids(
        &[
            "doubao-seedream-5-0-lite",
            "doubao-seedream-5.0-lite",
            "Doubao-Seedream-5.0-lite",
        ],
        "doubao-seedream-5-0-260128",
        "seedream-5-0-260128",
    ),
    ids(
        &["seedance-1.0-pro"],
        "doubao-seedance-1-0-pro-250528",
        "seedance-1-0-pro-250528",
    ),
    ids(
        &["seedance-1.0-fast"],
        "doubao-seedance-1-0-pro-fast-251015",
        "seedance-1-0-pro-fast-251015",
    ),
    ids(
        &["seedance-1.5-pro"],
        "doubao-seedance-1-5-pro-251215",
        "seedance-1-5-pro-251215",
    ),
    ids(
        &["seedance-2.0"],
        "doubao-seedance-2-0-260128",
        "dreamina-seedance-2-0-260128",
    ),
    ids(
        &["seedance-2.0-fast"],
        "doubao-seedance-2-0-fast-260128",
        "dreamina-seedance-2-0-fast-260128",
    ),
];

/// The catalogue's 1.0 mini does not exist at Ark. The nearest is 1.0 lite, which is two models: one generates videos from text, one from images.
const MINI: &str = "seedance-1.0-mini";
const MINI_OF_TEXT: Ids = ids(
    &[MINI],
    "doubao-seedance-1-0-lite-t2v-250428",
    "seedance-1-0-lite-t2v-250428",
);
const MINI_OF_IMAGES: Ids = ids(
    &[MINI],
    "doubao-seedance-1-0-lite-i2v-250428",
    "seedance-1-0-lite-i2v-250428",
);

/// Ark's id for `model`: the configured one, or the table's if the configuration only repeats the catalogue's id.
pub(super) fn id(model: &ChannelModel, site: Site, has_images: bool) -> Cow<'_, str> {
    if model.upstream != model.name {
        return Cow::Borrowed(&model.upstream);
    }
    let name = model.name.as_str();
    let row = match (name, has_images) {
        (MINI, true) => Some(&MINI_OF_IMAGES),
        (MINI, false) => Some(&MINI_OF_TEXT),
        _ => TABLE.iter().find(|row| row.names.contains(&name)),
    };
    row.map_or(Cow::Borrowed(name), |row| {
        Cow::Borrowed(match site {
            Site::China => row.china,
            Site::International => row.international,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_names_are_mapped_to_the_ids_of_the_site() {
        let china = Site::at("https://ark.cn-beijing.volces.com/api/v3");
        let abroad = Site::at("https://ark.ap-southeast.bytepluses.com/api/v3");
        assert_eq!((china, abroad), (Site::China, Site::International));
        assert_eq!(Site::at("https://notbytepluses.com"), Site::China);
        for (name, site, images, expected) in [
            (
                "doubao-seedance-4-5",
                china,
                false,
                "doubao-seedream-4-5-251128",
            ),
            ("Doubao-Seedream-4.5", abroad, true, "seedream-4-5-251128"),
            (
                "seedance-2.0",
                abroad,
                false,
                "dreamina-seedance-2-0-260128",
            ),
            (MINI, china, false, "doubao-seedance-1-0-lite-t2v-250428"),
            (MINI, abroad, true, "seedance-1-0-lite-i2v-250428"),
            ("my-own", china, false, "my-own"),
        ] {
            assert_eq!(id(&ChannelModel::new(name, name), site, images), expected);
        }
        let configured = ChannelModel::new(MINI, "ep-20261101-abc");
        assert_eq!(id(&configured, china, true), "ep-20261101-abc");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = TABLE.iter().flat_map(|row| row.names).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
