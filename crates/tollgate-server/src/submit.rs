//! A submission's whole life, from the body to the receipt, as one numbered story.

use std::sync::Arc;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_core::{ApiError, ErrorKind, Millis, crash, id};
use tollgate_media::{Endpoint, MediaJob as _, ReceiptFacts, TaskModel};
use tollgate_store::{Idempotency, NewTask, Refusal, Submitted};

use crate::access::Caller;
use crate::app::{App, Live};
use crate::http::trace::RequestId;
use crate::{errors, idempotency, inputs, safety};

/// The header that turns silent adjustments of unknown fields into errors (DECISIONS.md › Values).
const STRICT: &str = "x-tollgate-strict";

/// One request for pictures, a film or speech.
pub struct Request<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// Where.
    pub endpoint: Endpoint,
    /// With which headers.
    pub headers: &'a HeaderMap,
    /// The body, an object.
    pub body: &'a Value,
    /// The request's id.
    pub request_id: &'a RequestId,
}

/// Takes a submission; answers the receipt, as JSON text.
pub async fn submit(app: &Arc<App>, request: Request<'_>) -> Result<String, ApiError> {
    let (key, now) = (&request.caller.key, app.clock.now());

    // 1. The same key and body as before: the same receipt, whatever has changed since.
    let repeatable = Repeatable::of(&request)?;
    if let Some(receipt) = earlier_receipt(app, &key.user_id, repeatable.as_ref(), now).await? {
        return Ok(receipt);
    }

    // 2. The model: known here, allowed to this key, served by some channel.
    let live = app.routing();
    let members = request.body.as_object();
    let members = members.ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    let model = choose_model(app, &live, &request, members)?;
    let family = model.family;

    // 3. The fields, by the family's declaration.
    let shape = request.endpoint.shape();
    let mut submission = tollgate_media::read(model, shape, members, is_strict(request.headers))?;

    // 4. The safety review, where the family has one.
    safety::review(app, &live, model, submission.job().prompt()).await?;

    // 5. The pictures that came with it: checked as far as they are here, sizes settled that follow them.
    let deadline_at = now + app.config.time_limits.task_ms(family.kind());
    let adjustments = std::mem::take(&mut submission.adjustments);
    let callback_url = submission.callback_url.take();
    let mut price = submission.price.clone();
    let (mut job, facts) = inputs::take(app, family, submission, deadline_at).await?;
    if let Err(refused) = family.settle(&mut job, &facts) {
        inputs::discard_of(app, &job).await;
        return Err(refused);
    }
    price.settled(&job);

    // 6. The price, frozen.
    let charge = live.prices.charge(&model.name, &price, job.units())?;

    // 7. Idempotency record, hold and task in one transaction, on disk before anything is answered.
    let task_id = id::task_id(now);
    let shown = job.shown();
    let facts = ReceiptFacts {
        task_id: &task_id,
        model: &model.name,
        created_at: now,
        size: &price.size,
        quality: price.quality.as_deref(),
        shown: &shown,
        adjustments: &adjustments,
    };
    let receipt = tollgate_media::receipt(family, &facts).to_string();
    let job = job.to_text().map_err(unwritable)?;
    let task = NewTask {
        id: task_id,
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
        kind: family.kind(),
        family: family.name().to_owned(),
        model: model.name.clone(),
        created_at: now,
        deadline_at,
        job: job.clone(),
        adjustments: to_text(&adjustments)?,
        shown: to_text(&shown)?,
        callback_url,
        request_id: request.request_id.as_str().to_owned(),
        charge,
        idempotency: repeatable.map(|r| r.with(&receipt)),
    };
    let submitted = app.store.submit(task).await.map_err(errors::store)?;
    crash::point("submit.before_receipt");

    // 8. The receipt. What was not taken leaves no private copies behind.
    let answer = match submitted {
        Submitted::Accepted => {
            app.workers.wake();
            return Ok(receipt);
        }
        Submitted::Repeated { receipt } => Ok(receipt),
        Submitted::KeyReused => Err(idempotency::reused()),
        Submitted::Refused(refusal) => Err(refused(app, refusal)),
    };
    inputs::discard(app, family.kind(), &job).await;
    answer
}

/// The request's `Idempotency-Key` with what it stands for.
struct Repeatable {
    key: String,
    fingerprint: String,
}

impl Repeatable {
    fn of(request: &Request<'_>) -> Result<Option<Self>, ApiError> {
        let key = idempotency::key(request.headers)?;
        Ok(key.map(|key| Self {
            key,
            fingerprint: idempotency::fingerprint(request.endpoint.path(), request.body),
        }))
    }

    fn with(self, receipt: &str) -> Idempotency {
        Idempotency {
            key: self.key,
            fingerprint: self.fingerprint,
            receipt: receipt.to_owned(),
        }
    }
}

async fn earlier_receipt(
    app: &App,
    user_id: &str,
    repeatable: Option<&Repeatable>,
    now: Millis,
) -> Result<Option<String>, ApiError> {
    let Some(Repeatable { key, fingerprint }) = repeatable else {
        return Ok(None);
    };
    let earlier = app
        .store
        .receipt(user_id, key, now)
        .await
        .map_err(errors::store)?;
    match earlier {
        Some((same, receipt)) if same == *fingerprint => Ok(Some(receipt)),
        Some(_) => Err(idempotency::reused()),
        None => Ok(None),
    }
}

fn choose_model<'a>(
    app: &'a App,
    live: &Live,
    request: &Request<'_>,
    members: &Map<String, Value>,
) -> Result<&'a TaskModel, ApiError> {
    let model = app.catalogue.asked(members, request.endpoint)?;
    request.caller.may_use(&model.name)?;
    if live.channels.serves_tasks(model.family.kind(), &model.name) {
        return Ok(model);
    }
    let message = format!(
        "no channel can serve {} at the moment: try again later",
        model.name
    );
    Err(ApiError::new(ErrorKind::BadGateway, message))
}

fn is_strict(headers: &HeaderMap) -> bool {
    let strict = headers.get(STRICT);
    strict.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn to_text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(unwritable)
}

fn unwritable(e: serde_json::Error) -> ApiError {
    tracing::error!(error = %e, "a job cannot be written");
    ApiError::internal()
}

/// Why money was not set aside, for the client.
pub fn refused(app: &App, refusal: Refusal) -> ApiError {
    let currency = app.config.currency;
    match refusal {
        Refusal::UserBalance { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient account balance: {available} {currency} is available, and this request needs more"
            ),
        ),
        Refusal::KeyQuota { available } => ApiError::new(
            ErrorKind::PaymentRequired,
            format!(
                "insufficient quota of this API key: {available} {currency} is left, and this request needs more"
            ),
        ),
        Refusal::Gone => ApiError::new(
            ErrorKind::Authentication,
            "this API key was revoked or its account disabled",
        ),
    }
}
