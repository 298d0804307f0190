//! One rule: converts the value of a job field into the value of the model's input field, or the nearest one if the model lacks that value.

use serde_json::{Number, Value, json};
use tollgate_media::image::PixelSize;

use super::job_fields::{JobFields, RESOLUTION, SIZE};
use crate::adapter::{self, InlineFiles};

/// Maps one job field to one field of the model's input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    /// The job field.
    pub(super) source: String,
    /// The input field, from the outermost object inwards.
    pub(super) to: Vec<String>,
    /// The form of the value.
    pub(super) form: ValueForm,
    /// The values that the model supports with its names for them. Empty if it supports all values under their own names.
    pub(super) values: Vec<(String, Value)>,
    /// The minimum and the maximum number that the model supports.
    pub(super) between: Option<[Number; 2]>,
    /// Maximum number of files.
    pub(super) max: usize,
}

/// The conversion of one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Converted {
    /// The value that is sent. `None` if the model has no similar value.
    pub(super) sent: Option<Value>,
    /// If the sent value differs from the requested one: the value that a client would have to request for it; `null` if nothing is sent.
    pub(super) adjusted_to: Option<Value>,
}

impl Converted {
    fn same(sent: Value) -> Self {
        Self {
            sent: Some(sent),
            adjusted_to: None,
        }
    }

    fn near(sent: Value, adjusted_to: impl Into<Value>) -> Self {
        Self {
            sent: Some(sent),
            adjusted_to: Some(adjusted_to.into()),
        }
    }

    fn nothing() -> Self {
        Self {
            sent: None,
            adjusted_to: Some(Value::Null),
        }
    }
}

/// The form of a value in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// Unchanged.
    Plain,
    /// A text with `{}` for the value; for a size with `{width}` and `{height}`.
    Text(String),
    /// For a size: the aspect ratio, `16:9`.
    Ratio,
    /// For a size: the width in pixels.
    Width,
    /// For a size: the height in pixels.
    Height,
    /// For a size: `{ width, height }`.
    Object,
    /// For files: a list of data URIs.
    List,
    /// For files: the data URI of the first.
    First,
}

impl Rule {
    /// The value for the input. `None` if the job does not set the field or the model has no such value. `index` is the number of the call, `count`
    /// the number of results that the call requests.
    pub(super) fn input_value(
        &self,
        job: &JobFields<'_>,
        index: u32,
        count: u32,
        files: &mut InlineFiles,
    ) -> Option<Value> {
        match self.form {
            ValueForm::List | ValueForm::First => return self.file_value(job, files),
            _ => {}
        }
        match self.source.as_str() {
            "n" => Some(self.format_value(count.into())),
            "seed" => Some(self.format_value(seed(&self.convert(job)?.sent?, index))),
            _ => self
                .convert(job)?
                .sent
                .map(|value| self.format_value(value)),
        }
    }

    /// Converts the job field, if the job sets it and it is not a file.
    pub(super) fn convert(&self, job: &JobFields<'_>) -> Option<Converted> {
        match self.source.as_str() {
            SIZE => Some(self.size(job.pixels?, job.ratio)),
            RESOLUTION => self.tier(job.tier, job.pixels),
            name => Some(self.named(job.field(name)?)),
        }
    }

    /// Inserts a value at the rule's input field, creating the objects that contain it.
    pub(super) fn insert(&self, input: &mut Value, value: Value) {
        let mut field = input;
        for name in &self.to {
            if !field.is_object() {
                *field = json!({});
            }
            field = &mut field[name.as_str()];
        }
        *field = value;
    }

    /// The maximum number of files of the job field that the rule can send.
    pub(super) fn max_files(&self) -> usize {
        match self.form {
            ValueForm::List => self.max,
            ValueForm::First => 1,
            _ => 0,
        }
    }

    /// Whether the rule sends a size in pixels.
    pub(super) fn sends_pixels(&self) -> bool {
        let is_text = matches!(self.form, ValueForm::Text(_)) && self.source == SIZE;
        is_text
            || matches!(
                self.form,
                ValueForm::Width | ValueForm::Height | ValueForm::Object
            )
    }

