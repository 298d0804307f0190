//! A JSON tokenizer that skips values without decoding them; every chat request and response passes through it once or twice.
//!
//! It accepts exactly the texts that serde_json accepts, but skips strings in blocks instead of byte by byte (figures in docs/tools.md, `bench`).
//! Its errors have no positions: the caller parses invalid text again with serde_json for the message.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The maximum nesting depth, the same as serde_json's.
const DEPTH_MAX: u8 = 127;
/// Strings up to this many bytes are scanned in words of eight bytes; calling memchr would cost more than it saves.
const SHORT_STRING: usize = 32;
/// Name of the newtype struct with which [`super::RawJson`] requests the raw text of a value.
pub(super) const RAW_JSON: &str = "tollgate: raw JSON";

/// The text is not JSON, or a visitor rejected it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct SyntaxError(String);

impl serde::de::Error for SyntaxError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

fn syntax_error<T>(what: &str) -> Result<T, SyntaxError> {
    Err(SyntaxError(what.to_owned()))
}

/// A position in a JSON text.
pub(super) struct JsonCursor<'de> {
    text: &'de str,
    at: usize,
    depth: u8,
}

/// A JSON string.
struct Quoted<'de> {
    /// The text between the quotes, with escapes not decoded.
    inner: &'de str,
    has_escapes: bool,
    /// The text including the quotes.
    quoted: &'de str,
}

impl<'de> JsonCursor<'de> {
    /// A cursor at the beginning of `text`.
    pub(super) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// Fails if anything but white space is left.
    pub(super) fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => syntax_error("trailing characters"),
        }
    }

    /// Skips white space and returns the next byte without skipping it.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.peek() != Some(byte) {
            return syntax_error("another character was expected");
        }
        self.at += 1;
        Ok(())
    }

    fn keyword(&mut self, word: &str) -> Result<(), SyntaxError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return syntax_error("no such keyword");
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips a string. The opening quote is next.
    #[inline]
    fn string(&mut self) -> Result<Quoted<'de>, SyntaxError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        let mut has_escapes = false;
        loop {
            let Some(plain) = unescaped_length(&bytes[at..]) else {
                return syntax_error("a control character in a string");
            };
            at += plain;
            match bytes.get(at) {
                Some(b'"') => break,
                Some(_) => {
                    has_escapes = true;
                    at += escape_length(&bytes[at..])?;
                }
                None => return syntax_error("a string does not end"),
            }
        }
        self.at = at + 1;
        // Both ends are quotes, so these are whole characters.
        Ok(Quoted {
            inner: &self.text[start + 1..at],
            has_escapes,
            quoted: &self.text[start..=at],
        })
    }

    /// Skips a number and returns its text.
    fn number(&mut self) -> Result<&'de str, SyntaxError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        let digits = |at: &mut usize| {
            let first = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at - first
        };
        at += usize::from(bytes.get(at) == Some(&b'-'));
        let leading = bytes.get(at);
        let integer_digits = digits(&mut at);
        if integer_digits == 0 || (integer_digits > 1 && leading == Some(&b'0')) {
            return syntax_error("no number");
        }
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            if digits(&mut at) == 0 {
                return syntax_error("no number");
            }
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            if digits(&mut at) == 0 {
                return syntax_error("no number");
            }
        }
        self.at = at;
        Ok(&self.text[start..at])
    }

    /// Skips any value.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => {
                self.enter()?;
                let mut is_first = true;
                while self.next_name(&mut is_first)?.is_some() {
                    self.expect(b':')?;
                    self.skip()?;
                }
                Ok(())
            }
            Some(b'[') => {
                self.enter()?;
                let mut is_first = true;
                while self.next_item(&mut is_first)? {
                    self.skip()?;
                }
                Ok(())
            }
            Some(b't') => self.keyword("true"),
            Some(b'f') => self.keyword("false"),
            Some(b'n') => self.keyword("null"),
            Some(_) => self.number().map(drop),
            None => syntax_error("the text ends too early"),
        }
    }

    fn enter(&mut self) -> Result<(), SyntaxError> {
        if self.depth == DEPTH_MAX {
            return syntax_error("nested too deep");
        }
        (self.at, self.depth) = (self.at + 1, self.depth + 1);
        Ok(())
    }

    /// The next member's name. `None` after the last one.
    #[inline]
    fn next_name(&mut self, is_first: &mut bool) -> Result<Option<Quoted<'de>>, SyntaxError> {
        if !self.has_next(b'}', is_first)? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return syntax_error("a member has no name");
        }
        self.string().map(Some)
    }

    /// Skips the separator; returns whether there is another item in a list.
    fn next_item(&mut self, is_first: &mut bool) -> Result<bool, SyntaxError> {
        self.has_next(b']', is_first)
    }

    /// Skips a comma or the closing bracket `end`. Returns whether another item follows.
    #[inline(always)]
    fn has_next(&mut self, end: u8, is_first: &mut bool) -> Result<bool, SyntaxError> {
        let is_first = std::mem::replace(is_first, false);
        match self.peek() {
            Some(byte) if byte == end => {
                (self.at, self.depth) = (self.at + 1, self.depth - 1);
                Ok(false)
            }
            Some(b',') if !is_first => {
                self.at += 1;
                Ok(true)
            }
            Some(_) if is_first => Ok(true),
            _ => syntax_error("a comma or an end was expected"),
        }
    }
}

