//! The sounds of speech: what a throat does for each. Frequencies of vowels are the means that Peterson
//! and Barney measured in 1952; the others are set by ear and textbook.

/// One steady state of the throat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Phone {
    /// The resonances in Hz that it moves towards; where it is 0, it stays as it was.
    pub(super) formants: [f64; 3],
    /// How strongly the vocal folds sound, 0 to 1.
    pub(super) voice: f64,
    /// How strongly air rushes through the whole throat.
    pub(super) breath: f64,
    /// How strongly air rushes past teeth and lips.
    pub(super) hiss: f64,
    /// The middle of that hiss in Hz.
    pub(super) hiss_at: f64,
    /// Its usual length in milliseconds.
    pub(super) ms: f64,
}

impl Phone {
    /// Whether it can carry a melody.
    pub(super) fn is_vowel(&self) -> bool {
        self.voice >= 1.0
    }
}

/// No sound; the throat stays as it was.
pub(super) const SILENCE: Phone = Phone {
    formants: [0.0; 3],
    voice: 0.0,
    breath: 0.0,
    hiss: 0.0,
    hiss_at: 3000.0,
    ms: 100.0,
};

const fn vowel(formants: [f64; 3], ms: f64) -> Phone {
    Phone {
        formants,
        voice: 1.0,
        ms,
        ..SILENCE
    }
}

/// A sound that is hummed or glides: m, l, w.
const fn hum(formants: [f64; 3], voice: f64, ms: f64) -> Phone {
    Phone {
        formants,
        voice,
        ms,
        ..SILENCE
    }
}

/// A sound of rushing air; with `voice`, a buzzing one.
const fn rush(second: f64, voice: f64, hiss: f64, hiss_at: f64, ms: f64) -> Phone {
    Phone {
        formants: [320.0, second, 2500.0],
        voice,
        hiss,
        hiss_at,
        ms,
        ..SILENCE
    }
}

/// The mouth closed before a burst.
const fn closed(second: f64, voice: f64) -> Phone {
    Phone {
        formants: [250.0, second, 2400.0],
        voice,
        ms: 48.0,
        ..SILENCE
    }
}

/// The mouth opening at once.
const fn burst(second: f64, hiss: f64, hiss_at: f64, breath: f64, ms: f64) -> Phone {
    Phone {
        formants: [350.0, second, 2500.0],
        voice: 0.0,
        breath,
        hiss,
        hiss_at,
        ms,
    }
}

/// The sounds by their signs, which are those of X-SAMPA.
const PHONES: &[(char, &[Phone])] = &[
    ('i', &[vowel([270.0, 2290.0, 3010.0], 125.0)]),
    ('I', &[vowel([390.0, 1990.0, 2550.0], 85.0)]),
    ('e', &[vowel([530.0, 1840.0, 2480.0], 105.0)]),
    ('{', &[vowel([660.0, 1720.0, 2410.0], 120.0)]),
    ('A', &[vowel([730.0, 1090.0, 2440.0], 125.0)]),
    ('O', &[vowel([570.0, 840.0, 2410.0], 125.0)]),
    ('U', &[vowel([440.0, 1020.0, 2240.0], 85.0)]),
    ('u', &[vowel([300.0, 870.0, 2240.0], 125.0)]),
    ('V', &[vowel([640.0, 1190.0, 2390.0], 100.0)]),
    ('@', &[vowel([500.0, 1400.0, 2450.0], 65.0)]),
    ('3', &[vowel([490.0, 1350.0, 1690.0], 125.0)]),
    ('m', &[hum([270.0, 950.0, 2200.0], 0.42, 70.0)]),
    ('n', &[hum([270.0, 1650.0, 2600.0], 0.42, 62.0)]),
    ('N', &[hum([270.0, 2250.0, 2750.0], 0.40, 75.0)]),
    ('l', &[hum([350.0, 1250.0, 2750.0], 0.60, 62.0)]),
    ('r', &[hum([330.0, 1100.0, 1450.0], 0.60, 62.0)]),
    ('w', &[hum([300.0, 650.0, 2150.0], 0.60, 60.0)]),
    ('j', &[hum([270.0, 2150.0, 2950.0], 0.60, 55.0)]),
    ('f', &[rush(1000.0, 0.0, 0.12, 7000.0, 95.0)]),
    ('v', &[rush(1000.0, 0.40, 0.06, 7000.0, 60.0)]),
    ('T', &[rush(1450.0, 0.0, 0.10, 6200.0, 85.0)]),
    ('D', &[rush(1450.0, 0.42, 0.04, 6200.0, 50.0)]),
    ('s', &[rush(1700.0, 0.0, 0.34, 6600.0, 100.0)]),
    ('z', &[rush(1700.0, 0.32, 0.20, 6600.0, 75.0)]),
    ('S', &[rush(1850.0, 0.0, 0.38, 3300.0, 105.0)]),
    ('Z', &[rush(1850.0, 0.32, 0.22, 3300.0, 75.0)]),
    (
        'h',
        &[Phone {
            breath: 0.34,
            ms: 60.0,
            ..SILENCE
        }],
    ),
    (
        'p',
        &[closed(850.0, 0.0), burst(850.0, 0.10, 1200.0, 0.22, 26.0)],
    ),
    (
        'b',
        &[closed(850.0, 0.16), burst(850.0, 0.06, 1000.0, 0.05, 9.0)],
    ),
    (
        't',
        &[closed(1700.0, 0.0), burst(1700.0, 0.26, 4600.0, 0.18, 26.0)],
    ),
    (
        'd',
        &[
            closed(1700.0, 0.16),
            burst(1700.0, 0.16, 4000.0, 0.05, 10.0),
        ],
    ),
    (
        'k',
        &[closed(1950.0, 0.0), burst(1950.0, 0.22, 2000.0, 0.20, 30.0)],
    ),
    (
        'g',
        &[
            closed(1950.0, 0.16),
            burst(1950.0, 0.14, 1900.0, 0.05, 12.0),
        ],
    ),
];

/// The sounds of `signs`, one after the other. Signs that stand for nothing are passed over.
pub(super) fn spell(signs: &str) -> impl Iterator<Item = Phone> {
    signs.chars().flat_map(|sign| {
        let found = PHONES.iter().find(|(name, _)| *name == sign);
        found.map_or(&[][..], |(_, phones)| phones).iter().copied()
    })
}

/// Whether `sign` is one of those above: for the tests of tables that are written in them.
#[cfg(test)]
pub(super) fn is_known(sign: char) -> bool {
    PHONES.iter().any(|(name, _)| *name == sign)
}