    fn file_value(&self, job: &JobFields<'_>, inline: &mut InlineFiles) -> Option<Value> {
        let files = job.file_list(&self.source);
        let first = files.first()?;
        Some(match self.form {
            ValueForm::First => inline.data_uri(first).into(),
            _ => files.iter().map(|file| inline.data_uri(file)).collect(),
        })
    }

    fn size(&self, pixels: PixelSize, name: Option<&str>) -> Converted {
        let (width, height) = (pixels.width, pixels.height);
        Converted::same(match &self.form {
            ValueForm::Width => width.into(),
            ValueForm::Height => height.into(),
            ValueForm::Object => json!({ "width": width, "height": height }),
            ValueForm::Text(text) => {
                let text = text.replace("{width}", &width.to_string());
                text.replace("{height}", &height.to_string()).into()
            }
            _ => return self.ratio(pixels, name),
        })
    }

    /// The ratio called `name`, or the one nearest to `pixels`.
    fn ratio(&self, pixels: PixelSize, name: Option<&str>) -> Converted {
        let name = name.filter(|name| parse_ratio(name).is_some());
        let known: Vec<&str> = self
            .values
            .iter()
            .map(|(known, _)| known.as_str())
            .collect();
        let nearest = adapter::nearest_ratio(name, Some(pixels), &known);
        let named = nearest.and_then(|known| Some((known, self.same(known)?)));
        match (named, name) {
            (Some((known, value)), name) => {
                let is_same = match name {
                    Some(name) => name == known,
                    None => adapter::has_ratio(pixels, known),
                };
                let adjusted_to = (!is_same).then(|| known.into());
                Converted {
                    sent: Some(value.clone()),
                    adjusted_to,
                }
            }
            (None, Some(name)) => Converted::same(name.into()),
            (None, None) => {
                let common = greatest_common_divisor(pixels.width, pixels.height).max(1);
                let exact = format!("{}:{}", pixels.width / common, pixels.height / common);
                Converted::same(exact.into())
            }
        }
    }

    /// The resolution tier called `name`, or the nearest one.
    fn tier(&self, name: Option<&str>, pixels: Option<PixelSize>) -> Option<Converted> {
        if self.values.is_empty() {
            return Some(Converted::same(name?.into()));
        }
        if let Some(value) = name.and_then(|name| self.same(name)) {
            return Some(Converted::same(value.clone()));
        }
        let pixels = pixels?;
        let distance = |known: &str| tier_distance(known, pixels).unwrap_or(f64::MAX);
        let (known, value) = self.nearest(distance)?;
        // For a family without tiers none is requested.
        Some(match name {
            Some(_) => Converted::near(value.clone(), known.as_str()),
            None => Converted::same(value.clone()),
        })
    }

    /// The model's name for `value`: a number is mapped to the nearest supported number, any other value only to the same value.
    fn named(&self, value: &Value) -> Converted {
        let number = value.as_f64();
        if let (Some([min, max]), Some(wanted)) = (&self.between, number) {
            let bound = |bound: &Number| Converted::near(bound.clone().into(), bound.clone());
            return match wanted {
                wanted if min.as_f64().is_some_and(|min| wanted < min) => bound(min),
                wanted if max.as_f64().is_some_and(|max| wanted > max) => bound(max),
                _ => Converted::same(value.clone()),
            };
        }
        if self.values.is_empty() {
            return Converted::same(value.clone());
        }
        if let Some(value) = self.same(&plain_text(value)) {
            return Converted::same(value.clone());
        }
        let nearest = number.and_then(|wanted| {
            let distance = |known: &str| {
                let number = known.parse::<f64>();
                number.map_or(f64::MAX, |number| (number - wanted).abs())
            };
            self.nearest(distance)
        });
        match nearest {
            Some((known, value)) => {
                let number = known.parse::<Number>().map(Value::from);
                let known = number.unwrap_or_else(|_| known.as_str().into());
                Converted::near(value.clone(), known)
            }
            None => Converted::nothing(),
        }
    }

