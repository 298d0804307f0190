//! The registry of video families.

use super::family::Family;
use super::{grok_imagine_video, seedance_1_0, seedance_1_5_pro, seedance_2_0, sora_2, veo_3_1};

/// Every video family, in the order of the docs index.
pub static FAMILIES: &[&Family] = &[
    &sora_2::FAMILY,
    &veo_3_1::FAMILY,
    &grok_imagine_video::FAMILY,
    &seedance_1_0::FAMILY,
    &seedance_1_5_pro::FAMILY,
    &seedance_2_0::FAMILY,
];
