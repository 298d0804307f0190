//! Every size of every table, written as the docs pages.

use serde_json::json;
use tollgate_media::image::PixelSize;

use crate::{adjustment_values, submit};

/// Checks a table: a header of tiers, then rows of a ratio and its pixels.
fn check_table(models: &[&str], table: &str) {
    let mut lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    let tiers: Vec<&str> = lines.next().unwrap().split_whitespace().skip(1).collect();
    for line in lines {
        let mut words = line.split_whitespace();
        let ratio = words.next().unwrap();
        for (tier, pixels) in tiers.iter().zip(words) {
            for model in models {
                let mut body = json!({ "size": ratio });
                if *tier != "-" {
                    body["resolution"] = (*tier).into();
                }
                let got = submit(model, &body);
                assert_eq!(got.price.pixels.as_deref(), Some(pixels), "{model} {body}");
                assert_eq!(got.price.size, ratio);
                let size = &got.job().size;
                assert_eq!(size.ratio.as_deref(), Some(ratio));
                assert_eq!(size.tier.as_deref(), (*tier != "-").then_some(*tier));
                assert_eq!(got.adjustments, []);
            }
        }
    }
}

#[test]
fn gpt_image_2() {
    let table = "
        size 1k        2k        4k
        1:1  1024x1024 2048x2048 2880x2880
        3:2  1536x1024 2048x1360 3520x2336
        2:3  1024x1536 1360x2048 2336x3520
        4:3  1024x768  2048x1536 3312x2480
        3:4  768x1024  1536x2048 2480x3312
        5:4  1280x1024 2560x2048 3216x2576
        4:5  1024x1280 2048x2560 2576x3216
        16:9 1536x864  2048x1152 3840x2160
        9:16 864x1536  1152x2048 2160x3840
        2:1  2048x1024 2688x1344 3840x1920
        1:2  1024x2048 1344x2688 1920x3840
        3:1  1536x512  3072x1024 3840x1280
        1:3  512x1536  1024x3072 1280x3840
        21:9 2016x864  2688x1152 3840x1648
        9:21 864x2016  1152x2688 1648x3840";
    check_table(&["gpt-image-2-official"], table);
    // Each of its pixel sizes may be asked by itself, alone or with its own tier.
    let mut lines = table.lines().skip(1);
    let tiers: Vec<&str> = lines.next().unwrap().split_whitespace().skip(1).collect();
    let rows = lines.map(|line| line.split_whitespace().skip(1));
    let cells = rows.flat_map(|row| tiers.iter().copied().zip(row));
    for (tier, pixels) in cells.chain([("1k", "1881x836"), ("1k", "887x1774")]) {
        for body in [
            json!({ "size": pixels }),
            json!({ "size": pixels, "resolution": tier.to_uppercase() }),
        ] {
            let got = submit("gpt-image-2-official", &body);
            assert_eq!(got.price.pixels.as_deref(), Some(pixels));
            assert_eq!(got.price.resolution.as_deref(), Some(tier));
            assert_eq!(got.job().size.ratio, None);
        }
    }
}

#[test]
fn gpt_image_1() {
    for model in ["gpt-image-1-official", "gpt-image-1.5-official"] {
        check_table(
            &[model],
            "size -\n 1:1 1024x1024\n 3:2 1536x1024\n 2:3 1024x1536",
        );
        for (pixels, ratio) in [
            ("1024x1024", "1:1"),
            ("1536x1024", "3:2"),
            ("1024x1536", "2:3"),
        ] {
            let got = submit(model, &json!({ "size": pixels }));
            assert_eq!(got.job().size.ratio.as_deref(), Some(ratio));
            assert_eq!(got.price.pixels.as_deref(), Some(pixels));
        }
    }
}

#[test]
fn gpt_image_2_5_async() {
    for size in "1024x1024 1536x1024 1024x1536 1024x1365 1365x1024 1088x1920 1920x1088
        2048x2048 1712x2560 2560x1712 2048x1536 1152x2048 2048x1152 2880x2880 2560x3840
        3840x2560 3840x2880 2160x3840 3840x2160"
        .split_whitespace()
    {
        let got = submit("gpt-image-2.5-async", &json!({ "size": size }));
        assert_eq!(got.price.pixels.as_deref(), Some(size));
        assert_eq!(got.price.size, size);
    }
}

