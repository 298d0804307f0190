//! Responses that list several results in `data`, each as inline base64 or as a link; inline files are delivered while they are read.

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;

use super::base64_stream::Base64Stream;
use super::http_request::{HttpRequest, HttpResponse, ProviderClient, after_creation};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{ResultData, ResultSink};

/// The maximum number of decoded pieces of a file that are buffered for the sink.
const MAX_BUFFERED_PIECES: usize = 4;

/// A response whose inline files were delivered while it was read.
pub(crate) struct ListedResults {
    /// The response, in which each file is replaced by its index in `files`, as a string.
    response: HttpResponse,
    /// For each file in order, whether it was delivered.
    files: Vec<Result<(), ProviderError>>,
    /// Why the response ended early. `None` if it is complete.
    truncated: Option<ProviderError>,
}

/// One member of the list.
pub(crate) enum ListedResult {
    /// An inline file: the index that replaces it in the response.
    Inline(String),
    /// A result that is not delivered yet.
    Separate(ResultData),
    /// An error in place of a result.
    Failed(ProviderError),
}

/// The outcome of one call.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallOutcome {
    /// The number of results that were delivered.
    pub(crate) delivered: u32,
    /// The errors of the results that were not delivered.
    pub(crate) failures: Vec<ProviderError>,
}

impl ProviderClient {
    /// Sends a request. If the response is a success, the first `max_results` strings that are members named `keys` are decoded from base64 and
    /// delivered while the response is read.
    ///
    /// # Errors
    ///
    /// Those of [`ProviderClient::send`], if no file was delivered before.
    pub(crate) async fn send_for_listed_results(
        &self,
        request: HttpRequest,
        keys: &'static [&'static str],
        max_results: u32,
        sink: &dyn ResultSink,
    ) -> Result<ListedResults, ProviderError> {
        let creates = request.creates;
        let mut stream = self.send_for_base64_stream(request, keys).await?;
        let mut files = Vec::new();
        let read = deliver_files(&mut stream, max_results, sink, &mut files).await;
        let read = read.map_err(|error| match creates {
            true => after_creation(error),
            false => error,
        });
        let is_nothing_delivered = !files.iter().any(Result::is_ok);
        if let Err(error) = &read
            && is_nothing_delivered
        {
            return Err(error.clone());
        }
        Ok(ListedResults {
            response: stream.into_response(),
            files,
            truncated: read.err(),
        })
    }
}

async fn deliver_files(
    stream: &mut Base64Stream,
    max_results: u32,
    sink: &dyn ResultSink,
    files: &mut Vec<Result<(), ProviderError>>,
) -> Result<(), ProviderError> {
    while stream.next_file().await? {
        if files.len() >= max_results as usize {
            // `next_file` skips the file.
            continue;
        }
        let (sender, receiver) = mpsc::channel(MAX_BUFFERED_PIECES);
        let pieces = stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        let data = ResultData::Stream(pieces.boxed());
        let (read, delivered) = tokio::join!(forward_pieces(stream, sender), sink.deliver(data));
        read?;
        files.push(delivered);
    }
    Ok(())
}

/// Forwards the pieces of one file as long as there is a receiver.
async fn forward_pieces(
    stream: &mut Base64Stream,
    sender: mpsc::Sender<Result<Bytes, ProviderError>>,
) -> Result<(), ProviderError> {
    while let Some(piece) = stream.piece().await.transpose() {
        let error = piece.as_ref().err().cloned();
        let is_received = sender.send(piece).await.is_ok();
        if let Some(error) = error {
            return Err(error);
        }
        if !is_received {
            break;
        }
    }
    Ok(())
}

impl ListedResults {
    /// Delivers the results among the first `max_results` that are not delivered yet. `read` reads one member of the list; `error_of` creates the
    /// error of a response without results.
    pub(crate) async fn deliver(
        mut self,
        max_results: u32,
        sink: &dyn ResultSink,
        read: impl Fn(&Value) -> ListedResult + Send,
        error_of: impl Fn(&HttpResponse) -> ProviderError + Send,
    ) -> Result<CallOutcome, ProviderError> {
        if let Some(error) = self.truncated {
            self.files.push(Err(error));
            return count_deliveries(self.files);
        }
        let json = self.response.json();
        let items = json["data"].as_array().filter(|items| !items.is_empty());
        let Some(items) = items.filter(|_| self.response.status.is_success()) else {
            let error = error_of(&self.response);
            return Err(if json.is_null() && self.response.begins_as_json() {
                after_creation(error)
            } else {
                error
            });
        };
        let mut deliveries = Vec::new();
        for item in items.iter().take(max_results as usize) {
            deliveries.push(match read(item) {
                ListedResult::Inline(index) => {
                    let index = index.parse().ok();
                    match index.and_then(|index: usize| self.files.get_mut(index)) {
                        Some(delivered) => std::mem::replace(delivered, Ok(())),
                        None => continue,
                    }
                }
                ListedResult::Separate(data) => sink.deliver(data).await,
                ListedResult::Failed(error) => Err(error),
            });
        }
        count_deliveries(deliveries)
    }
}

fn count_deliveries(
    deliveries: Vec<Result<(), ProviderError>>,
) -> Result<CallOutcome, ProviderError> {
    let mut outcome = CallOutcome::default();
    for delivered in deliveries {
        match delivered {
            Ok(()) => outcome.delivered += 1,
            Err(error) if error.kind == UpstreamErrorKind::Interrupted => return Err(error),
            Err(error) => outcome.failures.push(error),
        }
    }
    Ok(outcome)
}
