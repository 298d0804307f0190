//! Valid and invalid configurations, and the errors of the invalid ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_core::{Amount, TaskKind};
use tollgate_store::RateLimits;
use tollgate_upstream::Channel;

use super::{Config, ModelPrice, Overrides, UnitPrice};
use crate::providers::add_providers;

fn read_all(
    text: &str,
    variables: &[(&str, &str)],
    overrides: &Overrides,
) -> Result<(Config, Vec<String>), String> {
    add_providers(tollgate_sandbox::PROVIDERS);
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let variables = variables.iter().map(own).collect();
    Config::read("t.toml", text, overrides, &variables).map_err(|e| e.to_string())
}

fn parse_config(text: &str) -> Result<Config, String> {
    read_all(text, &[], &Overrides::default()).map(|(config, _)| config)
}

#[test]
fn an_empty_file_gives_the_documented_defaults() {
    let config = parse_config("").unwrap();
    assert_eq!(config.listen, "127.0.0.1:8080");
    assert_eq!(config.public_url, None);
    assert_eq!(config.data_dir, Path::new("./tollgate-data"));
    assert_eq!(
        config.default_storage_dir(),
        Some(PathBuf::from("./tollgate-data/files"))
    );
    assert_eq!(config.storage_dir(), Path::new("./tollgate-data/files"));
    assert_eq!(config.currency.to_string(), "USD");
    assert!(config.demo && config.database_url.is_none() && config.admin_key.is_none());
    assert_eq!((config.drain_s, config.leases.ms()), (30, 30_000));
    assert_eq!(config.expiry.images_ms(), 86_400_000);
    assert_eq!(config.expiry.long_ms(), 259_200_000);
    assert_eq!(config.expiry.tasks_ms(), 30 * 86_400_000);
    assert_eq!(config.time_limits.task_ms(TaskKind::Image), 600_000);
    assert_eq!(
        config.provider_settings().sandbox_image,
        Duration::from_millis(800)
    );
    assert!(config.safety.blocks("CHILD  porn") && !config.safety.blocks("a lake"));
}

#[test]
fn an_empty_file_gives_the_documented_defaults_of_chat() {
    let config = parse_config("").unwrap();
    let limits = config.time_limits;
    let seconds = [
        limits.chat_connect,
        limits.chat_first_byte,
        limits.chat_idle,
    ];
    assert_eq!(seconds.map(|limit| limit.as_secs()), [10, 300, 120]);
    assert_eq!(config.provider_settings().sandbox_chat, Duration::ZERO);
    assert_eq!(config.limits.rates(), RateLimits::default());
    assert_eq!(config.chat.default_max_tokens, 8_192);
}

#[test]
fn settings_of_chat_are_read() {
    let text = r#"
        time_limits = { chat_connect_s = 1, chat_first_byte_s = 2, chat_idle_s = 3 }
        sandbox.chat_ms = 4
        limits = { rpm = 5, tpm = 6, max_concurrency = 7 }
        chat.default_max_tokens = 8
        [[channel]]
        name = "main"
        kind = "sandbox"
        apis = ["messages", "responses"]
        connect_s = 9
        first_byte_s = 10
        idle_s = 11
        [[channel]]
        name = "plain"
        kind = "sandbox"
        idle_s = 12
    "#;
    let config = parse_config(text).unwrap();
    let limits = config.time_limits;
    let seconds = [
        limits.chat_connect,
        limits.chat_first_byte,
        limits.chat_idle,
    ];
    assert_eq!(seconds.map(|limit| limit.as_secs()), [1, 2, 3]);
    assert_eq!(
        config.provider_settings().sandbox_chat,
        Duration::from_millis(4)
    );
    let rates = RateLimits {
        rpm: Some(5),
        tpm: Some(6),
        max_concurrency: Some(7),
    };
    assert_eq!(config.limits.rates(), rates);
    assert_eq!(config.chat.default_max_tokens, 8);
    let [main, plain] = &config.channels[..] else {
        panic!("two channels")
    };
    let apis = main.apis.as_ref().unwrap();
    assert_eq!(apis.join(" "), "messages responses");
    let limits = |channel: &Channel| {
        let limits = channel.time_limits;
        [limits.connect, limits.first_byte, limits.idle].map(|limit| limit.map(|l| l.as_secs()))
    };
    assert_eq!(limits(main), [Some(9), Some(10), Some(11)]);
    assert_eq!(
        (limits(plain), &plain.apis),
        ([None, None, Some(12)], &None)
    );
}

