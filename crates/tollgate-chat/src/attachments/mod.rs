//! Estimates the tokens to hold for the attachments of a request, and counts their bytes, without parsing the body.

mod file_tokens;
mod media_strings;

use memchr::memmem;

use file_tokens::{
    MAX_IMAGE_TOKENS, REMOTE_FILE_TOKENS, declares_text, has_data_scheme, inline_tokens, is_link,
    is_of_kind, link_tokens,
};
use media_strings::MediaStrings;
pub(crate) use media_strings::{JsonStrings, is_media_member};

use crate::escaped_letters::has_escaped_letters;

/// What is held for the attachments of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldAttachments {
    /// The tokens to hold for all of them.
    pub tokens: u64,
    /// The bytes of the body for which these tokens are held: everything else is text.
    pub bytes: u64,
}

/// What to hold for all attachments in `body`, a chat request as JSON in any of the formats.
pub fn held_attachments(body: &[u8]) -> HeldAttachments {
    let has_frame_rate = memmem::find(body, b"\"fps\"").is_some();
    let mut held = HeldAttachments::default();
    let mut strings = MediaStrings::new(body);
    while let Some((key, text)) = strings.next() {
        let tokens = match key {
            // The text of a document is held as text.
            b"data" if strings.is_text_source() => 0,
            b"file_id" if strings.is_file_citation() => 0,
            b"file_id" | b"fileUri" | b"file_uri" | b"file_url" => {
                match is_of_kind(strings.media_type(), "image") || strings.is_image_id() {
                    true => MAX_IMAGE_TOKENS,
                    false => REMOTE_FILE_TOKENS,
                }
            }
            b"document_url" => REMOTE_FILE_TOKENS,
            b"data" if !strings.is_in_media() && !has_data_scheme(text) => 0,
            b"url" if strings.is_source() => 0,
            b"url" | b"image_url" | b"video_url" | b"audio_url" | b"file_data" | b"data"
            | b"image" | b"video" | b"audio"
                if is_link(text) =>
            {
                link_tokens(text, strings.is_image_link(key))
            }
            b"image" | b"video" | b"audio" if !has_data_scheme(text) => 0,
            // A generated image in the history (responses).
            b"result" if strings.kind() == b"image_generation_call" => {
                held.bytes += text.len() as u64;
                MAX_IMAGE_TOKENS
            }
            b"url" | b"image_url" | b"video_url" | b"audio_url" | b"file_data" | b"data"
            | b"image" | b"video" | b"audio" => {
                let declared = match (strings.media_type(), strings.member_of_object()) {
                    ("", b"input_audio") => "audio/",
                    (declared, _) => declared,
                };
                let tokens = inline_tokens(text, declared, has_frame_rate);
                held.bytes += tokens.map_or(0, |_| text.len() as u64);
                tokens.unwrap_or(0)
            }
            _ => 0,
        };
        held.tokens = held.tokens.saturating_add(tokens);
    }
    // Escapes may hide that an object is free JSON, in which all of this is text. No real client escapes letters.
    if has_escaped_letters(body) {
        held.bytes = 0;
    }
    held
}

