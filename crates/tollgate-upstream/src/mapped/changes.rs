//! What a mapped request asks for in place of what the job says.

use serde_json::Value;
use tollgate_media::image::size::{DefaultSize, Sizes};
use tollgate_media::{AnyFamily, RequestShape};

use super::Mapping;
use super::convert::Rule;
use super::order::{EXTRA, Order, RESOLUTION, SIZE};
use crate::wire::Changes;

impl Mapping {
    /// What `order` asks for and its requests do not carry.
    pub(super) fn changes(&self, order: &Order<'_>) -> Changes {
        let chosen = self.chosen(order);
        let mut changes = Changes::default();
        for source in order.sources() {
            if !chosen.implied.contains(&source) {
                chosen.change(order, &source, &mut changes);
            }
        }
        changes
    }

    fn change(&self, order: &Order<'_>, source: &str, changes: &mut Changes) {
        let Some(asked) = order.asked(source) else {
            return;
        };
        let field = field(order, source);
        let rules = self.rules.iter().filter(|rule| rule.source == source);
        let picked: Vec<_> = rules.filter_map(|rule| rule.pick(order)).collect();
        // One of several targets that carries it is enough.
        if picked.iter().any(|picked| picked.instead.is_none()) || self.says_pixels_for(source) {
            return;
        }
        let is_chosen = is_chosen(order, source, &asked);
        let always = self.constants.get(field);
        match (picked.into_iter().find_map(|picked| picked.instead), always) {
            (Some(Value::Null), _) if is_chosen => {
                changes.left_out(field, asked, "the channel's model has no such value");
            }
            (Some(Value::Null), _) => {}
            (Some(near), _) => {
                let why = "the nearest that the channel's model takes";
                changes.instead(field, asked, near, why);
            }
            (None, Some(always)) => {
                let why = "the channel always asks for this";
                changes.instead(field, asked, always.clone(), why);
            }
            (None, None) if is_chosen => {
                changes.left_out(field, asked, "the channel's model has no such field");
            }
            (None, None) => {}
        }
    }

    /// Whether `source` is the tier, and a rule says the frame to the pixel.
    fn says_pixels_for(&self, source: &str) -> bool {
        let says_pixels = |rule: &Rule| rule.source == SIZE && rule.says_pixels();
        source == RESOLUTION && self.rules.iter().any(says_pixels)
    }
}

/// A source's name in a request.
fn field<'s>(order: &Order<'_>, source: &'s str) -> &'s str {
    let fields = order
        .family
        .map(|family| family.fields(RequestShape::Usual));
    let has =
        |name: &str| fields.is_none_or(|fields| fields.iter().any(|field| field.name == name));
    match source {
        // Where no field is for tiers alone, `size` takes them.
        RESOLUTION if !has(RESOLUTION) => SIZE,
        _ => source.strip_prefix(EXTRA).unwrap_or(source),
    }
}

/// Whether a client must have asked for the value: a request that does not name the field gets another one.
fn is_chosen(order: &Order<'_>, source: &str, asked: &Value) -> bool {
    let unasked = match (source, order.family) {
        (SIZE, Some(family)) => usual_size(family, order).map(Value::from),
        (RESOLUTION, Some(family)) => usual_tier(family).map(Value::from),
        ("seconds", Some(AnyFamily::Video(family))) => Some(family.lengths.default().into()),
        _ => {
            return order
                .chosen
                .contains_key(source.strip_prefix(EXTRA).unwrap_or(source));
        }
    };
    unasked.is_some_and(|unasked| unasked != *asked)
}

/// The ratio or pixels of a request that names none; none where they follow a picture.
fn usual_size(family: AnyFamily, order: &Order<'_>) -> Option<String> {
    match family {
        AnyFamily::Image(family) => match &family.sizes {
            Sizes::Ratios(sizes) => match sizes.default {
                DefaultSize::Follow(_) if order.has_images() => None,
                DefaultSize::Ratio(ratio) | DefaultSize::Follow(ratio) => Some(ratio.to_owned()),
            },
            Sizes::Listed(sizes) => Some(sizes.default.to_string()),
            // Its tiers are squares, or follow a picture.
            Sizes::Free(_) => (!order.has_images()).then(|| "1:1".to_owned()),
        },
        AnyFamily::Video(family) => {
            let ratio = family.sizes.default_ratio.to_owned();
            order.ratio.is_some().then_some(ratio)
        }
        AnyFamily::Speech(_) => None,
    }
}