#[test]
fn token_prices_default_to_those_of_input_and_output() {
    let text = r#"
        [price.plain]
        input_per_million = 1.25
        output_per_million = 10
        [price.full]
        input_per_million = 1
        cached_input_per_million = 0.1
        cache_write_per_million = 1.5
        output_per_million = 5
        reasoning_per_million = 0
        [price.output_only]
        output_per_million = 2
    "#;
    let config = parse_config(text).unwrap();
    for (model, expected) in [
        ("plain", ["1.25", "1.25", "1.25", "10", "10"]),
        ("full", ["1", "0.1", "1.5", "5", "0"]),
        ("output_only", ["0", "0", "0", "2", "2"]),
    ] {
        let p = &config.prices[model].tokens;
        let found = [
            p.input,
            p.cached_input,
            p.cache_write,
            p.output,
            p.reasoning,
        ];
        assert_eq!(found.map(|price| price.to_string()), expected, "{model}");
    }
    assert!(!config.prices["output_only"].tokens.is_free());
    assert!(ModelPrice::default().tokens.is_free());
}

#[test]
fn a_full_file_is_read() {
    let text = r#"
        listen = "[::1]:9000"
        public_url = "https://gateway.example/base/"
        currency = "CNY"
        demo = false
        database.url = "postgres://u:secret@h/d"
        storage.url = "file:///srv/a%20b"
        media.allow_private_urls = ["10.0.0.0/8", "127.0.0.1"]
        expiry = { images_s = 60, long_s = 120, tasks_days = 1, tasks_s = 5 }
        time_limits = { image_s = 7, video_s = 8, chat_idle_s = 9 }
        sandbox = { image_ms = 0, chat_ms = 1 }
        admin.key = "let-me-in"
        workers = { calls = 2, open = 3, downloads = 4 }
        safety = { patterns = ["purple lake"], families = ["seedream-4-5"] }

        [[model]]
        name = "studio-model"
        like = "gpt-image-2-official"

        [[channel]]
        name = "main"
        kind = "sandbox"
        base_url = "https://x.example/v1/"
        api_keys = ["k1", "k2"]
        models = ["studio-model", { name = "gpt-image-2-official", upstream = "gpt-image-2" }]
        priority = -1
        weight = 3
        max_concurrency = 64

        [price."gpt-image-2-official"]
        per_image = 0.04
        when = [{ size = "1:1", per_image = 0.020000001 }]
        [price.sora-2]
        per_second = 0.1
    "#;
    let config = parse_config(text).unwrap();
    assert_eq!(
        config.public_url.as_deref(),
        Some("https://gateway.example/base")
    );
    assert_eq!(config.storage_dir(), Path::new("/srv/a b"));
    assert_eq!(config.default_storage_dir(), None);
    assert_eq!(config.allow_private_urls.len(), 2);
    assert_eq!(config.expiry.tasks_ms(), 5_000);
    assert!(config.safety.blocks("A purple-lake") && !config.safety.blocks("child porn"));
    let channel = &config.channels[0];
    assert_eq!(channel.base_url.as_deref(), Some("https://x.example/v1"));
    assert_eq!(
        channel.upstream_model("gpt-image-2-official"),
        Some("gpt-image-2")
    );
    assert_eq!(channel.upstream_model("studio-model"), Some("studio-model"));
    assert_eq!(
        (channel.priority, channel.weight, channel.max_concurrency),
        (-1, 3, Some(64))
    );
    let price = &config.prices["gpt-image-2-official"];
    let image = |nanos| UnitPrice::PerImage(Amount::from_nanos(nanos));
    assert_eq!(price.unit, Some(image(40_000_000)));
    assert_eq!(price.when[0].unit, image(20_000_001));
    let shown = format!("{config:?}");
    for secret in ["secret@", "let-me-in", "k1"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[test]
fn errors_name_the_setting_its_line_and_what_it_takes() {
    let rows = include_str!("../tests/cases/config_errors.jsonl").lines();
    for row in rows.filter(|line| !line.starts_with("//")) {
        let (text, expected): (String, String) = serde_json::from_str(row).unwrap();
        let error = parse_config(&text).err().unwrap_or_default();
        let fits =
            error == expected || expected.ends_with([' ', 'y']) && error.starts_with(&expected);
        assert!(fits, "{text}\n gives {error}\n not   {expected}");
    }
    let twice = "[[channel]]\nname = \"a\"\nkind = \"sandbox\"\n".repeat(2);
    assert_eq!(
        parse_config(&twice).unwrap_err(),
        "t.toml, line 5: channel[1].name is \"a\", the name of another channel"
    );
}

#[test]
fn the_environment_overrides_the_file_and_the_command_line_overrides_both() {
    let text = "listen = \"a:1\"\ndata_dir = \"file\"\nadmin.key = \"env:KEY\"\n\
        [[channel]]\nname = \"c\"\nkind = \"sandbox\"\n[price.\"gpt-5\"]\nper_image = 1";
    let variables = [
        ("KEY", "k"),
        ("TOLLGATE_LISTEN", "b:2"),
        ("TOLLGATE_DATA_DIR", "variable"),
        ("TOLLGATE_DEMO", "false"),
        ("TOLLGATE_DRAIN_S", "7"),
        ("TOLLGATE_DATABASE__URL", "postgres://h/d"),
        (
            "TOLLGATE_MEDIA__ALLOW_PRIVATE_URLS",
            "10.0.0.0/8, 192.168.0.0/16",
        ),
        ("TOLLGATE_SAFETY__PATTERNS", "[\"one, two\"]"),
        ("TOLLGATE_CHANNEL__0__WEIGHT", "9"),
        ("TOLLGATE_CHANNEL__1__NAME", "d"),
        ("TOLLGATE_CHANNEL__1__KIND", "sandbox"),
        ("TOLLGATE_PRICE__GPT_5__PER_IMAGE", "0.5"),
        ("TOLLGATE_CURRENCY", ""),
        ("TOLLGATE_API_KEY", "sk-client"),
        ("TOLLGATE_LISTENN", "x"),
        ("TOLLGATE_PRICE__NONE__PER_IMAGE", "1"),
    ];
    let overrides = Overrides {
        listen: Some("c:3".into()),
        ..Overrides::default()
    };
    let (config, warnings) = read_all(text, &variables, &overrides).unwrap();
    assert_eq!(config.listen, "c:3");
    assert_eq!(config.data_dir, Path::new("variable"));
    assert!(!config.demo);
    assert_eq!(config.drain_s, 7);
    assert!(config.database_url.is_some());
    assert_eq!(config.allow_private_urls.len(), 2);
    assert!(config.safety.blocks("one two"));
    assert!(config.admin_key.unwrap().matches("k"));
    assert_eq!(config.channels[0].weight, 9);
    assert_eq!(config.channels[1].name, "d");
    let half = UnitPrice::PerImage(Amount::from_nanos(500_000_000));
    assert_eq!(config.prices["gpt-5"].unit, Some(half));
    assert_eq!(
        warnings,
        [
            "environment variable TOLLGATE_LISTENN names no setting and is ignored",
            "environment variable TOLLGATE_PRICE__NONE__PER_IMAGE names no setting and is ignored",
        ]
    );
}

#[test]
fn an_invalid_variable_is_named() {
    for (variable, value, expected) in [
        (
            "TOLLGATE_DRAIN_S",
            "x",
            "environment variable TOLLGATE_DRAIN_S: drain_s is \"x\", but it takes a whole number from 0 to 3600",
        ),
        (
            "TOLLGATE_DEMO",
            "yes",
            "environment variable TOLLGATE_DEMO: demo takes true or false",
        ),
        (
            "TOLLGATE_CHANNEL",
            "x",
            "environment variable TOLLGATE_CHANNEL: channel[0] must be a TOML value, such as [\"a\", \"b\"] or {name = \"a\"}",
        ),
        (
            "TOLLGATE_CHANNEL",
            "[{name = \"a\", kind = \"sandbox\"}, {name = \"a\", kind = \"sandbox\"}]",
            "environment variable TOLLGATE_CHANNEL: channel[1].name is \"a\", the name of another channel",
        ),
    ] {
        let error = read_all("", &[(variable, value)], &Overrides::default()).err();
        assert_eq!(error.as_deref(), Some(expected));
    }
}

#[test]
fn unknown_models_are_warned_of() {
    let text = "price.nosuch.per_image = 1\n[[channel]]\nname = \"c\"\nkind = \"sandbox\"\nmodels = [\"none\"]";
    let (_, warnings) = read_all(text, &[], &Overrides::default()).unwrap();
    assert_eq!(
        warnings,
        [
            "a price names model \"nosuch\", which the catalogue does not have",
            "channel \"c\" names model \"none\", which the catalogue does not have",
        ]
    );
}

#[test]
fn values_of_the_environment_are_not_checked() {
    add_providers(tollgate_sandbox::PROVIDERS);
    let channel = "[[channel]]\nname = \"c\"\nkind = \"sandbox\"";
    let check = |text: &str| Config::check_imported(text, ["X".to_owned()]);
    for (text, field) in [
        ("listen = \"env:X\"", "listen"),
        ("demo = \"env:X\"", "demo"),
        ("database.url = \"env:X\"", "database.url"),
        (
            "database = { url = \"postgres://h/d\", replica_url = \"env:X\" }",
            "database.replica_url",
        ),
        ("limits.redis_url = \"env:X\"", "limits.redis_url"),
        ("traces.headers = \"env:X\"", "traces.headers"),
        ("channel = [\"env:X\"]", "channel[0]"),
        (
            &format!("{channel}\nbase_url = \"env:X\""),
            "channel[0].base_url",
        ),
        (
            "[oidc]\nissuer = \"env:X\"\nclient_id = \"g\"",
            "oidc.issuer",
        ),
    ] {
        let expected = format!("{field} comes from the environment and is not checked here");
        assert_eq!(check(text), Ok(vec![expected]), "{text}");
    }
    for (text, field) in [
        ("database.url = \"env:NONE\"", "database.url"),
        ("database.url = \"mysql:\"", "database.url"),
        ("demo = 1\ndatabase.url = \"env:X\"", "demo"),
    ] {
        assert_eq!(check(text).unwrap_err().field(), Some(field), "{text}");
    }
}

#[test]
fn the_shown_url_of_a_bucket_has_the_parameters_that_are_no_settings_of_their_own() {
    let shown = |text: &str| {
        let settings = parse_config(text).unwrap().settings().into_iter();
        let mut values = settings.filter(|setting| setting.key == "storage.url");
        values.next().unwrap().value.as_str().unwrap().to_owned()
    };
    let url = "s3://files/a?endpoint=http://[::1]:9&region=eu&path_style=false";
    let text = format!("storage.url = {url:?}");
    let again = shown(&text);
    assert_eq!(
        again,
        "s3://files/a/?endpoint=http%3A%2F%2F%5B%3A%3A1%5D%3A9%2F&region=eu&path_style=false"
    );
    let location = |text: &str| parse_config(text).unwrap().storage_s3().unwrap().clone();
    assert_eq!(
        location(&format!("storage.url = {again:?}")),
        location(&text)
    );
    let own = "storage = { url = \"s3://files/a?region=eu\", endpoint = \"http://h:9\" }";
    assert_eq!(shown(own), "s3://files/a/?region=eu");
}

#[test]
fn the_origin_of_the_admin_key_of_a_channel_is_kept() {
    let channel = |name: &str, key: &str| {
        format!("[[channel]]\nname = \"{name}\"\nkind = \"sandbox\"\n{key}\n")
    };
    let text = [
        channel("a", "admin_key = \"env:X\""),
        channel("b", "admin_key = \"k\""),
        channel("c", ""),
    ];
    let (config, _) = read_all(&text.concat(), &[("X", "k")], &Overrides::default()).unwrap();
    let origins = [("a", "env:X"), ("b", "file")];
    let origins = origins.map(|(name, origin)| (name.to_owned(), origin.to_owned()));
    assert_eq!(config.admin_key_origins, BTreeMap::from(origins));
}