/// The bytes of base64 in members `data` of media objects (messages, generate-content): a provider does not count them as text.
pub(crate) fn count_media_data(body: &[u8]) -> u64 {
    // Plain-text documents have their text in a member of the same name.
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
    if has_escaped_letters(body) {
        return 0;
    }
    let mut strings = MediaStrings::new(body);
    let mut bytes = 0;
    while let Some((key, text)) = strings.next() {
        if key == b"data"
            && strings.is_in_media()
            && !strings.is_text_source()
            && text.iter().all(is_base64)
            && !declares_text(strings.media_type())
        {
            bytes += text.len() as u64;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use crate::attachments::file_tokens::decode;
    use crate::media;

    fn held(part: &serde_json::Value) -> u64 {
        held_attachments(json!({"content": [part]}).to_string().as_bytes()).tokens
    }

    fn uri(media_type: &str, bytes: &[u8]) -> String {
        media::format_data_uri(media_type, &STANDARD.encode(bytes))
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn image_tokens_are_estimated_from_pixels() {
        for (width, height, expected) in [(1, 1, 300), (512, 512, 955), (9000, 9000, 5_000)] {
            let url = uri("image/png", &png(width, height));
            assert_eq!(held(&json!({"image_url": {"url": url}})), expected);
            assert_eq!(
                held(&json!({"type": "input_image", "image_url": url})),
                expected
            );
        }
        assert_eq!(
            held(&json!({"image_url": {"url": "https://example.com/a.png"}})),
            5_000
        );
        assert_eq!(held(&json!({"text": "no attachment: \"url\" http://x"})), 0);
    }

    #[test]
    fn only_data_of_media_is_counted_as_media() {
        let mut image = png(512, 512);
        image.resize(100, 0);
        let image = STANDARD.encode(&image);
        let source = json!({"type": "base64", "media_type": "image/png", "data": image});
        let inline = json!({"mimeType": "image/png", "data": image});
        // Base64 too, but for its spaces, which are skipped.
        let prose = "only letters and spaces ".repeat(10);
        let messages = json!([
            {"type": "image", "source": source},
            {"type": "tool_use", "input": {"source": {"page": 1}, "data": prose}},
            {"type": "redacted_thinking", "data": prose},
        ]);
        assert_eq!(held(&messages), 955);
        let parts = json!([
            {"inlineData": inline},
            {"functionCall": {"args": {"inlineData": {}, "data": prose}}},
            {"functionResponse": {"response": {"list": ["inlineData", {"data": prose}]}}},
        ]);
        assert_eq!(held(&parts), 955);
        assert_eq!(held(&json!([inline, {"data": image}])), 0);
        for free in ["input", "args", "response"] {
            let part = json!({free: {"source": source, "inlineData": inline}});
            assert_eq!(held(&part), 0, "{free}");
        }
    }

    #[test]
    fn only_what_is_counted_is_not_held_as_text() {
        let mut image = png(512, 512);
        image.resize(100, 0);
        let image = STANDARD.encode(&image);
        let body = json!({
            "inlineData": {"data": image, "mimeType": "image/png"},
            "x\"source": {"data": "a".repeat(1000)},
            "input": {"source": {"data": image}},
        });
        let held = held_attachments(body.to_string().as_bytes());
        assert_eq!((held.tokens, held.bytes), (955, image.len() as u64));
    }

    #[test]
    fn the_type_may_follow_the_file() {
        let text = "0,1,2\n".repeat(100);
        let data = STANDARD.encode(&text);
        let before = json!({"inlineData": {"mimeType": "text/csv", "data": data}});
        // As Google's SDKs write it.
        let after =
            r#"[{"inlineData":{"data":"DATA","mimeType":"text/csv"}}]"#.replace("DATA", &data);
        let after = held_attachments(after.as_bytes()).tokens;
        assert_eq!((held(&before), after), (600, 600));
        let image =
            r#"[{"fileData":{"fileUri":"x","mimeType":"image/png"}},{"fileData":{"fileUri":"y"}}]"#;
        let tokens = held_attachments(image.as_bytes()).tokens;
        assert_eq!(tokens, MAX_IMAGE_TOKENS + REMOTE_FILE_TOKENS);
    }

    #[test]
    fn base64_may_have_escapes() {
        let mut image = png(512, 512);
        image.resize(200, 0xfb);
        let encoded = STANDARD.encode(&image);
        let lines: Vec<&str> = encoded
            .as_bytes()
            .chunks(76)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        for text in [
            lines.join("\\n"),
            lines.join("\\r\\n"),
            encoded.replace('/', "\\/").replace('+', "\\u002B"),
        ] {
            assert_eq!(decode(&text), Some(image.clone()), "{text}");
        }
        assert_eq!(decode("a \\\"quoted\\\" text"), None);
    }

    #[test]
    fn data_of_media_objects_is_counted() {
        for (body, expected) in [
            (r#"{"source": {"type":"base64","data":"aGVq"}}"#, 4),
            (
                r#"{"inlineData" : {"displayName":"a {final}.pdf","data":"aGVq"}}"#,
                4,
            ),
            (r#"{"source":{"cache":{"a":1},"data":"aGVq"}}"#, 4),
            (
                r#"{"inlineData":{"data":"aGVq","mimeType":"text/plain"}}"#,
                0,
            ),
            (
                r#"{"source":{"media_type":"text\/plain","data":"aGVq"}}"#,
                0,
            ),
            (r#"{"source":{"a":{"data":"aGVq"}}}"#, 0),
            (r#"{"resource":{"data":"aGVq"}}"#, 0),
            (r#"{"x\"source":{"data":"aGVq"}}"#, 0),
            (r#"{"source":{"data":"two words"}}"#, 0),
            (r#"{"response":{"inlineData":{"data":"aGVq"}}}"#, 0),
            (r#"{"r\u0065sponse":{"inlineData":{"data":"aGVq"}}}"#, 0),
            ("{}", 0),
        ] {
            assert_eq!(count_media_data(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn links_are_held_as_files() {
        let long = "a".repeat(80);
        for (part, expected) in [
            (
                json!({"image_url": {"url": format!("HTTPS://example.com/{long}.png")}}),
                5_000,
            ),
            (
                json!({"image_url": {"url": "gs://bucket/a.PDF?version=1"}}),
                50_000,
            ),
            (
                json!({"video_url": {"url": format!("https://example.com/{long}")}}),
                50_000,
            ),
            (
                json!({"video_url": format!("https://example.com/{long}.mp4")}),
                50_000,
            ),
            (
                json!({"file": {"file_data": format!("https://example.com/{long}.pdf")}}),
                50_000,
            ),
            (
                json!({"file": {"file_data": "https://example.com/a.pdf"}}),
                50_000,
            ),
            (
                json!({"input_audio": {"data": "https://example.com/a.mp3"}}),
                50_000,
            ),
            (
                json!({"type": "video", "video": ["https://a/1.jpg", "https://a/2.jpg"]}),
                10_000,
            ),
            (
                json!({"type": "document_url", "document_url": "https://example.com/a"}),
                50_000,
            ),
            (
                json!({"type": "image", "source": {"type": "url", "url": "https://a.example/b"}}),
                5_000,
            ),
            (
                json!({"type": "document", "source": {"type": "url", "url": "https://a.example/b"}}),
                50_000,
            ),
            (
                json!({"type": "video", "video": "https://example.com/clip.mov"}),
                50_000,
            ),
        ] {
            let body = json!({"content": [part]}).to_string();
            let held = held_attachments(body.as_bytes());
            assert_eq!((held.tokens, held.bytes), (expected, 0), "{body}");
        }
    }

    #[test]
    fn links_to_sources_are_not_held() {
        let url = "https://example.com/";
        let page = json!({"type": "web_fetch_result", "url": url});
        let parts = json!([
            {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "url": url}]},
            {"type": "web_fetch_tool_result", "content": page},
            {"citations": [{"url": url, "type": "web_search_result_location"}]},
            {"annotations": [{"type": "url_citation", "url_citation": {"url": url}}]},
            {"action": {"sources": [{"type": "url", "url": url}], "url": url}},
        ]);
        assert_eq!(held(&parts), 0);
        assert_eq!(held(&json!({"type": "image", "url": url})), 5_000);
        let citation = json!({"type": "file_citation", "file_id": "file-1", "index": 9});
        assert_eq!(held(&json!({"annotations": [citation]})), 0);
        let found = json!({"file_id": "file-1", "text": "found"});
        assert_eq!(
            held(&json!({"type": "file_search_call", "results": [found]})),
            0
        );
        assert_eq!(
            held(&json!({"type": "input_file", "file_id": "file-1"})),
            50_000
        );
    }

    #[test]
    fn files_declared_as_text_are_held_as_text() {
        let mut fake = b"GIF89a\x01\0\x01\0".to_vec();
        fake.resize(1_000, b'a');
        let data = STANDARD.encode(&fake);
        for media_type in ["text/plain", "TEXT/CSV", "application/json; charset=utf-8"] {
            let inline = json!({"mimeType": media_type, "data": data});
            assert_eq!(held(&json!({"inlineData": inline})), 1_000);
        }
        let escaped = r#"{"source":{"media_type":"text\/plain","data":"DATA"}}"#;
        let escaped = escaped.replace("DATA", &data);
        assert_eq!(held_attachments(escaped.as_bytes()).tokens, 1_000);
        let text = STANDARD.encode("[1]".repeat(100));
        let inline = json!({"mimeType": "application/json", "data": text});
        assert_eq!(held(&json!({"inlineData": inline})), 300);
    }

    #[test]
    fn the_text_of_a_document_is_held_as_text() {
        for text in [
            "Subject: a report",
            "https://example.com/",
            &"the cat sat ".repeat(99),
        ] {
            let before = json!({"type": "text", "media_type": "image/png", "data": text});
            let after = json!({"data": text, "media_type": "text/plain", "type": "text"});
            let mut many = after.clone();
            many.as_object_mut().unwrap().remove("type");
            for i in 0..20 {
                many[format!("member{i}")] = "x".into();
            }
            many["type"] = "text".into();
            for source in [before, after, many] {
                let body = json!({"type": "document", "source": source}).to_string();
                let held = held_attachments(body.as_bytes());
                assert_eq!(held, HeldAttachments::default(), "{body}");
            }
        }
    }

    #[test]
    fn office_documents_are_held_by_their_xml() {
        let mut word = b"PK\x03\x04".to_vec();
        word.resize(1_000, 0xff);
        let file = |word: &[u8]| json!({"file_data": uri("application/octet-stream", word)});
        assert_eq!(held(&file(&word)), 2_500);
        for name in ["word/document.xml", "ppt/media/image1.png"] {
            let mut entry = [0; 46];
            entry[..4].copy_from_slice(b"PK\x01\x02");
            entry[24..28].copy_from_slice(&40_000_u32.to_le_bytes());
            entry[28] = name.len() as u8;
            word.extend(entry);
            word.extend(name.as_bytes());
        }
        assert_eq!(held(&file(&word)), 10_000);
        word.resize(1_000_000, 0xff);
        let unreadable = [b"PK\x03\x04", &word[4..1_000], &word[2_000..]].concat();
        assert_eq!(held(&file(&unreadable)), 1_048_576);
    }

    #[test]
    fn types_may_have_escaped_slashes() {
        let body = r#"{"inlineData":{"mimeType":"video\/mp4","data":"DATA"}}"#;
        let data = STANDARD.encode([0xff; 16_000]);
        let held = held_attachments(body.replace("DATA", &data).as_bytes());
        assert_eq!(held.tokens, 3 * 300);
        let body = r#"{"fileData":{"mimeType":"IMAGE\/png","fileUri":"x"}}"#;
        assert_eq!(held_attachments(body.as_bytes()).tokens, MAX_IMAGE_TOKENS);
    }

    #[test]
    fn videos_of_unknown_duration_are_held_by_their_size() {
        let video = |version: u8, scale: u32, duration: &[u8]| {
            let mut mp4 = b"....ftypisom....mvhd".to_vec();
            mp4.push(version);
            mp4.resize(mp4.len() + if version == 0 { 11 } else { 19 }, 0);
            mp4.extend(scale.to_be_bytes());
            mp4.extend(duration);
            mp4.resize(80_000, 0);
            mp4
        };
        let inline =
            |bytes: &[u8]| json!({"mimeType": "video/mp4", "data": STANDARD.encode(bytes)});
        for file in [
            video(0, 1_000, &[0; 4]),
            video(0, 1_000, &[0xff; 4]),
            video(1, 1, &[0xff; 8]),
        ] {
            assert_eq!(held(&json!({"inlineData": inline(&file)})), 11 * 300);
        }
        let longest = video(1, 1, &[0x7f; 8]);
        let part = json!({"inlineData": inline(&longest)});
        assert_eq!(held(&json!([part, part])), 2 * 1_048_576);
        let minute = video(0, 1_000, &60_000_u32.to_be_bytes());
        let part = json!({"inlineData": inline(&minute), "videoMetadata": {"fps": 24}});
        assert_eq!(held(&part), 61 * 300 * 24);
    }

    #[test]
    fn images_are_recognised_whatever_the_order_of_members() {
        let file = json!({"type": "file", "file_id": "f"});
        let link = json!({"url": "https://a.example/b", "type": "url"});
        for part in [
            json!({"type": "image", "source": file}),
            json!({"source": file, "type": "image"}),
            json!({"source": link, "type": "image"}),
            json!({"type": "image", "cache_control": {"type": "ephemeral"}, "source": link}),
            json!({"type": "input_image", "file_id": "f"}),
            json!({"file_id": "f", "detail": "low", "type": "input_image"}),
        ] {
            assert_eq!(held(&part), 5_000, "{part}");
        }
        assert_eq!(held(&json!({"source": file, "type": "document"})), 50_000);
    }

    #[test]
    fn audio_without_a_known_beginning_is_held_by_its_size() {
        let audio = STANDARD.encode([0xff; 10_000]);
        let part = json!({"input_audio": {"data": audio, "format": "mp3"}});
        assert_eq!(held(&part), 11 * 32);
        let mut wav = b"RIFF....WAVEbext\x04\0\0\0    fmt ".to_vec();
        wav.extend([16, 0, 0, 0, 1, 0, 1, 0]);
        wav.extend(16_000_u32.to_le_bytes());
        wav.extend(32_000_u32.to_le_bytes());
        wav.resize(320_000, 0);
        let part = json!({"input_audio": {"data": STANDARD.encode(&wav), "format": "wav"}});
        assert_eq!(held(&part), 11 * 32);
    }

    #[test]
    fn pages_are_counted_with_any_space() {
        let pdf = |object: &str| {
            let pdf = format!("%PDF-1.4 {}", object.repeat(3)).into_bytes();
            json!({"file_data": uri("application/pdf", &pdf)})
        };
        for object in [
            "/Type/Page ",
            "/Type  /Page\n",
            "/Type\n/Page/Parent 1 0 R ",
        ] {
            assert_eq!(held(&pdf(object)), 3 * 4_600, "{object}");
        }
        assert_eq!(held(&pdf(&"/Type /Pages ".repeat(1_000))), 8 * 4_600);
    }

    #[test]
    fn examples_of_tools_are_text() {
        let url = uri("image/png", &png(512, 512));
        let tool = json!({"input_examples": [{"url": url}, {"url": url}], "url": url});
        assert_eq!(held(&tool), 955);
        let call = json!({"type": "image_generation_call", "result": "a".repeat(1_000)});
        let held = held_attachments(json!([call]).to_string().as_bytes());
        assert_eq!((held.tokens, held.bytes), (5_000, 1_000));
    }

    #[test]
    fn objects_are_followed_after_deeper_ones() {
        let deep = r#"{"":"#.repeat(300) + "1" + &"}".repeat(300);
        let body = format!(
            r#"{{"x":{deep},"source":{{"type":"base64","media_type":"text/csv","data":"DATA"}}}}"#
        );
        let body = body.replace("DATA", &STANDARD.encode([b'1'; 90]));
        assert_eq!(held_attachments(body.as_bytes()).tokens, 90);
    }

    #[test]
    fn escapes_do_not_hide_free_json() {
        let image = STANDARD.encode(png(512, 512)).repeat(4);
        let body = r#"{"r\u0065sponse":{"inlineData":{"mimeType":"image/png","data":"DATA"}}}"#;
        let held = held_attachments(body.replace("DATA", &image).as_bytes());
        assert_eq!(held.bytes, 0, "all of it is held as text");
        for free in ["parameters_json_schema", "response_schema"] {
            let uri = uri("image/png", &png(512, 512));
            let body = json!({free: {"default": {"url": uri}}}).to_string();
            let held = held_attachments(body.as_bytes());
            assert_eq!(held, HeldAttachments::default(), "{free}");
        }
    }

    #[test]
    fn document_tokens_are_estimated_from_pages() {
        let mut pdf = b"%PDF-1.4 /Type /Pages ".to_vec();
        for _ in 0..12 {
            pdf.extend(b"/Type /Page\n");
        }
        let data = STANDARD.encode(&pdf);
        let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
        assert_eq!(held(&json!({"source": source})), 12 * 4_600);
        pdf.extend(b"/Type /ObjStm");
        pdf.resize(100_000, 0);
        let data = json!({"file_data": uri("application/pdf", &pdf)});
        assert_eq!(held(&data), 21 * 4_600, "compressed: by the size");
        assert_eq!(held(&json!({"file": {"file_id": "file_1"}})), 50_000);
    }

    #[test]
    fn audio_and_video_tokens_are_estimated_from_the_duration() {
        let mut wav = b"RIFF....WAVEfmt ".to_vec();
        wav.extend([16, 0, 0, 0, 1, 0, 1, 0]);
        wav.extend(16_000_u32.to_le_bytes());
        wav.extend(32_000_u32.to_le_bytes());
        wav.resize(320_000, 0);
        let audio = json!({"input_audio": {"data": STANDARD.encode(&wav), "format": "wav"}});
        assert_eq!(held(&audio), 11 * 32);
        let mut mp4 = b"....ftypisom....mvhd\0\0\0\0........".to_vec();
        mp4.extend(1_000_u32.to_be_bytes());
        mp4.extend(60_000_u32.to_be_bytes());
        mp4.resize(200, 0);
        let inline = json!({"mimeType": "video/mp4", "data": STANDARD.encode(&mp4)});
        assert_eq!(held(&json!({"inlineData": inline})), 61 * 300);
    }
}
