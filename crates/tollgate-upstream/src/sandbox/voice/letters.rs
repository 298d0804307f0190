//! Reads text aloud, roughly: which sounds its letters make and where it pauses. English spelling is
//! followed in its plainest rules; of a Chinese character it is known that it is one syllable with a tone.

/// A word, or a syllable of a script that writes syllables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Its sounds, in the signs of [`super::phones`].
    pub(super) sounds: String,
    /// How it is sung.
    pub(super) tone: Tone,
    /// What comes after it.
    pub(super) stop: Stop,
}

/// The melody of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// The sentence decides.
    Free,
    /// High all along.
    High,
    /// Upwards.
    Rising,
    /// Low.
    Low,
    /// Downwards.
    Falling,
}

/// A pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// None at all.
    Nothing,
    /// A comma's.
    Short,
    /// A sentence's.
    Long,
    /// A question's.
    Question,
}

/// Longest pattern first.
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

/// What a vowel becomes before a consonant and a silent e: "name", "time".
const LONG: &[(char, &str)] = &[
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

/// How syllables begin and end where nothing but the character is known.
const STARTS: &[&str] = &[
    "", "b", "p", "m", "f", "d", "t", "n", "l", "g", "k", "h", "tS", "S", "dZ", "s", "j", "w",
];
const ENDS: &[&str] = &[
    "A", "i", "u", "@", "AI", "eI", "AU", "@U", "An", "@n", "AN", "@N", "in", "iN", "UN", "jA",
    "wO",
];
const TONES: [Tone; 4] = [Tone::High, Tone::Rising, Tone::Low, Tone::Falling];

/// Sounds of letters of scripts that are not known here, consonants and vowels in turn.
const OTHER: [&[&str]; 2] = [
    &[
        "b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "S", "h",
    ],
    &["A", "e", "i", "O", "u", "@"],
];

/// What a text without a single letter sounds like.
const HUM: &str = "@m";

/// The words of `text`; at least one. Of the `language` only matters whether it is Chinese.
pub(super) fn read(text: &str, language: Option<&str>) -> Vec<Word> {
    let chinese = match language {
        Some(tag) => is_chinese(tag),
        None => text.chars().any(is_ideograph),
    };
    let mut words: Vec<Word> = Vec::new();
    let mut letters = String::new();
    // A blank that ends the last word like any other.
    for character in text.chars().flat_map(char::to_lowercase).chain([' ']) {
        let character = plain(character);
        let is_syllable = is_ideograph(character) || is_syllable(character);
        if character.is_alphabetic() && !is_syllable {
            letters.push(character);
            continue;
        }
        // An apostrophe does not end a word; nor does a sign that only changes the letter before it.
        if matches!(character, '\'' | '’' | '\u{300}'..='\u{36F}') && !letters.is_empty() {
            continue;
        }
        if !letters.is_empty() {
            words.push(word(sound_out(&letters), Tone::Free));
            letters.clear();
        }
        if is_syllable {
            words.push(syllable(character));
        } else if let Some(digit) = character.to_digit(10) {
            words.push(spoken_digit(digit as usize, chinese));
        } else if let Some(last) = words.last_mut() {
            last.stop = last.stop.max(stop(character));
        }
    }
    if words.is_empty() {
        words.push(word(HUM.to_owned(), Tone::Free));
    }
    words
}

/// Whether a language's tag means some Chinese.
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

/// Kana and Hangul.
fn is_syllable(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{AC00}'..='\u{D7A3}')
}

fn word(sounds: String, tone: Tone) -> Word {
    Word {
        sounds,
        tone,
        stop: Stop::Nothing,
    }
}

fn syllable(character: char) -> Word {
    // Neighbours in the code are often related and should not sound alike.
    let mixed = u32::from(character).wrapping_mul(0x9E37_79B1) >> 8;
    let pick = |from: &[&'static str], by: u32| from[by as usize % from.len()];
    let sounds = pick(STARTS, mixed).to_owned() + pick(ENDS, mixed >> 6);
    let tone = if is_ideograph(character) {
        TONES[(mixed >> 12) as usize % TONES.len()]
    } else {
        Tone::Free
    };
    word(sounds, tone)
}

fn spoken_digit(digit: usize, chinese: bool) -> Word {
    if chinese {
        let (sounds, tone) = CHINESE_DIGITS[digit];
        word(sounds.to_owned(), tone)
    } else {
        word(DIGITS[digit].to_owned(), Tone::Free)
    }
}

fn stop(character: char) -> Stop {
    match character {
        ',' | ';' | ':' | '，' | '、' | '；' | '：' | '—' | '–' | '(' | ')' | '（' | '）' | '“'
        | '”' => Stop::Short,
        '.' | '!' | '。' | '！' | '…' | '\n' => Stop::Long,
        '?' | '？' | '؟' => Stop::Question,
        _ => Stop::Nothing,
    }
}

/// A Latin letter without its accents; others as they are.
fn plain(letter: char) -> char {
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

/// The sounds of a word in small letters.
fn sound_out(letters: &str) -> String {
    let mut sounds = String::new();
    let mut rest = letters;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let silent = rest == "e" && sounds.chars().any(is_vowel_sign);
        let (read, sound) = if silent || before == Some(letter) && !is_vowel(letter) {
            (letter.len_utf8(), "")
        } else if let Some(sound) = long_vowel(letter, after) {
            (1, sound)
        } else if letter == 'y' && before.is_none() {
            (1, "j")
        } else {
            let spelling = SPELLINGS
                .iter()
                .find(|(letters, _)| rest.starts_with(letters));
            spelling.map_or_else(
                || (letter.len_utf8(), other(letter, before)),
                |(letters, sound)| (letters.len(), *sound),
            )
        };
        sounds.push_str(sound);
        before = rest[..read].chars().next_back();
        rest = &rest[read..];
    }
    sounds
}

/// The sound of `vowel` before one consonant and an e that ends the word.
fn long_vowel(vowel: char, after: &str) -> Option<&'static str> {
    let mut after = after.chars();
    let consonant = after
        .next()
        .filter(|&letter| letter.is_ascii_lowercase() && !is_vowel(letter))?;
    let ends = after.as_str() == "e" && !matches!(consonant, 'r' | 'w' | 'y' | 'x');
    let long = LONG.iter().find(|(letter, _)| *letter == vowel && ends)?;
    Some(long.1)
}

/// The sound of a letter of another script.
fn other(letter: char, before: Option<char>) -> &'static str {
    // What the letter before was decides, so that a word does not depend on its place.
    let kind = before.map_or(0, |before| 1 - u32::from(before) as usize % 2);
    let sounds = OTHER[kind];
    sounds[(u32::from(letter).wrapping_mul(0x9E37_79B1) >> 16) as usize % sounds.len()]
}

