//! The embedded fonts. Their licences are in the folder `assets/fonts`.

use std::sync::LazyLock;

use harfrust::Font;

static DISPLAY: &[u8] = include_bytes!("../../../assets/fonts/inter/InterDisplay-Bold.otf");
static BODY: &[u8] = include_bytes!("../../../assets/fonts/inter/Inter-Medium.otf");
/// Chinese, Japanese and Korean.
static EAST_ASIAN: &[u8] = include_bytes!("../../../assets/fonts/droid/DroidSansFallback.ttf");

/// A font for Latin, Greek and Cyrillic, and the fallback for characters that it lacks.
pub(super) type FontStack = [&'static Font; 2];

/// A text style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// Large and bold.
    Title,
    /// Small.
    Note,
}

impl Face {
    pub(super) fn stack(self) -> FontStack {
        static FONTS: LazyLock<[Font; 3]> = LazyLock::new(|| [DISPLAY, BODY, EAST_ASIAN].map(load));
        let [display, body, east_asian] = &*FONTS;
        match self {
            Self::Title => [display, east_asian],
            Self::Note => [body, east_asian],
        }
    }
}

fn load(data: &'static [u8]) -> Font {
    Font::new(data, 0).expect("the embedded fonts are valid")
}
