//! Submits a task, from the request's body to the receipt, in numbered steps.

use std::sync::Arc;

use http::HeaderMap;
use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_core::{Adjustment, Amount, ApiError, ErrorKind, Millis, crash, id};
use tollgate_media::image::ImageMetadata;
use tollgate_media::{
    Endpoint, Job, MediaJob as _, PriceFactors, ReceiptData, Submission, TaskModel,
};
use tollgate_store::{Charge, IdempotencyRecord, Key, NewTask, Rejection, SubmitOutcome};

use crate::auth::caller::Caller;
use crate::http::request_id::RequestId;
use crate::http::{errors, large_work};
use crate::otel::TraceState;
use crate::reloadable::Reloadable;
use crate::tasks::context::TaskContext;
use crate::tasks::inputs::{self, UnusedImages};
use crate::tasks::{idempotency, moderation, view};

/// The header with which adjustments of unknown fields are errors.
const STRICT: &str = "x-tollgate-strict";

/// A request for images, a video or speech.
pub struct SubmitRequest<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The body, an object.
    pub body: &'a Value,
    /// The size of the body's text in bytes.
    pub body_bytes: usize,
    /// The request's id.
    pub request_id: &'a RequestId,
}

/// Submits a task; returns the receipt as JSON text.
///
/// # Errors
/// 400 for invalid fields or a rejected prompt, 402 if the price is not covered, 403 or 404 for the model, 409 for a reused
/// idempotency key, 429 for too many unfinished tasks or waiting webhooks, 502 if no channel serves the model, 503 if the database or the storage
/// fails.
pub async fn submit(
    context: &Arc<TaskContext>,
    request: SubmitRequest<'_>,
) -> Result<String, ApiError> {
    let (key, now) = (&request.caller.key, context.clock.now());

    // 1. If a request with the same idempotency key and body was received before, return the same receipt, whatever has changed since.
    let idempotency_key = IdempotencyKey::from_request(&request)?;
    let earlier = earlier_receipt(context, &key.user_id, idempotency_key.as_ref(), now);
    if let Some(receipt) = earlier.await? {
        return Ok(receipt);
    }

    // 2. Find the model: in the catalogue, allowed for this key, served by some channel.
    let reloadable = context.reloadable.current();
    let fields = request.body.as_object();
    let fields = fields.ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    let (caller, endpoint) = (request.caller, request.endpoint);
    let model = find_model(&reloadable, Some(caller), endpoint, fields)?;
    let family = model.family;

    // 3. Parse the fields as the family declares them.
    let (layout, is_strict) = (
        request.endpoint.request_layout(),
        is_strict(request.headers),
    );
    let parse = || tollgate_media::parse_request(model, layout, fields, is_strict);
    let mut submission = large_work::run_in_place(request.body_bytes, parse)?;

    // 4. Check the user's backlog, and moderate the prompt if the family requires it.
    check_backlog_and_prompt(context, &reloadable, request.caller, model, &submission).await?;

    // 5. Store the input images, and check those that are available. For an account without any money left no file is stored.
    check_has_money(context, &reloadable, key, model, &submission).await?;
    let deadline_at = now + context.settings.time_limits.task_ms(family.kind());
    let adjustments = std::mem::take(&mut submission.adjustments);
    let callback_url = submission.callback_url.take();
    let mut price = submission.price.clone();
    let mut stored = UnusedImages::new(&context.files);
    let (mut job, references) =
        inputs::store_submitted(context, family, submission, deadline_at, &mut stored).await?;

    // 6. Determine the sizes that depend on the images, and freeze the price.
    let charge = freeze_price(&reloadable, model, &mut job, &mut price, &references)?;

    // 7. Write idempotency record, hold and task in one transaction; it is on disk before the client receives the receipt.
    let task_id = id::task_id(now);
    let echoed_fields = job.echoed_fields();
    let receipt = receipt_text(model, &task_id, now, &price, &echoed_fields, &adjustments);
    let job = job.to_text().map_err(serialization_error)?;
    let name = reloadable.routing.name_of(model.names());
    let task = NewTask {
        id: task_id,
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
        kind: family.kind(),
        family: family.name().to_owned(),
        model: name.to_owned(),
        created_at: now,
        deadline_at,
        job: job.clone(),
        adjustments: to_text(&adjustments)?,
        echoed_fields: to_text(&view::echoed_with_model(echoed_fields, model, name))?,
        callback_url,
        request_id: request.request_id.as_str().to_owned(),
        trace_context: request.request_id.trace().map(|span| span.to_string()),
        trace_state: request.request_id.trace_state().map(TraceState::to_string),
        charge,
        idempotency: idempotency_key.map(|key| key.into_record(&receipt)),
    };
    stored.keep();
    let outcome = context.store.submit_task(task).await;
    let outcome = outcome.map_err(errors::from_store)?;
    crash::point("submit.before_receipt");

    // 8. Return the receipt. If the submission was not accepted, its private images are deleted.
    if matches!(outcome, SubmitOutcome::Accepted) {
        context.wake_for_task(family.kind(), name);
        return Ok(receipt);
    }
    inputs::delete_private_images_of_text(&context.files, family.kind(), &job).await;
    match outcome {
        SubmitOutcome::Accepted => Ok(receipt),
        SubmitOutcome::Replayed { receipt } => Ok(receipt),
        SubmitOutcome::KeyReused => Err(idempotency::key_reused()),
        SubmitOutcome::Rejected(rejection) => Err(rejection_error(context, rejection, charge)),
    }
}

fn rejection_error(context: &TaskContext, rejection: Rejection, charge: Charge) -> ApiError {
    let needed = charge.cost(charge.units);
    errors::from_rejection(rejection, needed, context.settings.currency)
}

