//! Finds the strings of a request that may be files, in one pass over the JSON text and without parsing it.

use memchr::{memchr, memchr2};

/// Members whose objects hold media in their member `data`. Any other `data` is part of the prompt's text.
const MEDIA_MEMBERS: [&[u8]; 4] = [b"source", b"inlineData", b"inline_data", b"input_audio"];

/// Members whose objects are JSON of the client, which a model reads as text: arguments and results of tools, schemas.
const FREE_MEMBERS: [&[u8]; 13] = [
    b"input",
    b"input_schema",
    b"args",
    b"env",
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

/// A member whose list is such JSON.
const FREE_LIST: &[u8] = b"input_examples";

/// The values of `type` of objects whose `url` is a source of a text: results of a search, and citations of them.
const SOURCE_TYPES: [&[u8]; 4] = [
    b"web_search_result",
    b"web_search_result_location",
    b"web_fetch_result",
    b"url_citation",
];

/// The values of `type` of objects whose `file_id` is the source of a text.
const FILE_CITATION_TYPES: [&[u8]; 8] = [
    b"file_citation",
    b"container_file_citation",
    b"file_path",
    b"char_location",
    b"page_location",
    b"content_block_location",
    b"code_execution_output",
    b"bash_code_execution_output",
];

/// The names of the member that has a file's media type.
const MEDIA_TYPE_NAMES: [&[u8]; 3] = [b"mimeType", b"mime_type", b"media_type"];

/// Objects nested deeper count as elements of lists. No format nests media so deep, and memory is bounded by it.
const MAX_TRACKED_DEPTH: usize = 128;

/// Whether an object that is the value of `member` holds media in its member `data`.
pub(crate) fn is_media_member(member: &[u8]) -> bool {
    MEDIA_MEMBERS.contains(&member)
}

/// An open object.
#[derive(Clone, Copy, Default)]
struct Object<'a> {
    /// The member whose value it is; empty for an element of a list.
    member: &'a [u8],
    /// What it has declared so far as its type and as that of its file.
    kind: &'a [u8],
    media_type: &'a [u8],
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
    /// The open objects up to [`MAX_TRACKED_DEPTH`], from the outermost.
    objects: Vec<Object<'a>>,
    /// The number of open objects up to the outermost of [`FREE_MEMBERS`].
    free: Option<usize>,
    /// The number of open objects around the outermost open [`FREE_LIST`].
    free_list: Option<usize>,
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
            free_list: None,
            is_in_list: false,
        }
    }

    /// Whether the innermost open object holds media in its member `data`.
    pub(super) fn is_in_media(&self) -> bool {
        is_media_member(self.member_of_object())
    }

    /// The member whose value is the innermost open object; empty for an element of a list.
    pub(super) fn member_of_object(&self) -> &'a [u8] {
        self.object().member
    }

    /// Whether the innermost object is a document's source whose `data` is its text (messages).
    pub(super) fn is_text_source(&self) -> bool {
        let is_text = |kind: &[u8]| kind == b"text";
        // If there are several types, the last one counts. An object with so many members is text for safety.
        self.member_of_object() == b"source"
            && (is_text(self.object().kind)
                || self.has_ahead(0, &[b"type"], is_text).unwrap_or(true))
    }

    /// Whether a link in member `key` is one of an image.
    pub(super) fn is_image_link(&self, key: &[u8]) -> bool {
        match (key, self.member_of_object()) {
            (b"url", b"video_url" | b"audio_url" | b"input_audio" | b"file" | b"file_url") => false,
            (b"url", b"source") => self.is_image_source(),
            (b"url" | b"image_url" | b"image", _) => true,
            // A list of frames, in some dialects.
            (b"video", _) => self.is_in_list,
            _ => false,
        }
    }

    /// Whether a `file_id` of the innermost object is one of an image.
    pub(super) fn is_image_id(&self) -> bool {
        match self.member_of_object() {
            b"source" => self.is_image_source(),
            _ => self.kind() == b"input_image",
        }
    }

    /// Whether the innermost object, a `source`, is in an image.
    fn is_image_source(&self) -> bool {
        let parent = self.depth.checked_sub(2);
        let parent = parent.and_then(|at| self.objects.get(at)).copied();
        let kind = parent.unwrap_or_default().kind;
        let is_image = |kind: &[u8]| kind == b"image";
        // Anthropic's Go SDK writes the type after the source.
        is_image(kind) || kind.is_empty() && self.has_ahead(1, &[b"type"], is_image) == Some(true)
    }

    /// Whether a `url` of the innermost object is a source of a text, which the provider does not fetch.
    pub(super) fn is_source(&self) -> bool {
        match self.member_of_object() {
            b"url_citation" | b"action" => true,
            b"" => {
                let kind = self.kind();
                kind == b"url" || SOURCE_TYPES.contains(&kind)
            }
            b"content" => SOURCE_TYPES.contains(&self.kind()),
            _ => false,
        }
    }

    /// Whether a `file_id` of the innermost object is a source of a text: results of file searches have no type.
    pub(super) fn is_file_citation(&self) -> bool {
        if !self.member_of_object().is_empty() {
            return false;
        }
        let kind = self.kind();
        kind.is_empty() || FILE_CITATION_TYPES.contains(&kind)
    }

    /// The `type` of the innermost object, as it is written. Empty if it declares none.
    pub(super) fn kind(&self) -> &'a [u8] {
        match self.object().kind {
            b"" => self.find_ahead(&[b"type"]),
            kind => kind,
        }
    }

    /// The media type that the innermost object declares, as it is written. Empty if it declares none.
    pub(super) fn media_type(&self) -> &'a str {
        let media_type = match self.object().media_type {
            b"" => self.find_ahead(&MEDIA_TYPE_NAMES),
            media_type => media_type,
        };
        std::str::from_utf8(media_type).unwrap_or_default()
    }

    fn object(&self) -> Object<'a> {
        match self.depth <= MAX_TRACKED_DEPTH {
            true => self.objects.last().copied().unwrap_or_default(),
            false => Object::default(),
        }
    }

    /// The value of the next member of the innermost object with one of `names`: Google's SDKs write the type after the data.
    fn find_ahead(&self, names: &[&[u8]]) -> &'a [u8] {
        let mut found: &'a [u8] = b"";
        self.has_ahead(0, names, |value| {
            found = value;
            true
        });
        found
    }

    /// Whether a later member with one of `names` has a value that is `wanted`: of the object that is `outwards` objects around the innermost. `None` if
    /// its next strings do not show it.
    fn has_ahead(
        &self,
        outwards: i64,
        names: &[&[u8]],
        mut wanted: impl FnMut(&'a [u8]) -> bool,
    ) -> Option<bool> {
        // Objects with media have few members.
        const MAX_STRINGS: usize = 16;
        let mut strings = self.strings.clone();
        let mut key: &[u8] = b"";
        // How many more objects are open than now.
        let mut depth = 0;
        for _ in 0..MAX_STRINGS {
            let Some((between, text, is_key)) = strings.next_with_gap() else {
                return Some(false);
            };
            for byte in between {
                match byte {
                    b'{' => depth += 1,
                    b'}' => depth -= 1,
                    _ => {}
                }
                if depth < -outwards {
                    return Some(false);
                }
            }
            if is_key {
                key = text;
            } else if depth == -outwards && names.contains(&key) && wanted(text) {
                return Some(true);
            }
        }
        None
    }

    /// Reads the text between two strings.
    fn read_between(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                b'{' => self.open_object(),
                b'}' => self.close_object(),
                b'[' => {
                    if self.free_list.is_none() && self.member == FREE_LIST {
                        self.free_list = Some(self.depth);
                    }
                    (self.member, self.is_in_list) = (b"", true);
                }
                b']' => {
                    self.free_list = self.free_list.filter(|depth| *depth != self.depth);
                    self.is_in_list = false;
                }
                _ => {}
            }
        }
    }

    fn open_object(&mut self) {
        self.depth += 1;
        if self.depth <= MAX_TRACKED_DEPTH {
            self.objects.push(Object {
                member: self.member,
                ..Object::default()
            });
        }
        if self.free.is_none() && FREE_MEMBERS.contains(&self.member) {
            self.free = Some(self.depth);
        }
        (self.member, self.is_in_list) = (b"", false);
    }

    fn close_object(&mut self) {
        self.free = self.free.filter(|depth| *depth != self.depth);
        if self.depth <= MAX_TRACKED_DEPTH {
            self.objects.pop();
        }
        self.depth = self.depth.saturating_sub(1);
        (self.key, self.member, self.is_in_list) = (b"", b"", false);
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
                (self.key, self.member, self.is_in_list) = (text, text, false);
                continue;
            }
            self.member = b"";
            if self.free.is_some() || self.free_list.is_some() {
                continue;
            }
            if self.depth <= MAX_TRACKED_DEPTH
                && let Some(object) = self.objects.last_mut()
            {
                match self.key {
                    b"type" => object.kind = text,
                    name if MEDIA_TYPE_NAMES.contains(&name) => object.media_type = text,
                    _ => {}
                }
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