/// The number of leading bytes that need no decoding in the rest of a string. `None` if there is a control character.
#[inline]
pub(super) fn unescaped_length(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Most strings are short: eight bytes at a time.
    while at < SHORT_STRING
        && let Some(eight) = rest[at..].first_chunk()
    {
        let found = special_byte_mask(*eight);
        if found != 0 {
            at += found.trailing_zeros() as usize / 8;
            return (rest[at] >= 0x20).then_some(at);
        }
        at += 8;
    }
    let rest = &rest[at..];
    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    (!has_control_character(&rest[..length])).then_some(at + length)
}

/// Eight bytes at a time, without an early exit: fast at every level of optimisation, and the compiler can vectorise it.
fn has_control_character(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    let found = words.iter().fold(0, |found, eight| {
        found | bytes_below(u64::from_le_bytes(*eight), 0x20)
    });
    found != 0 || rest.iter().any(|byte| *byte < 0x20)
}

/// A mask whose lowest set bit is the high bit of the first quote, backslash or control character among eight bytes.
fn special_byte_mask(eight: [u8; 8]) -> u64 {
    let eight = u64::from_le_bytes(eight);
    let is = |byte: u8| bytes_below(eight ^ (ONES * u64::from(byte)), 1);
    bytes_below(eight, 0x20) | is(b'"') | is(b'\\')
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Zero if no byte is less than `min`, which is at most 128; otherwise the lowest set bit is the high bit of the first that is.
fn bytes_below(bytes: u64, min: u64) -> u64 {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    bytes.wrapping_sub(ONES * min) & !bytes & HIGH
}

/// Length of an escape sequence in bytes; `rest` begins with its backslash.
fn escape_length(rest: &[u8]) -> Result<usize, SyntaxError> {
    match rest.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') if rest.len() >= 6 && rest[2..6].iter().all(u8::is_ascii_hexdigit) => Ok(6),
        _ => syntax_error("no such escape"),
    }
}

impl<'de> Quoted<'de> {
    /// Passes the decoded string to `visitor`.
    fn visit<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, SyntaxError> {
        if !self.has_escapes {
            return visitor.visit_borrowed_str(self.inner);
        }
        let text: String = serde_json::from_str(self.quoted).map_err(serde::de::Error::custom)?;
        visitor.visit_string(text)
    }
}

