//! Rough pronunciation of text: phonemes and pauses. English by a few spelling rules; a Chinese character is one syllable with
//! an arbitrary tone; other scripts get arbitrary phonemes.

/// A word, or a syllable of a syllabic script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The word's phonemes as X-SAMPA symbols ([`super::phonemes`]).
    pub(super) phonemes: String,
    /// The word's tone.
    pub(super) tone: Tone,
    /// The pause after the word.
    pub(super) pause: Pause,
}

/// The tone of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// No tone: the intonation of the sentence applies.
    Free,
    /// High and level.
    High,
    /// Rising.
    Rising,
    /// Low.
    Low,
    /// Falling.
    Falling,
}

/// A pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pause {
    /// No pause.
    None,
    /// As after a comma.
    Short,
    /// As after a sentence.
    Long,
    /// As after a question.
    Question,
}

/// English spellings and their phonemes, longest first.
const SPELLINGS: &[(&str, &str)] = &[
    ("tion", "S@n"),
    ("sion", "Z@n"),
    ("ough", "O"),
    ("augh", "O"),
    ("eigh", "eI"),
    ("ture", "tS3"),
    ("the", "D@"),
    ("igh", "AI"),
    ("tch", "tS"),
    ("ing", "IN"),
    ("ear", "i3"),
    ("our", "AU3"),
    ("all", "Ol"),
    ("sh", "S"),
    ("ch", "tS"),
    ("th", "T"),
    ("ph", "f"),
    ("wh", "w"),
    ("gh", "g"),
    ("ng", "N"),
    ("ck", "k"),
    ("qu", "kw"),
    ("ee", "i"),
    ("ea", "i"),
    ("oo", "u"),
    ("ou", "AU"),
    ("ow", "@U"),
    ("oa", "@U"),
    ("oi", "OI"),
    ("oy", "OI"),
    ("ai", "eI"),
    ("ay", "eI"),
    ("ei", "eI"),
    ("ey", "i"),
    ("ie", "i"),
    ("au", "O"),
    ("aw", "O"),
    ("ew", "ju"),
    ("er", "3"),
    ("ir", "3"),
    ("ur", "3"),
    ("or", "Or"),
    ("ar", "Ar"),
    ("ce", "se"),
    ("ci", "sI"),
    ("cy", "sI"),
    ("ge", "dZe"),
    ("a", "{"),
    ("b", "b"),
    ("c", "k"),
    ("d", "d"),
    ("e", "e"),
    ("f", "f"),
    ("g", "g"),
    ("h", "h"),
    ("i", "I"),
    ("j", "dZ"),
    ("k", "k"),
    ("l", "l"),
    ("m", "m"),
    ("n", "n"),
    ("o", "O"),
    ("p", "p"),
    ("q", "k"),
    ("r", "r"),
    ("s", "s"),
    ("t", "t"),
    ("u", "V"),
    ("v", "v"),
    ("w", "w"),
    ("x", "ks"),
    ("y", "I"),
    ("z", "z"),
];

/// Vowels before a consonant and a silent e, as in "name" and "time".
const LONG_VOWELS: &[(char, &str)] = &[
    ('a', "eI"),
    ('e', "i"),
    ('i', "AI"),
    ('o', "@U"),
    ('u', "u"),
];

const DIGITS: [&str; 10] = [
    "zir@U", "wVn", "tu", "Tri", "fOr", "fAIv", "sIks", "sev@n", "eIt", "nAIn",
];

const CHINESE_DIGITS: [(&str, Tone); 10] = [
    ("liN", Tone::Rising),
    ("i", Tone::High),
    ("Ar", Tone::Falling),
    ("sAn", Tone::High),
    ("s@", Tone::Falling),
    ("wu", Tone::Low),
    ("lj@U", Tone::Falling),
    ("tSi", Tone::High),
    ("bA", Tone::High),
    ("tSj@U", Tone::Low),
];

/// Starts and ends of syllables for characters of unknown pronunciation.
const SYLLABLE_STARTS: &[&str] = &[
    "", "b", "p", "m", "f", "d", "t", "n", "l", "g", "k", "h", "tS", "S", "dZ", "s", "j", "w",
];
const SYLLABLE_ENDS: &[&str] = &[
    "A", "i", "u", "@", "AI", "eI", "AU", "@U", "An", "@n", "AN", "@N", "in", "iN", "UN", "jA",
    "wO",
];
const TONES: [Tone; 4] = [Tone::High, Tone::Rising, Tone::Low, Tone::Falling];