    /// The model's name for the value called `name`.
    fn same(&self, name: &str) -> Option<&Value> {
        let mut values = self.values.iter();
        let found = values.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn nearest(&self, distance: impl Fn(&str) -> f64) -> Option<&(String, Value)> {
        let values = self.values.iter();
        values.min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)))
    }

    fn format_value(&self, value: Value) -> Value {
        match &self.form {
            ValueForm::Text(text) => text.replace("{}", &plain_text(&value)).into(),
            _ => value,
        }
    }
}

/// A value as part of a text.
pub(super) fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The seed of call number `index`: calls with equal seeds would generate equal results.
fn seed(seed: &Value, index: u32) -> Value {
    /// The largest seed that all of these models support.
    const MAX_SEED: u64 = 2_147_483_647;
    let Some(first) = seed.as_u64().filter(|_| index > 0) else {
        return seed.clone();
    };
    let next = first.saturating_add(index.into());
    let wraps = first <= MAX_SEED && next > MAX_SEED;
    if wraps {
        (next - MAX_SEED - 1).into()
    } else {
        next.into()
    }
}

/// Width divided by height of a ratio such as `16:9`. `None` if `name` is not a ratio.
pub(super) fn parse_ratio(name: &str) -> Option<f64> {
    let (width, height) = name.split_once(':')?;
    let side = |text: &str| text.parse::<f64>().ok().filter(|side| *side > 0.0);
    Some(side(width)? / side(height)?)
}

