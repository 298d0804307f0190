//! The phones of the synthesiser and their parameters. Vowel formants are the means of Peterson and Barney (1952); the others
//! are tuned by ear.

/// Target parameters of one phone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Phone {
    /// The first three formants in Hz. A formant of 0 keeps its last value.
    pub(super) formants: [f64; 3],
    /// Amplitude of voicing, 0 to 1.
    pub(super) voice: f64,
    /// Amplitude of aspiration noise, which passes all formants.
    pub(super) breath: f64,
    /// Amplitude of frication noise (hiss).
    pub(super) hiss: f64,
    /// Centre frequency of the hiss in Hz.
    pub(super) hiss_at: f64,
    /// Duration at normal speed, in milliseconds.
    pub(super) ms: f64,
}

impl Phone {
    /// Whether it is a vowel.
    pub(super) fn is_vowel(&self) -> bool {
        self.voice >= 1.0
    }
}

/// Silence; formants keep their values.
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

/// A nasal, liquid or glide: m, l, w.
const fn sonorant(formants: [f64; 3], voice: f64, ms: f64) -> Phone {
    Phone {
        formants,
        voice,
        ms,
        ..SILENCE
    }
}

/// A fricative; with `voice`, a voiced one.
const fn fricative(second: f64, voice: f64, hiss: f64, hiss_at: f64, ms: f64) -> Phone {
    Phone {
        formants: [320.0, second, 2500.0],
        voice,
        hiss,
        hiss_at,
        ms,
        ..SILENCE
    }
}

/// The closure of a plosive.
const fn closure(second: f64, voice: f64) -> Phone {
    Phone {
        formants: [250.0, second, 2400.0],
        voice,
        ms: 48.0,
        ..SILENCE
    }
}

/// The release of a plosive.
const fn release(second: f64, hiss: f64, hiss_at: f64, breath: f64, ms: f64) -> Phone {
    Phone {
        formants: [350.0, second, 2500.0],
        voice: 0.0,
        breath,
        hiss,
        hiss_at,
        ms,
    }
}

/// The phones of each X-SAMPA symbol.
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
    ('m', &[sonorant([270.0, 950.0, 2200.0], 0.42, 70.0)]),
    ('n', &[sonorant([270.0, 1650.0, 2600.0], 0.42, 62.0)]),
    ('N', &[sonorant([270.0, 2250.0, 2750.0], 0.40, 75.0)]),
    ('l', &[sonorant([350.0, 1250.0, 2750.0], 0.60, 62.0)]),
    ('r', &[sonorant([330.0, 1100.0, 1450.0], 0.60, 62.0)]),
    ('w', &[sonorant([300.0, 650.0, 2150.0], 0.60, 60.0)]),
    ('j', &[sonorant([270.0, 2150.0, 2950.0], 0.60, 55.0)]),
    ('f', &[fricative(1000.0, 0.0, 0.12, 7000.0, 95.0)]),
    ('v', &[fricative(1000.0, 0.40, 0.06, 7000.0, 60.0)]),
    ('T', &[fricative(1450.0, 0.0, 0.10, 6200.0, 85.0)]),
    ('D', &[fricative(1450.0, 0.42, 0.04, 6200.0, 50.0)]),
    ('s', &[fricative(1700.0, 0.0, 0.34, 6600.0, 100.0)]),
    ('z', &[fricative(1700.0, 0.32, 0.20, 6600.0, 75.0)]),
    ('S', &[fricative(1850.0, 0.0, 0.38, 3300.0, 105.0)]),
    ('Z', &[fricative(1850.0, 0.32, 0.22, 3300.0, 75.0)]),
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
        &[
            closure(850.0, 0.0),
            release(850.0, 0.10, 1200.0, 0.22, 26.0),
        ],
    ),
    (
        'b',
        &[
            closure(850.0, 0.16),
            release(850.0, 0.06, 1000.0, 0.05, 9.0),
        ],
    ),
    (
        't',
        &[
            closure(1700.0, 0.0),
            release(1700.0, 0.26, 4600.0, 0.18, 26.0),
        ],
    ),
    (
        'd',
        &[
            closure(1700.0, 0.16),
            release(1700.0, 0.16, 4000.0, 0.05, 10.0),
        ],
    ),
    (
        'k',
        &[
            closure(1950.0, 0.0),
            release(1950.0, 0.22, 2000.0, 0.20, 30.0),
        ],
    ),
    (
        'g',
        &[
            closure(1950.0, 0.16),
            release(1950.0, 0.14, 1900.0, 0.05, 12.0),
        ],
    ),
];

/// The phones of `symbols`, in order. Unknown symbols are skipped.
pub(super) fn phones_of(symbols: &str) -> impl Iterator<Item = Phone> {
    symbols.chars().flat_map(|symbol| {
        let found = PHONES.iter().find(|(name, _)| *name == symbol);
        found.map_or(&[][..], |(_, phones)| phones).iter().copied()
    })
}

/// Whether `symbol` is in the table, for tests of other tables.
#[cfg(test)]
pub(super) fn is_known(symbol: char) -> bool {
    PHONES.iter().any(|(name, _)| *name == symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_phone_has_the_parameters_of_its_kind() {
        let formants = [500.0, 1400.0, 2450.0];
        let (vowel, sonorant) = (vowel(formants, 90.0), sonorant(formants, 0.5, 60.0));
        assert!(vowel.is_vowel() && !sonorant.is_vowel());
        assert_eq!([vowel.formants, sonorant.formants], [formants; 2]);
        assert_eq!([vowel.hiss, sonorant.hiss, vowel.breath], [0.0; 3]);

        let hissed = fricative(1500.0, 0.3, 0.2, 4000.0, 80.0);
        assert_eq!(
            (hissed.voice, hissed.hiss, hissed.hiss_at),
            (0.3, 0.2, 4000.0)
        );
        assert_eq!(hissed.formants[1], 1500.0);

        // A plosive: silent but for its voice, then a burst without one.
        let (closed, released) = (
            closure(1700.0, 0.16),
            release(1700.0, 0.26, 4600.0, 0.18, 26.0),
        );
        assert_eq!((closed.voice, closed.hiss, closed.breath), (0.16, 0.0, 0.0));
        assert_eq!(
            (released.voice, released.hiss, released.breath),
            (0.0, 0.26, 0.18)
        );
        assert_eq!(closed.formants[1], released.formants[1]);
    }

    #[test]
    fn phones_are_in_the_order_of_the_symbols_and_unknown_symbols_are_skipped() {
        let durations: Vec<f64> = phones_of("m?i").map(|phone| phone.ms).collect();
        assert_eq!(durations, [70.0, 125.0]);
        assert_eq!(phones_of("d").count(), 2);
    }
}