fn usual_tier(family: AnyFamily) -> Option<&'static str> {
    match family {
        AnyFamily::Image(family) => match &family.sizes {
            Sizes::Ratios(sizes) => sizes.tiers.get(sizes.default_tier).copied(),
            Sizes::Listed(_) => None,
            Sizes::Free(sizes) => Some(sizes.default),
        },
        AnyFamily::Video(family) => family.sizes.tiers.get(family.sizes.default_tier).copied(),
        AnyFamily::Speech(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_media::{Catalogue, Job, read};

    use super::*;
    use crate::channel::ChannelModel;

    /// What is told of `body`, read for `model`, at a channel with these options.
    fn told(model: &str, body: Value, options: Value) -> Vec<String> {
        let catalogue = Catalogue::new(&[]).unwrap();
        let mut models = catalogue.task_models();
        let found = models.find(|found| found.name == model).expect(model);
        let body = body.as_object().unwrap();
        let submission = read(found, RequestShape::Usual, body, true).unwrap();
        let order = match submission.job() {
            Job::Image(job) => Order::pictures(job, Vec::new()),
            Job::Video(job) => Order::film(job, Vec::new()),
            Job::Speech(job) => Order::speech(job),
        };
        let entry = ChannelModel {
            options: options.as_object().cloned().unwrap(),
            ..ChannelModel::new("m", "a/b")
        };
        Mapping::of(&entry, &[]).unwrap().changes(&order).shown()
    }

    fn film(body: Value, options: Value) -> Vec<String> {
        let mut whole = json!({ "model": "veo-3.1-pro", "prompt": "a boat" });
        let body = body.as_object().cloned().unwrap();
        whole.as_object_mut().unwrap().extend(body);
        told("veo-3.1-pro", whole, options)
    }

    /// Takes everything of a film.
    fn all() -> Value {
        json!({ "prompt": "p", "seconds": "s", "size": "ar", "resolution": "r", "seed": "seed", "negative_prompt": "np",
            "generate_audio": "ga", "person_generation": "pg" })
    }

    #[test]
    fn what_is_carried_is_not_told() {
        let body = json!({ "seconds": "8", "aspect_ratio": "9:16", "resolution": "4k",
            "metadata": { "seed": 5, "negativePrompt": "fog", "generateAudio": false } });
        assert_eq!(
            film(body.clone(), json!({ "input": all() })),
            [""; 0],
            "every field"
        );
        let mut input = all();
        input["seconds"] = json!({ "to": "s", "as": "{}s", "of": [4, 6, 8] });
        input["size"] = json!({ "to": "ar", "values": { "9:16": "tall", "16:9": "wide" } });
        input["resolution"] = json!({ "to": "r", "of": ["720p", "4K"] });
        assert_eq!(
            film(body.clone(), json!({ "input": input })),
            [""; 0],
            "among the values"
        );
        // One of two targets says it all.
        input["size"] = json!([{ "to": "ar", "of": ["1:1"] }, { "to": "w", "as": "width" }]);
        assert_eq!(
            film(body, json!({ "input": input })),
            [""; 0],
            "exactly once"
        );
        // Nobody asked for what a request gets by default.
        let bare = json!({ "prompt": "p" });
        assert_eq!(
            film(json!({}), json!({ "input": bare })),
            [""; 0],
            "nothing"
        );
    }

    #[test]
    fn the_nearest_is_told() {
        let mut input = all();
        input["seconds"] = json!({ "to": "s", "of": [5, 10] });
        input["size"] = json!({ "to": "ar", "of": ["1:1", "4:3"] });
        input["resolution"] = json!({ "to": "r", "of": ["480p"] });
        let body = json!({ "seconds": "6", "aspect_ratio": "16:9" });
        assert_eq!(
            film(body, json!({ "input": input })),
            [
                r#"size: "16:9" → "4:3""#,
                r#"resolution: "720p" → "480p""#,
                "seconds: 6 → 5",
            ]
        );
        // A default that the model has not is told too: the family promises it.
        input["seconds"] = json!({ "to": "s", "between": [2, 5] });
        input["size"] = json!("ar");
        input["resolution"] = json!("r");
        assert_eq!(
            film(json!({}), json!({ "input": input })),
            ["seconds: 8 → 5"]
        );
        let speech = json!({ "model": "native-v3", "input": "Hello.", "speed": 4.0 });
        let options =
            json!({ "input": { "prompt": "t", "speed": { "to": "s", "between": [0.5, 2] } } });
        assert_eq!(told("native-v3", speech, options), ["speed: 4.0 → 2"]);
        // Pictures are asked for by `size` alone, and by pixels where the family has those.
        let picture =
            json!({ "model": "gpt-image-2-official", "prompt": "p", "size": "1536x1024" });
        let options = json!({ "input": { "prompt": "p", "size": { "to": "s", "of": ["1:1"] } } });
        assert_eq!(
            told("gpt-image-2-official", picture, options),
            [r#"size: "1536x1024" → "1:1""#]
        );
    }

    #[test]
    fn a_value_without_a_word_is_told() {
        let mut input = all();
        input["person_generation"] = json!({ "to": "pg", "of": ["allow_adult"] });
        input["generate_audio"] = json!({ "to": "ga", "values": { "false": "mute" } });
        let body = json!({ "metadata": { "personGeneration": "dont_allow" } });
        assert_eq!(
            film(body, json!({ "input": input })),
            [r#"person_generation: "dont_allow" → null"#],
            "and sound is what there is by default"
        );
    }

    #[test]
    fn a_field_without_a_rule_is_told() {
        let body = json!({ "seconds": "8", "aspect_ratio": "9:16", "resolution": "1080p",
            "metadata": { "seed": 5, "negativePrompt": "fog", "generateAudio": false } });
        let bare = json!({ "input": { "prompt": "p" } });
        assert_eq!(
            film(body.clone(), bare),
            [
                r#"size: "9:16" → null"#,
                r#"resolution: "1080p" → null"#,
                r#"negative_prompt: "fog" → null"#,
                "seed: 5 → null",
                "generate_audio: false → null",
            ]
        );
        // Pixels say the tier too; what is implied needs no word.
        let options = json!({ "input": { "prompt": "p", "size": { "to": "s", "as": "object" } },
            "implied": ["seed", "negative_prompt", "generate_audio"] });
        assert_eq!(film(body, options), [""; 0]);
        let speech = json!({ "model": "native-v3", "input": "Hello.", "instructions": "softly", "external_task_id": "e" });
        assert_eq!(
            told(
                "native-v3",
                speech,
                json!({ "input": { "prompt": "text" } })
            ),
            [r#"instructions: "softly" → null"#]
        );
    }

    #[test]
    fn a_constant_says_it_or_something_else() {
        let options = |audio: bool| json!({ "input": { "prompt": "p" }, "constants": { "generate_audio": audio } });
        let body = json!({ "metadata": { "generateAudio": false } });
        assert_eq!(film(body.clone(), options(false)), [""; 0]);
        assert_eq!(film(body, options(true)), ["generate_audio: false → true"]);
    }

    #[test]
    fn what_a_family_has_of_its_own_is_told() {
        let picture = |more: Value| {
            let mut whole = json!({ "model": "doubao-seedream-4.5", "prompt": "p" });
            let more = more.as_object().cloned().unwrap();
            whole.as_object_mut().unwrap().extend(more);
            told(
                "doubao-seedream-4.5",
                whole,
                json!({ "input": { "prompt": "p", "size": "s" } }),
            )
        };
        assert_eq!(picture(json!({})), [""; 0], "all defaults");
        assert_eq!(
            picture(
                json!({ "resolution": "4K", "watermark": true, "optimize_prompt_mode": "fast" })
            ),
            [
                r#"resolution: "4K" → null"#,
                "watermark: true → null",
                r#"optimize_prompt_options: {"mode":"fast"} → null"#,
            ]
        );
        // Tiers of wan2.7 are values of `size`.
        let tier = json!({ "model": "wan2.7-image", "prompt": "p", "size": "1K" });
        let options = json!({ "input": { "prompt": "p" } });
        assert_eq!(
            told("wan2.7-image", tier, options),
            [r#"size: "1K" → null"#]
        );
    }
}