/// The distance (by logarithm) of a tier from a size: `2K` is a square of 2048 pixels, `720p` a shorter side of 720.
fn tier_distance(tier: &str, pixels: PixelSize) -> Option<f64> {
    let lower = tier.to_ascii_lowercase();
    let (tier_side, side) = if let Some(thousands) = lower.strip_suffix('k') {
        let side = thousands.parse::<f64>().ok()? * 1024.0;
        (side, (pixels.pixels() as f64).sqrt())
    } else {
        let side = lower.strip_suffix('p')?.parse::<f64>().ok()?;
        (side, f64::from(pixels.width.min(pixels.height)))
    };
    Some((tier_side / side).ln().abs())
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(form: ValueForm, values: &[&str]) -> Rule {
        Rule {
            source: String::new(),
            to: vec!["a".to_owned()],
            form,
            values: values
                .iter()
                .map(|v| ((*v).to_owned(), Value::from(*v)))
                .collect(),
            between: None,
            max: usize::MAX,
        }
    }

    #[test]
    fn a_size_is_converted_to_every_form() {
        let wide = PixelSize::new(1664, 936);
        for (form, expected) in [
            (ValueForm::Ratio, json!("16:9")),
            (ValueForm::Width, json!(1664)),
            (ValueForm::Height, json!(936)),
            (ValueForm::Object, json!({ "width": 1664, "height": 936 })),
            (
                ValueForm::Text("{width}*{height}".to_owned()),
                json!("1664*936"),
            ),
        ] {
            let converted = rule(form, &[]).size(wide, None);
            assert_eq!(converted, Converted::same(expected));
        }
        // A size in a family's table may differ slightly from the ratio that it is listed under.
        let odd = PixelSize::new(1360, 2048);
        let converted = rule(ValueForm::Ratio, &[]).size(odd, Some("2:3"));
        assert_eq!(converted, Converted::same("2:3".into()));
    }

    #[test]
    fn a_ratio_becomes_the_same_or_the_nearest() {
        let wide = PixelSize::new(1664, 936);
        for (pixels, name, values, sent, is_same) in [
            (wide, Some("16:9"), &["1:1", "16:9"][..], "16:9", true),
            (wide, Some("16:9"), &["1:1", "4:3", "3:2"], "3:2", false),
            (wide, None, &["9:16", "odd", "21:9"], "21:9", false),
            (wide, None, &["9:16", "16:9"], "16:9", true),
            (
                PixelSize::new(1360, 2048),
                Some("auto"),
                &["3:4", "2:3"],
                "2:3",
                true,
            ),
            (PixelSize::new(736, 544), None, &["1:1", "4:3"], "4:3", true),
            (wide, Some("19.5:9"), &["20:9"], "20:9", false),
        ] {
            let expected = match is_same {
                true => Converted::same(sent.into()),
                false => Converted::near(sent.into(), sent),
            };
            let converted = rule(ValueForm::Ratio, values).size(pixels, name);
            assert_eq!(converted, expected, "{name:?} {values:?}");
        }
        let presets = Rule {
            values: vec![("16:9".to_owned(), json!("landscape_16_9"))],
            ..rule(ValueForm::Ratio, &[])
        };
        let converted = presets.size(PixelSize::new(1, 1), Some("1:1"));
        assert_eq!(converted, Converted::near("landscape_16_9".into(), "16:9"));
    }

    #[test]
    fn a_tier_becomes_the_same_or_the_nearest() {
        let square = Some(PixelSize::new(2048, 2048));
        let video = Some(PixelSize::new(864, 480));
        let same = |sent: &str| Some(Converted::same(sent.into()));
        let near = |sent: &str| Some(Converted::near(sent.into(), sent));
        for (name, pixels, values, expected) in [
            (Some("2k"), square, &["1K", "2K", "4K"][..], same("2K")),
            (
                Some("3K"),
                Some(PixelSize::new(3072, 3072)),
                &["1K", "2K", "4K"],
                near("4K"),
            ),
            (None, square, &["1K", "2K"], same("2K")),
            (Some("480p"), video, &["720p", "1080p"], near("720p")),
            (Some("480p"), video, &[], same("480p")),
            (None, video, &[], None),
        ] {
            let converted = rule(ValueForm::Plain, values).tier(name, pixels);
            assert_eq!(converted, expected, "{name:?} {values:?}");
        }
    }

    #[test]
    fn values_become_the_models_names() {
        let mut seconds = rule(ValueForm::Text("{}s".to_owned()), &[]);
        seconds.values = [4, 6, 8].map(|n| (n.to_string(), json!(n))).to_vec();
        let named = seconds.named(&json!(7));
        assert_eq!(named, Converted::near(json!(6), 6));
        assert_eq!(seconds.named(&json!(8)), Converted::same(json!(8)));
        assert_eq!(seconds.format_value(json!(8)), "8s");
        let format = Rule {
            values: vec![("jpeg".to_owned(), json!("jpg"))],
            ..rule(ValueForm::Plain, &[])
        };
        assert_eq!(format.named(&json!("JPEG")), Converted::same(json!("jpg")));
        assert_eq!(format.named(&json!("webp")), Converted::nothing());
        let any = rule(ValueForm::Plain, &[]);
        assert_eq!(any.named(&json!(true)), Converted::same(json!(true)));
    }

    #[test]
    fn numbers_are_clamped_to_the_models_range() {
        let number = |text: &str| text.parse::<Number>().unwrap();
        let speed = Rule {
            between: Some([number("0.5"), number("2")]),
            ..rule(ValueForm::Plain, &[])
        };
        for (requested, expected) in [
            (json!(0.25), Converted::near(json!(0.5), 0.5)),
            (json!(0.5), Converted::same(json!(0.5))),
            (json!(1.25), Converted::same(json!(1.25))),
            (json!(2), Converted::same(json!(2))),
            (json!(4.0), Converted::near(json!(2), 2)),
        ] {
            assert_eq!(speed.named(&requested), expected, "{requested}");
        }
    }

    #[test]
    fn seeds_differ_between_calls() {
        assert_eq!(seed(&json!(7), 0), json!(7));
        assert_eq!(seed(&json!(7), 3), json!(10));
        assert_eq!(seed(&json!(2_147_483_647), 1), json!(0));
        assert_eq!(seed(&json!(-1), 2), json!(-1));
    }

    #[test]
    fn nested_input_fields_are_created() {
        let mut input = json!({ "a": 1, "b": { "x": 1 } });
        let to = |path: &[&str]| Rule {
            to: path.iter().map(|p| (*p).to_owned()).collect(),
            ..rule(ValueForm::Plain, &[])
        };
        to(&["b", "y"]).insert(&mut input, json!(2));
        to(&["c", "d", "e"]).insert(&mut input, json!(3));
        to(&["a"]).insert(&mut input, json!(4));
        let expected = json!({ "a": 4, "b": { "x": 1, "y": 2 }, "c": { "d": { "e": 3 } } });
        assert_eq!(input, expected);
    }
}
