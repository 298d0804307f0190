//! From a job's field to a value as the model takes it.

use serde_json::{Value, json};
use tollgate_media::image::PixelSize;

use super::order::{Order, RESOLUTION, SIZE};
use crate::wire::Slots;

/// One field's way into the model's input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    /// The job's field.
    pub(super) source: String,
    /// The input's field, from the outermost object inwards.
    pub(super) to: Vec<String>,
    /// In what form.
    pub(super) form: Form,
    /// The values that the model takes and what they are called there; all, as they are, where there are none.
    pub(super) values: Vec<(String, Value)>,
}

/// The form of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Plain,
    /// A text with `{}`, or of a size `{width}` and `{height}`, in it.
    Text(String),
    /// Of a size: the ratio, `16:9`.
    Ratio,
    /// Of a size: pixels from left to right.
    Width,
    /// Of a size: pixels from top to bottom.
    Height,
    /// Of a size: `{ width, height }`.
    Object,
    /// Of files: a list of data URIs.
    List,
    /// Of files: the first one's data URI.
    First,
}

impl Rule {
    /// What goes into the input, if the job has the field. `index` is the call's number, `count` the results wanted of it.
    pub(super) fn value(
        &self,
        order: &Order<'_>,
        index: u32,
        count: u32,
        slots: &mut Slots,
    ) -> Option<Value> {
        match self.form {
            Form::List | Form::First => return self.files(order, slots),
            _ => {}
        }
        let value = match self.source.as_str() {
            SIZE => return Some(self.size(order.pixels?, order.ratio)),
            RESOLUTION => return self.tier(order.tier, order.pixels),
            "n" => count.into(),
            "seed" => seed(order.field("seed")?, index),
            name => order.field(name)?.clone(),
        };
        self.named(value).map(|value| self.formed(value))
    }

    /// Puts a value where the rule says, making the objects on the way.
    pub(super) fn put(&self, input: &mut Value, value: Value) {
        let mut place = input;
        for name in &self.to {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[name.as_str()];
        }
        *place = value;
    }

    /// How many files of its source it carries.
    pub(super) fn most_files(&self) -> usize {
        match self.form {
            Form::List => usize::MAX,
            Form::First => 1,
            _ => 0,
        }
    }

    fn files(&self, order: &Order<'_>, slots: &mut Slots) -> Option<Value> {
        let files = order.file_list(&self.source);
        let first = files.first()?;
        Some(match self.form {
            Form::First => slots.data_uri(first).into(),
            _ => files.iter().map(|file| slots.data_uri(file)).collect(),
        })
    }

    fn size(&self, pixels: PixelSize, name: Option<&str>) -> Value {
        let (width, height) = (pixels.width, pixels.height);
        match &self.form {
            Form::Width => width.into(),
            Form::Height => height.into(),
            Form::Object => json!({ "width": width, "height": height }),
            Form::Text(text) => {
                let text = text.replace("{width}", &width.to_string());
                text.replace("{height}", &height.to_string()).into()
            }
            _ => self.ratio(pixels, name),
        }
    }

    /// The ratio of that name, or the one that is nearest to the frame's.
    fn ratio(&self, pixels: PixelSize, name: Option<&str>) -> Value {
        let name = name.filter(|name| ratio(name).is_some());
        let own = f64::from(pixels.width) / f64::from(pixels.height.max(1));
        let shape = name.and_then(ratio).unwrap_or(own);
        let distance = |name: &str| ratio(name).map_or(f64::MAX, |r| (r / shape).ln().abs());
        let nearest = self
            .values
            .iter()
            .min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)));
        match (nearest, name) {
            (Some((_, value)), _) => value.clone(),
            (None, Some(name)) => name.into(),
            (None, None) => {
                let common = divisor(pixels.width, pixels.height).max(1);
                format!("{}:{}", pixels.width / common, pixels.height / common).into()
            }
        }
    }

    /// The tier of that name, or the nearest one.
    fn tier(&self, name: Option<&str>, pixels: Option<PixelSize>) -> Option<Value> {
        if self.values.is_empty() {
            return Some(name?.into());
        }
        let same = |(known, _): &&(String, Value)| {
            name.is_some_and(|name| known.eq_ignore_ascii_case(name))
        };
        let nearest = || {
            let pixels = pixels?;
            let distance = |known: &str| tier_distance(known, pixels).unwrap_or(f64::MAX);
            let values = self.values.iter();
            values.min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)))
        };
        let found = self.values.iter().find(same).or_else(nearest);
        found.map(|(_, value)| value.clone())
    }

    /// What the model calls `value`: of numbers the nearest that it takes, of anything else the same; none where it takes
    /// no such value.
    fn named(&self, value: Value) -> Option<Value> {
        if self.values.is_empty() {
            return Some(value);
        }
        let text = plain_text(&value);
        let same = |(known, _): &&(String, Value)| known.eq_ignore_ascii_case(&text);
        let nearest = || {
            let wish = value.as_f64()?;
            let distance = |known: &str| {
                let number = known.parse::<f64>();
                number.map_or(f64::MAX, |number| (number - wish).abs())
            };
            let values = self.values.iter();
            values.min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)))
        };
        let found = self.values.iter().find(same).or_else(nearest);
        if found.is_none() {
            tracing::debug!(
                field = self.source,
                "left out: the model takes no such value"
            );
        }
        found.map(|(_, value)| value.clone())
    }

    fn formed(&self, value: Value) -> Value {
        match &self.form {
            Form::Text(text) => text.replace("{}", &plain_text(&value)).into(),
            _ => value,
        }
    }
}

