//! [`Target`]: a parser that is fuzzed.

/// Creates the valid inputs with which a target starts.
type MakeCorpus = Box<dyn Fn() -> Result<Vec<Vec<u8>>, String>>;
/// Runs the parser on an input; from the random number the target derives where the input is split, or a file's length. Panics if the result violates
/// what the target asserts.
type TryInput = Box<dyn Fn(&[u8], u64)>;

/// One fuzzed parser.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) corpus: MakeCorpus,
    pub(crate) run: TryInput,
}
