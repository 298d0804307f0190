//! Finds the strings of a request that may be files, in one pass over the JSON text and without parsing it.

use memchr::{memchr, memchr2};

/// Members whose objects hold media in their member `data`. Any other `data` is part of the prompt's text.
const MEDIA_MEMBERS: [&[u8]; 4] = [b"source", b"inlineData", b"inline_data", b"input_audio"];

/// Members whose objects are JSON of the client, which a model reads as text: arguments and results of tools, schemas.
const FREE_MEMBERS: [&[u8]; 12] = [
    b"input",
    b"input_schema",
    b"args",
    b"response",
    b"parameters",
    b"parametersJsonSchema",
    b"parameters_json_schema",
    b"responseSchema",
    b"response_schema",
    b"responseJsonSchema",
    b"response_json_schema",
    b"schema",
];

/// The values of `type` of objects whose `url` is a source of a text: results of a search, and citations of them.
const SOURCE_TYPES: [&[u8]; 4] = [
    b"web_search_result",
    b"web_search_result_location",
    b"web_fetch_result",
    b"url_citation",
];

/// The values of `type` of objects whose `file_id` is the source of a text.
const FILE_CITATION_TYPES: [&[u8]; 6] = [
    b"file_citation",
    b"container_file_citation",
    b"file_path",
    b"char_location",
    b"page_location",
    b"content_block_location",
];

/// Objects nested deeper count as elements of lists. No format nests media so deep, and memory is bounded by it.
const MAX_TRACKED_DEPTH: usize = 128;

/// Whether an object that is the value of `member` holds media in its member `data`.
pub(crate) fn is_media_member(member: &[u8]) -> bool {
    MEDIA_MEMBERS.contains(&member)
}

/// Iterates over the string values outside free JSON, and tracks the object that each is in.
pub(super) struct MediaStrings<'a> {
    strings: JsonStrings<'a>,
    /// The name of the last member.
    key: &'a [u8],
    /// The member whose value comes next; empty if there is none.
    member: &'a [u8],
    /// The number of open objects.
    depth: usize,
    /// For each open object up to [`MAX_TRACKED_DEPTH`] the member whose value it is; empty for the elements of a list.
    objects: Vec<&'a [u8]>,
    /// The number of open objects up to the outermost of [`FREE_MEMBERS`].
    free: Option<usize>,
    /// What the innermost object has declared so far as its type and as that of its file.
    kind: &'a [u8],
    media_type: &'a [u8],
    /// Whether the innermost object is the `source` of an image.
    is_image_source: bool,
    /// Whether the value is an element of a list.
    is_in_list: bool,
}

