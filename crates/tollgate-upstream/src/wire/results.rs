//! Answers that list several results in `data`, each as base64 or as a link.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;

use super::sieve::Sieve;
use super::{Answer, Ask, Wire};
use crate::provider::{Delivery, Made, ProviderError, ProviderErrorKind};

/// How many pieces of a file may wait for whoever stores it.
const AHEAD: usize = 4;

/// An answer whose files were handed on while it was read.
pub(crate) struct Results {
    /// Instead of each file there is its place in `files`, a number in quotes.
    answer: Answer,
    /// What became of the files, in their order.
    files: Vec<Result<(), ProviderError>>,
    /// Why the answer ends too early, where it does.
    cut: Option<ProviderError>,
}

/// What one member of the list is.
pub(crate) enum Item {
    /// A file in the answer itself: what stands in its place.
    File(String),
    /// One that is to be delivered.
    Made(Made),
    /// None.
    Refused(ProviderError),
}

/// What came of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Came {
    /// How many results were delivered.
    pub(crate) delivered: u32,
    /// Why others were not.
    pub(crate) refused: Vec<ProviderError>,
}

impl Wire {
    /// Asks; of a good answer the first `most` strings that are members named `keys` are decoded from base64 and delivered
    /// while they are read. Errors are those of [`Wire::ask`], as long as no file has been delivered.
    pub(crate) async fn ask_results(
        &self,
        ask: Ask,
        keys: &'static [&'static str],
        most: u32,
        delivery: &dyn Delivery,
    ) -> Result<Results, ProviderError> {
        let creates = ask.creates;
        let mut sieve = self.sieve(ask, keys).await?;
        let mut files = Vec::new();
        let read = deliver_all(&mut sieve, most, delivery, &mut files).await;
        let read = read.map_err(|error| if creates { made(error) } else { error });
        let is_nothing_here = !files.iter().any(Result::is_ok);
        if let Err(error) = &read
            && is_nothing_here
        {
            return Err(error.clone());
        }
        Ok(Results {
            answer: sieve.rest(),
            files,
            cut: read.err(),
        })
    }
}

/// An error of an answer that had begun: what was asked for has been made.
pub(super) fn made(error: ProviderError) -> ProviderError {
    match error.kind {
        ProviderErrorKind::Retryable => ProviderError {
            kind: ProviderErrorKind::Unknown,
            ..error
        },
        _ => error,
    }
}

async fn deliver_all(
    sieve: &mut Sieve,
    most: u32,
    delivery: &dyn Delivery,
    files: &mut Vec<Result<(), ProviderError>>,
) -> Result<(), ProviderError> {
    while sieve.next_file().await? {
        if files.len() >= most as usize {
            // The next one passes over it.
            continue;
        }
        let (to, from) = mpsc::channel(AHEAD);
        let pieces = stream::unfold(
            from,
            |mut from| async move { Some((from.recv().await?, from)) },
        );
        let made = Made::Stream(pieces.boxed());
        let (read, kept) = tokio::join!(pass_on(sieve, to), delivery.deliver(made));
        read?;
        files.push(kept);
    }
    Ok(())
}

/// Hands the pieces of one file on, as long as somebody wants them.
async fn pass_on(
    sieve: &mut Sieve,
    to: mpsc::Sender<Result<Bytes, ProviderError>>,
) -> Result<(), ProviderError> {
    while let Some(piece) = sieve.piece().await.transpose() {
        let broken = piece.as_ref().err().cloned();
        let is_heard = to.send(piece).await.is_ok();
        if let Some(error) = broken {
            return Err(error);
        }
        if !is_heard {
            break;
        }
    }
    Ok(())
}

impl Results {
    /// Delivers what is not here yet of the first `most` results; `read` says what each is, `refusal` what an answer
    /// without results means.
    pub(crate) async fn came(
        mut self,
        most: u32,
        delivery: &dyn Delivery,
        read: impl Fn(&Value) -> Item + Send,
        refusal: impl Fn(&Answer) -> ProviderError + Send,
    ) -> Result<Came, ProviderError> {
        let mut ends = Vec::new();
        if let Some(error) = self.cut {
            ends = self.files;
            ends.push(Err(error));
        } else {
            let json = self.answer.json();
            let items = json["data"].as_array().filter(|items| !items.is_empty());
            let Some(items) = items.filter(|_| self.answer.status.is_success()) else {
                let error = refusal(&self.answer);
                return Err(if json.is_null() && self.answer.is_begun() {
                    made(error)
                } else {
                    error
                });
            };
            for item in items.iter().take(most as usize) {
                ends.push(match read(item) {
                    Item::File(at) => {
                        match at.parse().ok().and_then(|at: usize| self.files.get_mut(at)) {
                            Some(end) => std::mem::replace(end, Ok(())),
                            None => continue,
                        }
                    }
                    Item::Made(made) => delivery.deliver(made).await,
                    Item::Refused(error) => Err(error),
                });
            }
        }
        let mut came = Came::default();
        for end in ends {
            match end {
                Ok(()) => came.delivered += 1,
                Err(error) if error.kind == ProviderErrorKind::Interrupted => return Err(error),
                Err(error) => came.refused.push(error),
            }
        }
        Ok(came)
    }
}