fn is_vowel(letter: char) -> bool {
    matches!(letter, 'a' | 'e' | 'i' | 'o' | 'u')
}

fn is_vowel_sign(sign: char) -> bool {
    matches!(
        sign,
        'i' | 'I' | 'e' | '{' | 'A' | 'O' | 'U' | 'u' | 'V' | '@' | '3'
    )
}

#[cfg(test)]
mod tests {
    use super::super::phones;
    use super::*;

    fn sounds(text: &str) -> Vec<String> {
        read(text, None)
            .into_iter()
            .map(|word| word.sounds)
            .collect()
    }

    #[test]
    fn english_sounds_about_right() {
        assert_eq!(sounds("The name, please!"), ["D@", "neIm", "plis"]);
        assert_eq!(sounds("Don't shout"), ["dOnt", "SAUt"]);
        assert_eq!(sounds("yes no 42"), ["jes", "nO", "fOr", "tu"]);
        assert_eq!(sounds("Café naïve"), ["keIf", "neIv"]);
        assert_eq!(sounds("letter bee"), ["let3", "bi"]);
    }

    #[test]
    fn characters_are_syllables_with_tones() {
        let words = read("雪山，2只狐狸。", None);
        assert_eq!(words.len(), 6);
        assert!(words.iter().all(|word| word.tone != Tone::Free));
        assert_eq!(words[1].stop, Stop::Short);
        assert_eq!(
            (words[2].sounds.as_str(), words[5].stop),
            ("Ar", Stop::Long)
        );
        assert_eq!(read("42", Some("zh-CN"))[0].tone, Tone::Falling);
        assert_eq!(read("すし 김치", Some("ja")).len(), 4);
    }

    #[test]
    fn anything_can_be_read() {
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
            let words = read(text, None);
            assert!(!words.is_empty());
            assert!(
                words.iter().all(|word| !word.sounds.is_empty()),
                "{text}: {words:?}"
            );
        }
    }

    #[test]
    fn every_sign_of_the_tables_is_a_sound() {
        let signs = SPELLINGS.iter().map(|(_, sound)| *sound);
        let signs = signs
            .chain(LONG.iter().map(|(_, sound)| *sound))
            .chain(DIGITS)
            .chain(CHINESE_DIGITS.map(|(sound, _)| sound))
            .chain(STARTS.iter().chain(ENDS).copied())
            .chain(OTHER.concat());
        for sign in signs.flat_map(str::chars) {
            assert!(phones::is_known(sign), "{sign}");
        }
    }
}