/// A value as it stands in a text.
pub(super) fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The seed of call number `index`: calls with the same one would make the same picture.
fn seed(seed: &Value, index: u32) -> Value {
    /// The greatest that all of these models take.
    const GREATEST: u64 = 2_147_483_647;
    let Some(first) = seed.as_u64().filter(|_| index > 0) else {
        return seed.clone();
    };
    let next = first.saturating_add(index.into());
    let wraps = first <= GREATEST && next > GREATEST;
    if wraps {
        (next - GREATEST - 1).into()
    } else {
        next.into()
    }
}

/// Width ÷ height of a ratio's name.
pub(super) fn ratio(name: &str) -> Option<f64> {
    let (width, height) = name.split_once(':')?;
    let side = |text: &str| text.parse::<f64>().ok().filter(|side| *side > 0.0);
    Some(side(width)? / side(height)?)
}

/// How far a tier is from that frame: `2K` is a square of 2048, `720p` a shorter side of 720.
fn tier_distance(tier: &str, pixels: PixelSize) -> Option<f64> {
    let lower = tier.to_ascii_lowercase();
    let (wish, is) = if let Some(thousands) = lower.strip_suffix('k') {
        let side = thousands.parse::<f64>().ok()? * 1024.0;
        (side, (pixels.pixels() as f64).sqrt())
    } else {
        let side = lower.strip_suffix('p')?.parse::<f64>().ok()?;
        (side, f64::from(pixels.width.min(pixels.height)))
    };
    Some((wish / is).ln().abs())
}

fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(form: Form, values: &[&str]) -> Rule {
        Rule {
            source: String::new(),
            to: vec!["a".to_owned()],
            form,
            values: values
                .iter()
                .map(|v| ((*v).to_owned(), Value::from(*v)))
                .collect(),
        }
    }

    #[test]
    fn sizes_take_every_form() {
        let wide = PixelSize::new(1664, 936);
        for (form, values, expected) in [
            (Form::Ratio, &[][..], json!("16:9")),
            (Form::Ratio, &["1:1", "4:3", "3:2"], json!("3:2")),
            (Form::Ratio, &["9:16", "odd", "21:9"], json!("21:9")),
            (Form::Width, &[], json!(1664)),
            (Form::Height, &[], json!(936)),
            (Form::Object, &[], json!({ "width": 1664, "height": 936 })),
            (
                Form::Text("{width}*{height}".to_owned()),
                &[],
                json!("1664*936"),
            ),
        ] {
            let made = rule(form, values).size(wide, None);
            assert_eq!(made, expected, "{values:?}");
        }
        // A family's table may be a little off the ratio that it names.
        let odd = PixelSize::new(1360, 2048);
        assert_eq!(rule(Form::Ratio, &[]).size(odd, Some("2:3")), "2:3");
        assert_eq!(
            rule(Form::Ratio, &["3:4", "2:3"]).size(odd, Some("auto")),
            "2:3"
        );
    }

    #[test]
    fn tiers_are_the_same_or_the_nearest() {
        let square = Some(PixelSize::new(2048, 2048));
        let film = Some(PixelSize::new(864, 480));
        for (name, pixels, values, expected) in [
            (Some("2k"), square, &["1K", "2K", "4K"][..], Some("2K")),
            (
                Some("3K"),
                Some(PixelSize::new(3072, 3072)),
                &["1K", "2K", "4K"],
                Some("4K"),
            ),
            (None, square, &["1K", "2K"], Some("2K")),
            (Some("480p"), film, &["720p", "1080p"], Some("720p")),
            (Some("480p"), film, &[], Some("480p")),
            (None, film, &[], None),
        ] {
            let made = rule(Form::Plain, values).tier(name, pixels);
            assert_eq!(made, expected.map(Value::from), "{name:?} {values:?}");
        }
    }

    #[test]
    fn values_are_named_as_the_model_names_them() {
        let mut seconds = rule(Form::Text("{}s".to_owned()), &[]);
        seconds.values = [4, 6, 8].map(|n| (n.to_string(), json!(n))).to_vec();
        let named = seconds.named(json!(7.2)).map(|value| seconds.formed(value));
        assert_eq!(named, Some(json!("8s")));
        let format = Rule {
            values: vec![("jpeg".to_owned(), json!("jpg"))],
            ..rule(Form::Plain, &[])
        };
        assert_eq!(format.named(json!("JPEG")), Some(json!("jpg")));
        assert_eq!(format.named(json!("webp")), None);
        let any = rule(Form::Plain, &[]);
        assert_eq!(any.named(json!(true)), Some(json!(true)));
    }

    #[test]
    fn seeds_differ_from_call_to_call() {
        assert_eq!(seed(&json!(7), 0), json!(7));
        assert_eq!(seed(&json!(7), 3), json!(10));
        assert_eq!(seed(&json!(2_147_483_647), 1), json!(0));
        assert_eq!(seed(&json!(-1), 2), json!(-1));
    }

    #[test]
    fn nested_fields_are_made_on_the_way() {
        let mut input = json!({ "a": 1, "b": { "x": 1 } });
        let to = |path: &[&str]| Rule {
            to: path.iter().map(|p| (*p).to_owned()).collect(),
            ..rule(Form::Plain, &[])
        };
        to(&["b", "y"]).put(&mut input, json!(2));
        to(&["c", "d", "e"]).put(&mut input, json!(3));
        to(&["a"]).put(&mut input, json!(4));
        let expected = json!({ "a": 4, "b": { "x": 1, "y": 2 }, "c": { "d": { "e": 3 } } });
        assert_eq!(input, expected);
    }
}