#[test]
fn seedream() {
    check_table(
        &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
        ],
        "size 2K        4K
         1:1  2048x2048 4096x4096
         4:3  2304x1728 4688x3520
         3:4  1728x2304 3520x4688
         16:9 2560x1440 5404x3040
         9:16 1440x2560 3040x5404
         3:2  2496x1664 4992x3328
         2:3  1664x2496 3328x4992
         21:9 3024x1296 6192x2656
         9:21 1296x3024 2656x6192",
    );
    check_table(
        &[
            "doubao-seedream-5-0-lite",
            "doubao-seedream-5.0-lite",
            "Doubao-Seedream-5.0-lite",
        ],
        "size 2K        3K
         1:1  2048x2048 3072x3072
         4:3  2304x1728 3456x2592
         3:4  1728x2304 2592x3456
         16:9 2848x1600 4096x2304
         9:16 1600x2848 2304x4096
         3:2  2496x1664 3744x2496
         2:3  1664x2496 2496x3744
         21:9 3136x1344 4704x2016",
    );
}

#[test]
fn grok_and_imagen() {
    check_table(
        &["grok-imagine-1.0-partner"],
        "size -\n 1:1 1024x1024\n 16:9 1280x720\n 9:16 720x1280\n 3:2 1248x832\n 2:3 832x1248",
    );
    check_table(
        &["imagen-4.0-partner"],
        "size -\n 1:1 1024x1024\n 4:3 1280x896\n 3:4 896x1280\n 16:9 1408x768\n 9:16 768x1408",
    );
}

#[test]
fn gemini() {
    check_table(
        &[
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-image-preview-official",
        ],
        "size 1K
         1:1  1024x1024
         2:3  832x1248
         3:2  1248x832
         3:4  864x1184
         4:3  1184x864
         4:5  896x1152
         5:4  1152x896
         9:16 768x1344
         16:9 1344x768
         21:9 1536x672",
    );
    check_table(
        &[
            "gemini-3-pro-image-preview",
            "gemini-3-pro-image-preview-official",
        ],
        "size 1K        2K        4K
         1:1  1024x1024 2048x2048 4096x4096
         2:3  848x1264  1696x2528 3392x5056
         3:2  1264x848  2528x1696 5056x3392
         3:4  896x1200  1792x2400 3584x4800
         4:3  1200x896  2400x1792 4800x3584
         4:5  928x1152  1856x2304 3712x4608
         5:4  1152x928  2304x1856 4608x3712
         9:16 768x1376  1536x2752 3072x5504
         16:9 1376x768  2752x1536 5504x3072
         21:9 1584x672  3168x1344 6336x2688",
    );
    check_table(
        &[
            "gemini-3.1-flash-image-preview",
            "gemini-3.1-flash-image-preview-official",
        ],
        "size 0.5K     1K        2K        4K
         1:1  512x512  1024x1024 2048x2048 4096x4096
         3:2  632x424  1264x848  2528x1696 5056x3392
         2:3  424x632  848x1264  1696x2528 3392x5056
         4:3  600x448  1200x896  2400x1792 4800x3584
         3:4  448x600  896x1200  1792x2400 3584x4800
         16:9 688x384  1376x768  2752x1536 5504x3072
         9:16 384x688  768x1376  1536x2752 3072x5504
         5:4  576x464  1152x928  2304x1856 4608x3712
         4:5  464x576  928x1152  1856x2304 3712x4608
         21:9 792x336  1584x672  3168x1344 6336x2688
         1:4  256x1024 512x2048  1024x4096 2048x8192
         4:1  1024x256 2048x512  4096x1024 8192x2048
         1:8  192x1536 384x3072  768x6144  1536x12288
         8:1  1536x192 3072x384  6144x768  12288x1536",
    );
}