/// Phonemes for letters of other scripts: consonants and vowels, alternating.
const OTHER_SCRIPT_PHONEMES: [&[&str]; 2] = [
    &[
        "b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "S", "h",
    ],
    &["A", "e", "i", "O", "u", "@"],
];

/// The phonemes of a text without letters.
const FALLBACK_PHONEMES: &str = "@m";

/// The words of `text`, at least one. `language` only decides whether digits are read as Chinese.
pub(super) fn pronounce(text: &str, language: Option<&str>) -> Vec<Word> {
    let chinese = match language {
        Some(tag) => is_chinese(tag),
        None => text.chars().any(is_ideograph),
    };
    let mut words: Vec<Word> = Vec::new();
    let mut letters = String::new();
    // A trailing space ends the last word.
    for character in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        let character = strip_accent(character);
        let is_syllable = is_ideograph(character) || is_syllable(character);
        if character.is_alphabetic() && !is_syllable {
            letters.push(character);
            continue;
        }
        // Apostrophes and combining marks do not end a word.
        if matches!(character, '\'' | '’' | '\u{300}'..='\u{36F}') && !letters.is_empty() {
            continue;
        }
        if !letters.is_empty() {
            words.push(word(spell_phonemes(&letters), Tone::Free));
            letters.clear();
        }
        if is_syllable {
            words.push(syllable(character));
        } else if let Some(digit) = character.to_digit(10) {
            words.push(digit_word(digit as usize, chinese));
        } else if let Some(last) = words.last_mut() {
            last.pause = last.pause.max(pause_after(character));
        }
    }
    if words.is_empty() {
        words.push(word(FALLBACK_PHONEMES.to_owned(), Tone::Free));
    }
    words
}

/// Whether a language tag means Chinese.
pub(super) fn is_chinese(tag: &str) -> bool {
    let name = tag.split(['-', '_']).next().unwrap_or_default();
    ["zh", "cmn", "yue"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

pub(super) fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Whether the character is Kana or Hangul.
fn is_syllable(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{AC00}'..='\u{D7A3}')
}

fn word(phonemes: String, tone: Tone) -> Word {
    Word {
        phonemes,
        tone,
        pause: Pause::None,
    }
}

fn syllable(character: char) -> Word {
    // Mixed, because characters of neighbouring code points are often related.
    let mixed = u32::from(character).wrapping_mul(0x9E37_79B1) >> 8;
    let pick = |from: &[&'static str], by: u32| from[by as usize % from.len()];
    let phonemes = pick(SYLLABLE_STARTS, mixed).to_owned() + pick(SYLLABLE_ENDS, mixed >> 6);
    let tone = if is_ideograph(character) {
        TONES[(mixed >> 12) as usize % TONES.len()]
    } else {
        Tone::Free
    };
    word(phonemes, tone)
}

fn digit_word(digit: usize, chinese: bool) -> Word {
    if chinese {
        let (phonemes, tone) = CHINESE_DIGITS[digit];
        word(phonemes.to_owned(), tone)
    } else {
        word(DIGITS[digit].to_owned(), Tone::Free)
    }
}

fn pause_after(character: char) -> Pause {
    match character {
        ',' | ';' | ':' | '，' | '、' | '；' | '：' | '—' | '–' | '(' | ')' | '（' | '）' | '“'
        | '”' => Pause::Short,
        '.' | '!' | '。' | '！' | '…' | '\n' => Pause::Long,
        '?' | '？' | '؟' => Pause::Question,
        _ => Pause::None,
    }
}

/// A Latin letter without its diacritics; other letters are unchanged.
fn strip_accent(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' => 'a',
        'è'..='ë' | 'æ' | 'œ' | 'ē' => 'e',
        'ì'..='ï' | 'ī' => 'i',
        'ò'..='ö' | 'ø' | 'ō' => 'o',
        'ù'..='ü' | 'ū' => 'u',
        'ý' | 'ÿ' => 'y',
        'ç' | 'č' | 'ć' => 'c',
        'ñ' | 'ń' => 'n',
        'ß' | 'š' | 'ś' => 's',
        'ž' | 'ź' | 'ż' => 'z',
        'ł' => 'l',
        other => other,
    }
}

/// The phonemes of a lower-case word.
fn spell_phonemes(letters: &str) -> String {
    let mut phonemes = String::new();
    let mut rest = letters;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let silent = rest == "e" && phonemes.chars().any(is_vowel_symbol);
        let (read, symbols) = if silent || before == Some(letter) && !is_vowel(letter) {
            (letter.len_utf8(), "")
        } else if let Some(symbols) = long_vowel(letter, after) {
            (1, symbols)
        } else if letter == 'y' && before.is_none() {
            (1, "j")
        } else {
            let spelling = SPELLINGS
                .iter()
                .find(|(letters, _)| rest.starts_with(letters));
            spelling.map_or_else(
                || (letter.len_utf8(), phoneme_of_other_script(letter, before)),
                |(letters, symbols)| (letters.len(), *symbols),
            )
        };
        phonemes.push_str(symbols);
        before = rest[..read].chars().next_back();
        rest = &rest[read..];
    }
    phonemes
}

/// The long vowel for `vowel` before one consonant and a final e, if that is what follows.
fn long_vowel(vowel: char, after: &str) -> Option<&'static str> {
    let mut after = after.chars();
    let consonant = after
        .next()
        .filter(|&letter| letter.is_ascii_lowercase() && !is_vowel(letter))?;
    let ends = after.as_str() == "e" && !matches!(consonant, 'r' | 'w' | 'y' | 'x');
    let long = LONG_VOWELS
        .iter()
        .find(|(letter, _)| *letter == vowel && ends)?;
    Some(long.1)
}