/// Rejects a submission with images from an account that cannot pay anything at all, before the images are stored. Whether the exact amount is
/// covered is checked by the hold.
async fn check_has_money(
    context: &TaskContext,
    reloadable: &Reloadable,
    key: &Key,
    model: &TaskModel,
    submission: &Submission,
) -> Result<(), ApiError> {
    let units = submission.job().units();
    let prices = &reloadable.prices;
    let charge = prices.charge(model.names(), &submission.price, units)?;
    let needed = charge.cost(charge.units);
    if submission.inputs.is_empty() || !key.needs_hold() || needed == Some(Amount::ZERO) {
        return Ok(());
    }
    let [reserved, _] = context.store.reserved_amounts(&key.user_id, &key.id);
    let user = context.store.user(&key.user_id).await;
    let user = user.map_err(errors::from_store)?;
    let Some(user) = user.filter(|user| !user.unlimited) else {
        return Ok(());
    };
    let available = user.balance - user.held - reserved;
    if available > Amount::ZERO {
        return Ok(());
    }
    let rejection = Rejection::InsufficientBalance { available };
    let currency = context.settings.currency;
    Err(errors::from_rejection(rejection, needed, currency))
}

/// Checks the user's backlog, and moderates the prompt if the family requires it.
async fn check_backlog_and_prompt(
    context: &TaskContext,
    reloadable: &Reloadable,
    caller: &Caller,
    model: &TaskModel,
    submission: &Submission,
) -> Result<(), ApiError> {
    let has_webhook = submission.callback_url.is_some();
    let (backlog, user_id) = (&context.backlog, &caller.key.user_id);
    backlog
        .add_submission(&context.store, user_id, has_webhook)
        .await?;
    let (safety, prompt) = (&context.settings.safety, submission.job().prompt());
    moderation::check_prompt(safety, &reloadable.routing, model, prompt).await
}

fn receipt_text(
    model: &TaskModel,
    task_id: &str,
    created_at: Millis,
    price: &PriceFactors,
    echoed_fields: &Map<String, Value>,
    adjustments: &[Adjustment],
) -> String {
    let data = ReceiptData {
        task_id,
        model: &model.name,
        created_at,
        size: &price.size,
        quality: price.quality.as_deref(),
        echoed_fields,
        adjustments,
    };
    model.family.receipt(&data).to_string()
}

/// The request's `Idempotency-Key`, with the fingerprint of its request.
struct IdempotencyKey {
    key: String,
    fingerprint: String,
}

impl IdempotencyKey {
    fn from_request(request: &SubmitRequest<'_>) -> Result<Option<Self>, ApiError> {
        let key = idempotency::parse_key(request.headers)?;
        Ok(key.map(|key| Self {
            key,
            fingerprint: large_work::run_in_place(request.body_bytes, || {
                idempotency::fingerprint(request.endpoint.path(), request.body)
            }),
        }))
    }

    fn into_record(self, receipt: &str) -> IdempotencyRecord {
        IdempotencyRecord {
            key: self.key,
            fingerprint: self.fingerprint,
            receipt: receipt.to_owned(),
        }
    }
}

async fn earlier_receipt(
    context: &TaskContext,
    user_id: &str,
    idempotency_key: Option<&IdempotencyKey>,
    now: Millis,
) -> Result<Option<String>, ApiError> {
    let Some(IdempotencyKey { key, fingerprint }) = idempotency_key else {
        return Ok(None);
    };
    let earlier = context.store.find_receipt(user_id, key, now).await;
    match earlier.map_err(errors::from_store)? {
        Some((same, receipt)) if same == *fingerprint => Ok(Some(receipt)),
        Some(_) => Err(idempotency::key_reused()),
        None => Ok(None),
    }
}

/// Finds the model of a submission: in the catalogue, allowed for the caller's key, served by some channel. `caller` is `None` for the quote of an
/// admin, who may use every model.
///
/// # Errors
/// 400 or 404 for an unknown model, 403 if the key may not use it, 502 if no channel serves it.
pub fn find_model<'a>(
    reloadable: &'a Reloadable,
    caller: Option<&Caller>,
    endpoint: Endpoint,
    fields: &Map<String, Value>,
) -> Result<&'a TaskModel, ApiError> {
    let model = reloadable.catalogue.requested_model(fields, endpoint)?;
    if let Some(caller) = caller {
        caller.check_may_use(model.names())?;
    }
    let routing = &reloadable.routing;
    if routing.serves_tasks(model.family.kind(), routing.name_of(model.names())) {
        return Ok(model);
    }
    let message = format!(
        "no channel can serve {} at the moment: try again later",
        model.name
    );
    Err(ApiError::new(ErrorKind::BadGateway, message))
}

/// Determines the sizes that depend on the reference images, and freezes the price.
///
/// # Errors
/// 400 if the family does not accept the images, 500 if the price is out of range for an amount.
pub fn freeze_price(
    reloadable: &Reloadable,
    model: &TaskModel,
    job: &mut Job,
    price: &mut PriceFactors,
    references: &[Option<ImageMetadata>],
) -> Result<Charge, ApiError> {
    model.family.apply_reference_metadata(job, references)?;
    price.update_from(job);
    reloadable.prices.charge(model.names(), price, job.units())
}

/// Whether the request has the header with which adjustments of unknown fields are errors.
pub fn is_strict(headers: &HeaderMap) -> bool {
    let strict = headers.get(STRICT);
    strict.is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn to_text(value: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(serialization_error)
}

/// The error for a job that cannot be written as JSON, which is a bug.
pub fn serialization_error(e: serde_json::Error) -> ApiError {
    tracing::error!(error = %e, "a job cannot be serialized");
    ApiError::internal()
}