#[test]
fn wan2_7() {
    let group = json!({ "enable_sequential": true });
    let edit = json!({ "image_urls": ["https://a/b.png"] });
    let text = json!({});
    let (pro, plain) = ("wan2.7-image-pro", "wan2.7-image");
    let wide = "1:1 2048x2048 16:9 2560x1440 9:16 1440x2560 4:3 2304x1728 3:4 1728x2304 3:2 2496x1664 2:3 1664x2496
        4K 4096x4096 4096x4096 4096x4096 768*768 768x768 4096*768 4096x768";
    let usual = "1:1 2048x2048 16:9 2048x1152 9:16 1152x2048 4:3 2048x1536 3:4 1536x2048 3:2 2048x1360 2:3 1360x2048
        2048x2048 2048x2048 1024*1024 1024x1024 768x2048 768x2048 1000x1001 1000x1001";
    for (model, base, table) in [
        (pro, &text, wide),
        (pro, &group, usual),
        (pro, &edit, usual),
        (plain, &text, usual),
        (plain, &group, usual),
        (plain, &edit, usual),
    ] {
        let words: Vec<&str> = table.split_whitespace().collect();
        for pair in words.chunks(2) {
            let mut body = base.clone();
            body["size"] = pair[0].into();
            let got = submit(model, &body);
            assert_eq!(got.price.pixels.as_deref(), Some(pair[1]), "{model} {body}");
            assert_eq!(got.price.size, pair[0].replace('*', "x"));
        }
    }
    for (asked, tier, side) in [("1K", "1K", 1024), ("1k", "1K", 1024), ("2K", "2K", 2048)] {
        for (model, base) in [(pro, &text), (pro, &group), (plain, &text), (plain, &group)] {
            let mut body = base.clone();
            body["size"] = asked.into();
            let size = submit(model, &body).job().size.clone();
            assert_eq!(size.pixels, Some(PixelSize::new(side, side)));
            assert_eq!(size.tier.as_deref(), Some(tier));
        }
        let body = json!({ "size": asked, "image_urls": ["https://a/b.png"] });
        assert_eq!(submit(pro, &body).job().size.pixels, None);
    }
}

#[test]
fn a_size_by_default() {
    for (model, size, pixels, tier) in [
        ("gpt-image-2-official", "1:1", "1024x1024", Some("1k")),
        ("gpt-image-1-official", "1:1", "1024x1024", None),
        ("gpt-image-2.5-async", "1024x1024", "1024x1024", None),
        ("doubao-seedream-4.5", "1:1", "2048x2048", Some("2K")),
        ("doubao-seedream-5.0-lite", "1:1", "2048x2048", Some("2K")),
        ("grok-imagine-1.0-partner", "1:1", "1024x1024", None),
        ("imagen-4.0-partner", "16:9", "1408x768", None),
        (
            "gemini-2.5-flash-image-preview",
            "1:1",
            "1024x1024",
            Some("1K"),
        ),
        (
            "gemini-3.1-flash-image-preview",
            "1:1",
            "1024x1024",
            Some("1K"),
        ),
        ("gemini-3-pro-image-preview", "1:1", "1024x1024", Some("1K")),
        ("wan2.7-image-pro", "2K", "2048x2048", Some("2K")),
        ("wan2.7-image", "2K", "2048x2048", Some("2K")),
    ] {
        for body in [json!({}), json!({ "size": null, "resolution": null })] {
            let got = submit(model, &body);
            assert_eq!(got.price.size, size, "{model}");
            assert_eq!(got.price.pixels.as_deref(), Some(pixels), "{model}");
            assert_eq!(got.price.resolution.as_deref(), tier, "{model}");
            assert_eq!(got.adjustments, []);
        }
    }
}

#[test]
fn tiers_are_read_without_regard_to_case_and_kept_as_the_family_writes_them() {
    for (model, asked, kept) in [
        ("gpt-image-2-official", "4K", "4k"),
        ("doubao-seedream-4.5", "4k", "4K"),
        ("doubao-seedream-5.0-lite", "3k", "3K"),
        ("gemini-3.1-flash-image-preview", "0.5k", "0.5K"),
        ("gemini-2.5-flash-image-preview", "1k", "1K"),
        ("gemini-3-pro-image-preview", "2k", "2K"),
    ] {
        let got = submit(model, &json!({ "resolution": asked }));
        assert_eq!(got.job().size.tier.as_deref(), Some(kept));
    }
    let got = submit("wan2.7-image-pro", &json!({ "size": "4k" }));
    assert_eq!(got.job().size.tier.as_deref(), Some("4K"));
}

#[test]
fn imagen_falls_back_to_16_9() {
    for asked in ["21:9", "3:2", "1:8", "99:98"] {
        let got = submit("imagen-4.0-partner", &json!({ "size": asked }));
        assert_eq!(got.price.pixels.as_deref(), Some("1408x768"));
        assert_eq!(
            adjustment_values(&got.adjustments),
            [("size".to_owned(), json!(asked), json!("16:9"))]
        );
    }
}