impl<'a> MediaStrings<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self {
            strings: JsonStrings::new(body),
            key: b"",
            member: b"",
            depth: 0,
            objects: Vec::new(),
            free: None,
            kind: b"",
            media_type: b"",
            is_image_source: false,
            is_in_list: false,
        }
    }

    /// Whether the innermost open object holds media in its member `data`.
    pub(super) fn is_in_media(&self) -> bool {
        is_media_member(self.object())
    }

    /// The member whose value is the innermost open object; empty for an element of a list.
    pub(super) fn object(&self) -> &'a [u8] {
        match self.depth <= MAX_TRACKED_DEPTH {
            true => self.objects.last().copied().unwrap_or_default(),
            false => b"",
        }
    }

    /// Whether the innermost object is a document's source whose `data` is its text (messages).
    pub(super) fn is_text_source(&self) -> bool {
        self.object() == b"source"
            && (self.kind == b"text" || self.declared(b"", &[b"type"]) == b"text")
    }

    /// Whether a link in member `key` is one of an image.
    pub(super) fn is_image_link(&self, key: &[u8]) -> bool {
        match (key, self.object()) {
            (b"url", b"video_url" | b"audio_url" | b"input_audio" | b"file" | b"file_url") => false,
            (b"url", b"source") => self.is_image_source,
            (b"url" | b"image_url" | b"image", _) => true,
            // A list of frames, in some dialects.
            (b"video", _) => self.is_in_list,
            _ => false,
        }
    }

    /// Whether a `file_id` of the innermost object is a source of a text.
    pub(super) fn is_file_citation(&self) -> bool {
        self.object().is_empty()
            && FILE_CITATION_TYPES.contains(&self.declared(self.kind, &[b"type"]))
    }

    /// Whether a `url` of the innermost object is a source of a text, which the provider does not fetch.
    pub(super) fn is_source(&self) -> bool {
        let kind = self.declared(self.kind, &[b"type"]);
        match self.object() {
            b"url_citation" | b"action" => true,
            b"" => kind == b"url" || SOURCE_TYPES.contains(&kind),
            b"content" => SOURCE_TYPES.contains(&kind),
            _ => false,
        }
    }

    /// The media type that the innermost object declares, as it is written. Empty if it declares none.
    pub(super) fn media_type(&self) -> &'a str {
        let names: [&[u8]; 3] = [b"mimeType", b"mime_type", b"media_type"];
        std::str::from_utf8(self.declared(self.media_type, &names)).unwrap_or_default()
    }

    /// `before`, or the value of the next member of the innermost object with one of `names`: Google's SDKs write the type after the data.
    fn declared(&self, before: &'a [u8], names: &[&[u8]]) -> &'a [u8] {
        // Objects with media have few members.
        const MAX_STRINGS: usize = 6;
        if !before.is_empty() {
            return before;
        }
        let mut strings = self.strings.clone();
        let mut key: &[u8] = b"";
        for _ in 0..MAX_STRINGS {
            let Some((between, text, is_key)) = strings.next_with_gap() else {
                break;
            };
            if memchr2(b'{', b'}', between).is_some() {
                break;
            }
            if is_key {
                key = text;
            } else if names.contains(&key) {
                return text;
            }
        }
        b""
    }

    /// Reads the text between two strings.
    fn read_between(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                b'{' => {
                    self.depth += 1;
                    if self.depth <= MAX_TRACKED_DEPTH {
                        self.objects.push(self.member);
                    }
                    if self.free.is_none() && FREE_MEMBERS.contains(&self.member) {
                        self.free = Some(self.depth);
                    }
                    self.is_image_source = self.member == b"source" && self.kind == b"image";
                }
                b'}' => {
                    self.free = self.free.filter(|depth| *depth != self.depth);
                    if self.depth <= MAX_TRACKED_DEPTH {
                        self.objects.pop();
                    }
                    self.depth = self.depth.saturating_sub(1);
                    self.is_image_source = false;
                }
                b'[' => {
                    (self.member, self.is_in_list) = (b"", true);
                    continue;
                }
                b']' => {
                    self.is_in_list = false;
                    continue;
                }
                _ => continue,
            }
            (self.member, self.kind, self.media_type) = (b"", b"", b"");
            self.is_in_list = false;
        }
    }
}

impl<'a> Iterator for MediaStrings<'a> {
    /// The name of the member, and the text of its value.
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (between, text, is_key) = self.strings.next_with_gap()?;
            self.read_between(between);
            if is_key {
                (self.key, self.member) = (text, text);
                self.is_in_list = false;
                continue;
            }
            self.member = b"";
            if self.free.is_some() {
                continue;
            }
            match self.key {
                b"type" => self.kind = text,
                b"mimeType" | b"mime_type" | b"media_type" => self.media_type = text,
                _ => {}
            }
            return Some((self.key, text));
        }
    }
}

/// Iterates over the strings of a JSON text as written, without quotes; the flag is true for the names of members.
#[derive(Clone)]
pub(crate) struct JsonStrings<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> JsonStrings<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// The next string, with the text between it and the one before.
    fn next_with_gap(&mut self) -> Option<(&'a [u8], &'a [u8], bool)> {
        let from = self.at;
        let (text, is_key) = self.next()?;
        // The string with its quotes ends at `self.at`.
        Some((&self.body[from..self.at - text.len() - 2], text, is_key))
    }
}

impl<'a> Iterator for JsonStrings<'a> {
    type Item = (&'a [u8], bool);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at + memchr(b'"', self.body.get(self.at..)?)? + 1;
        let mut end = start;
        loop {
            end += memchr2(b'"', b'\\', self.body.get(end..)?)?;
            if self.body[end] == b'"' {
                break;
            }
            end += 2;
        }
        self.at = end + 1;
        let is_key = self.body[self.at..].trim_ascii_start().first() == Some(&b':');
        Some((&self.body[start..end], is_key))
    }
}