impl<'de> Deserializer<'de> for &mut JsonCursor<'de> {
    type Error = SyntaxError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SyntaxError> {
        match self.peek() {
            Some(b'"') => self.string()?.visit(visitor),
            Some(b'{') => {
                self.enter()?;
                let mut members = Members {
                    from: self,
                    is_first: true,
                    is_over: false,
                };
                let value = visitor.visit_map(&mut members)?;
                match members.is_over {
                    true => Ok(value),
                    false => syntax_error("a visitor left members unread"),
                }
            }
            Some(b'[') => {
                self.enter()?;
                let mut items = Members {
                    from: self,
                    is_first: true,
                    is_over: false,
                };
                let value = visitor.visit_seq(&mut items)?;
                match items.is_over {
                    true => Ok(value),
                    false => syntax_error("a visitor left items unread"),
                }
            }
            Some(b't') => {
                self.keyword("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.keyword("false")?;
                visitor.visit_bool(false)
            }
            Some(b'n') => {
                self.keyword("null")?;
                visitor.visit_unit()
            }
            Some(_) => visit_number(self.number()?, visitor),
            None => syntax_error("the text ends too early"),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SyntaxError> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SyntaxError> {
        if name != RAW_JSON {
            return visitor.visit_newtype_struct(self);
        }
        self.peek();
        let start = self.at;
        self.skip()?;
        visitor.visit_borrowed_str(&self.text[start..self.at])
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier
    }
}

fn visit_number<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value, SyntaxError> {
    let is_integer = !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if is_integer {
        if let Ok(number) = text.parse::<u64>() {
            return visitor.visit_u64(number);
        }
        if let Ok(number) = text.parse::<i64>() {
            return visitor.visit_i64(number);
        }
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => visitor.visit_f64(number),
        _ => syntax_error("a number out of range"),
    }
}

/// The members of an object, or the items of a list.
struct Members<'s, 'de> {
    from: &'s mut JsonCursor<'de>,
    is_first: bool,
    is_over: bool,
}

impl<'de> MapAccess<'de> for &mut Members<'_, 'de> {
    type Error = SyntaxError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SyntaxError> {
        let Some(name) = self.from.next_name(&mut self.is_first)? else {
            self.is_over = true;
            return Ok(None);
        };
        if !name.has_escapes {
            return seed
                .deserialize(BorrowedStrDeserializer::new(name.inner))
                .map(Some);
        }
        let mut cursor = JsonCursor::new(name.quoted);
        seed.deserialize(&mut cursor).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, SyntaxError> {
        self.from.expect(b':')?;
        seed.deserialize(&mut *self.from)
    }
}

impl<'de> SeqAccess<'de> for &mut Members<'_, 'de> {
    type Error = SyntaxError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SyntaxError> {
        if !self.from.next_item(&mut self.is_first)? {
            self.is_over = true;
            return Ok(None);
        }
        seed.deserialize(&mut *self.from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize as _;
    use serde_json::Value;

    use super::*;
    use crate::test_tables::rows;

    /// Parses a complete text with the cursor through serde's data model.
    fn parse(text: &str) -> Result<Value, SyntaxError> {
        let mut cursor = JsonCursor::new(text);
        let value = Value::deserialize(&mut cursor)?;
        cursor.end()?;
        Ok(value)
    }

    /// Whether the text can be skipped as one value.
    fn is_skipped(text: &str) -> bool {
        let mut cursor = JsonCursor::new(text);
        cursor.skip().and_then(|()| cursor.end()).is_ok()
    }

    /// Whether two values are equal, except that floats may differ in their last bit: this parser is more exact than serde_json.
    fn is_same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()),
                _ => a == b,
            },
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                let mut pairs = a.iter().zip(b);
                a.len() == b.len() && pairs.all(|((m, a), (n, b))| m == n && is_same(a, b))
            }
            (a, b) => a == b,
        }
    }

    /// Asserts that the text is accepted or rejected as by serde_json, with the same value.
    fn check(text: &str) {
        let theirs = serde_json::from_str::<Value>(text);
        match (parse(text), theirs) {
            (Ok(ours), Ok(theirs)) => assert!(is_same(&ours, &theirs), "{text}"),
            (Err(_), Err(_)) => {}
            (ours, theirs) => panic!("{text:?}: {ours:?}, but {theirs:?}"),
        }
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        assert_eq!(is_skipped(text), theirs, "{text:?}");
    }

    #[test]
    fn edge_cases_are_read_as_by_serde_json() {
        let long = "x".repeat(40);
        for text in rows::<String>("json_texts") {
            check(&text);
        }
        for inner in ["\n", "\\n", "猫", "\\", "\u{1f}", "\\u00e", "\\u00e9"] {
            check(&format!("\"{long}{inner}{long}\""));
            check(&format!("\"{long}{inner}"));
        }
        for depth in [126, 127, 128, 129] {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(
                parse(&deep).is_ok(),
                serde_json::from_str::<Value>(&deep).is_ok()
            );
            // serde_json skips values of any depth.
            assert_eq!(is_skipped(&deep), depth <= usize::from(DEPTH_MAX));
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[ -~]{0,8}", "\\PC{0,40}", "[\"\\\\\n\t\u{1}é猫😀a]{0,20}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-c\"é]{0,3}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_and_mutated_json_is_read_as_by_serde_json(
            value in json(),
            is_pretty in any::<bool>(),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        ) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let mut text = text.unwrap();
            check(&text);
            // Moves some characters to other positions.
            for (from, to) in cuts {
                let mut all: Vec<char> = text.chars().collect();
                let moved = all.remove(from.index(all.len()));
                all.insert(to.index(all.len() + 1), moved);
                text = all.into_iter().collect();
                check(&text);
            }
        }
    }
}
