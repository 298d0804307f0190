//! From a job's field to a value as the model takes it.

use serde_json::{Number, Value, json};
use tollgate_media::image::PixelSize;

use super::order::{Order, RESOLUTION, SIZE};
use crate::wire::{self, Slots};

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
    /// The least and the greatest number that the model takes.
    pub(super) between: Option<[Number; 2]>,
    /// The most files that it carries.
    pub(super) most: usize,
}

/// What a rule makes of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picked {
    /// What is sent; none where the model has no such value.
    pub(super) sent: Option<Value>,
    /// What a client would have to ask for to be sent the same, where that is not what this one asks for; null where
    /// nothing is sent.
    pub(super) instead: Option<Value>,
}

impl Picked {
    fn same(sent: Value) -> Self {
        Self {
            sent: Some(sent),
            instead: None,
        }
    }

    fn near(sent: Value, instead: impl Into<Value>) -> Self {
        Self {
            sent: Some(sent),
            instead: Some(instead.into()),
        }
    }

    fn nothing() -> Self {
        Self {
            sent: None,
            instead: Some(Value::Null),
        }
    }
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
    /// What goes into the input, if the job has the field and the model such a value. `index` is the call's number,
    /// `count` the results wanted of it.
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
        match self.source.as_str() {
            "n" => Some(self.formed(count.into())),
            "seed" => Some(self.formed(seed(&self.pick(order)?.sent?, index))),
            _ => self.pick(order)?.sent.map(|value| self.formed(value)),
        }
    }

    /// What it makes of the job's field, if the job has it; not of files.
    pub(super) fn pick(&self, order: &Order<'_>) -> Option<Picked> {
        match self.source.as_str() {
            SIZE => Some(self.size(order.pixels?, order.ratio)),
            RESOLUTION => self.tier(order.tier, order.pixels),
            name => Some(self.named(order.field(name)?)),
        }
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
            Form::List => self.most,
            Form::First => 1,
            _ => 0,
        }
    }

    /// Whether it says a frame to the pixel.
    pub(super) fn says_pixels(&self) -> bool {
        let is_text = matches!(self.form, Form::Text(_)) && self.source == SIZE;
        is_text || matches!(self.form, Form::Width | Form::Height | Form::Object)
    }

    fn files(&self, order: &Order<'_>, slots: &mut Slots) -> Option<Value> {
        let files = order.file_list(&self.source);
        let first = files.first()?;
        Some(match self.form {
            Form::First => slots.data_uri(first).into(),
            _ => files.iter().map(|file| slots.data_uri(file)).collect(),
        })
    }

    fn size(&self, pixels: PixelSize, name: Option<&str>) -> Picked {
        let (width, height) = (pixels.width, pixels.height);
        Picked::same(match &self.form {
            Form::Width => width.into(),
            Form::Height => height.into(),
            Form::Object => json!({ "width": width, "height": height }),
            Form::Text(text) => {
                let text = text.replace("{width}", &width.to_string());
                text.replace("{height}", &height.to_string()).into()
            }
            _ => return self.ratio(pixels, name),
        })
    }

    /// The ratio of that name, or the one that is nearest to the frame's.
    fn ratio(&self, pixels: PixelSize, name: Option<&str>) -> Picked {
        let name = name.filter(|name| ratio(name).is_some());
        let known: Vec<&str> = self
            .values
            .iter()
            .map(|(known, _)| known.as_str())
            .collect();
        let nearest = wire::ratio(name, Some(pixels), &known);
        let named = nearest.and_then(|known| Some((known, self.same(known)?)));
        match (named, name) {
            (Some((known, value)), name) => {
                let is_same = match name {
                    Some(name) => name == known,
                    None => wire::is_of_ratio(pixels, known),
                };
                let instead = (!is_same).then(|| known.into());
                Picked {
                    sent: Some(value.clone()),
                    instead,
                }
            }
            (None, Some(name)) => Picked::same(name.into()),
            (None, None) => {
                let common = divisor(pixels.width, pixels.height).max(1);
                let exact = format!("{}:{}", pixels.width / common, pixels.height / common);
                Picked::same(exact.into())
            }
        }
    }

    /// The tier of that name, or the nearest one.
    fn tier(&self, name: Option<&str>, pixels: Option<PixelSize>) -> Option<Picked> {
        if self.values.is_empty() {
            return Some(Picked::same(name?.into()));
        }
        if let Some(value) = name.and_then(|name| self.same(name)) {
            return Some(Picked::same(value.clone()));
        }
        let pixels = pixels?;
        let distance = |known: &str| tier_distance(known, pixels).unwrap_or(f64::MAX);
        let (known, value) = self.nearest(distance)?;
        // A family without tiers asks for none.
        Some(match name {
            Some(_) => Picked::near(value.clone(), known.as_str()),
            None => Picked::same(value.clone()),
        })
    }

    /// What the model calls `value`: of numbers the nearest that it takes, of anything else the same.
    fn named(&self, value: &Value) -> Picked {
        let number = value.as_f64();
        if let (Some([least, greatest]), Some(wish)) = (&self.between, number) {
            let bound = |bound: &Number| Picked::near(bound.clone().into(), bound.clone());
            return match wish {
                wish if least.as_f64().is_some_and(|least| wish < least) => bound(least),
                wish if greatest.as_f64().is_some_and(|most| wish > most) => bound(greatest),
                _ => Picked::same(value.clone()),
            };
        }
        if self.values.is_empty() {
            return Picked::same(value.clone());
        }
        if let Some(value) = self.same(&plain_text(value)) {
            return Picked::same(value.clone());
        }
        let nearest = number.and_then(|wish| {
            let distance = |known: &str| {
                let number = known.parse::<f64>();
                number.map_or(f64::MAX, |number| (number - wish).abs())
            };
            self.nearest(distance)
        });
        match nearest {
            Some((known, value)) => {
                let number = known.parse::<Number>().map(Value::from);
                let known = number.unwrap_or_else(|_| known.as_str().into());
                Picked::near(value.clone(), known)
            }
            None => Picked::nothing(),
        }
    }

    /// What the model calls the value of that name.
    fn same(&self, name: &str) -> Option<&Value> {
        let mut values = self.values.iter();
        let found = values.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn nearest(&self, distance: impl Fn(&str) -> f64) -> Option<&(String, Value)> {
        let values = self.values.iter();
        values.min_by(|a, b| distance(&a.0).total_cmp(&distance(&b.0)))
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
            between: None,
            most: usize::MAX,
        }
    }

    #[test]
    fn sizes_take_every_form() {
        let wide = PixelSize::new(1664, 936);
        for (form, expected) in [
            (Form::Ratio, json!("16:9")),
            (Form::Width, json!(1664)),
            (Form::Height, json!(936)),
            (Form::Object, json!({ "width": 1664, "height": 936 })),
            (Form::Text("{width}*{height}".to_owned()), json!("1664*936")),
        ] {
            let made = rule(form, &[]).size(wide, None);
            assert_eq!(made, Picked::same(expected));
        }
        // A family's table may be a little off the ratio that it names.
        let odd = PixelSize::new(1360, 2048);
        let made = rule(Form::Ratio, &[]).size(odd, Some("2:3"));
        assert_eq!(made, Picked::same("2:3".into()));
    }

    #[test]
    fn ratios_are_the_same_or_the_nearest() {
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
                true => Picked::same(sent.into()),
                false => Picked::near(sent.into(), sent),
            };
            let made = rule(Form::Ratio, values).size(pixels, name);
            assert_eq!(made, expected, "{name:?} {values:?}");
        }
        let presets = Rule {
            values: vec![("16:9".to_owned(), json!("landscape_16_9"))],
            ..rule(Form::Ratio, &[])
        };
        let made = presets.size(PixelSize::new(1, 1), Some("1:1"));
        assert_eq!(made, Picked::near("landscape_16_9".into(), "16:9"));
    }

    #[test]
    fn tiers_are_the_same_or_the_nearest() {
        let square = Some(PixelSize::new(2048, 2048));
        let film = Some(PixelSize::new(864, 480));
        let same = |sent: &str| Some(Picked::same(sent.into()));
        let near = |sent: &str| Some(Picked::near(sent.into(), sent));
        for (name, pixels, values, expected) in [
            (Some("2k"), square, &["1K", "2K", "4K"][..], same("2K")),
            (
                Some("3K"),
                Some(PixelSize::new(3072, 3072)),
                &["1K", "2K", "4K"],
                near("4K"),
            ),
            (None, square, &["1K", "2K"], same("2K")),
            (Some("480p"), film, &["720p", "1080p"], near("720p")),
            (Some("480p"), film, &[], same("480p")),
            (None, film, &[], None),
        ] {
            let made = rule(Form::Plain, values).tier(name, pixels);
            assert_eq!(made, expected, "{name:?} {values:?}");
        }
    }

    #[test]
    fn values_are_named_as_the_model_names_them() {
        let mut seconds = rule(Form::Text("{}s".to_owned()), &[]);
        seconds.values = [4, 6, 8].map(|n| (n.to_string(), json!(n))).to_vec();
        let named = seconds.named(&json!(7));
        assert_eq!(named, Picked::near(json!(6), 6));
        assert_eq!(seconds.named(&json!(8)), Picked::same(json!(8)));
        assert_eq!(seconds.formed(json!(8)), "8s");
        let format = Rule {
            values: vec![("jpeg".to_owned(), json!("jpg"))],
            ..rule(Form::Plain, &[])
        };
        assert_eq!(format.named(&json!("JPEG")), Picked::same(json!("jpg")));
        assert_eq!(format.named(&json!("webp")), Picked::nothing());
        let any = rule(Form::Plain, &[]);
        assert_eq!(any.named(&json!(true)), Picked::same(json!(true)));
    }

    #[test]
    fn numbers_are_brought_within_what_the_model_takes() {
        let number = |text: &str| text.parse::<Number>().unwrap();
        let speed = Rule {
            between: Some([number("0.5"), number("2")]),
            ..rule(Form::Plain, &[])
        };
        for (asked, expected) in [
            (json!(0.25), Picked::near(json!(0.5), 0.5)),
            (json!(0.5), Picked::same(json!(0.5))),
            (json!(1.25), Picked::same(json!(1.25))),
            (json!(2), Picked::same(json!(2))),
            (json!(4.0), Picked::near(json!(2), 2)),
        ] {
            assert_eq!(speed.named(&asked), expected, "{asked}");
        }
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