/// An arbitrary but constant phoneme for a letter of another script.
fn phoneme_of_other_script(letter: char, before: Option<char>) -> &'static str {
    // Depends only on the letter and the one before it, so that a word is always pronounced the same.
    let kind = before.map_or(0, |before| 1 - u32::from(before) as usize % 2);
    let phonemes = OTHER_SCRIPT_PHONEMES[kind];
    phonemes[(u32::from(letter).wrapping_mul(0x9E37_79B1) >> 16) as usize % phonemes.len()]
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

fn is_vowel_symbol(symbol: char) -> bool {
    matches!(
        symbol,
        'i' | 'I' | 'e' | '{' | 'A' | 'O' | 'U' | 'u' | 'V' | '@' | '3'
    )
}

#[cfg(test)]
mod tests {
    use super::super::phonemes;
    use super::*;

    #[test]
    fn english_words_follow_the_spelling_rules() {
        for (text, expected) in [
            ("The name, please!", "D@ neIm plis"),
            ("Don't shout", "dOnt SAUt"),
            ("yes no 42", "jes nO fOr tu"),
            ("Café naïve", "keIf neIv"),
            ("letter bee", "let3 bi"),
        ] {
            let words = pronounce(text, None).into_iter().map(|word| word.phonemes);
            assert_eq!(words.collect::<Vec<_>>().join(" "), expected);
        }
    }

    #[test]
    fn chinese_characters_are_syllables_with_tones() {
        let words = pronounce("雪山，2只狐狸。", None);
        assert_eq!(words.len(), 6);
        assert!(words.iter().all(|word| word.tone != Tone::Free));
        assert_eq!(
            (words[1].pause, words[5].pause),
            (Pause::Short, Pause::Long)
        );
        assert_eq!(words[2].phonemes, "Ar");
        assert_eq!(pronounce("42", Some("zh-CN"))[0].tone, Tone::Falling);
        assert_eq!(pronounce("すし 김치", Some("ja")).len(), 4);
    }

    #[test]
    fn every_text_has_known_phonemes() {
        for text in [
            "",
            "🎉",
            "...",
            "\u{0}\u{202e}",
            "Съешь ещё",
            "سلام",
            "नमस्ते",
            "x̂ýz",
        ] {
            let words = pronounce(text, None);
            assert!(
                !words.is_empty() && words.iter().all(|word| !word.phonemes.is_empty()),
                "{text}"
            );
        }
        let tables = SPELLINGS.iter().map(|(_, phoneme)| *phoneme);
        let tables = tables.chain(LONG_VOWELS.iter().map(|(_, phoneme)| *phoneme));
        let tables = tables.chain(DIGITS);
        let tables = tables.chain(CHINESE_DIGITS.map(|(phoneme, _)| phoneme));
        let tables = tables.chain(SYLLABLE_STARTS.iter().chain(SYLLABLE_ENDS).copied());
        for symbol in tables
            .chain(OTHER_SCRIPT_PHONEMES.concat())
            .flat_map(str::chars)
        {
            assert!(phonemes::is_known(symbol), "{symbol}");
        }
    }
}
