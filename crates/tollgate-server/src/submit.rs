//! A submission's whole life, from the body to the receipt, as one numbered story.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::Value;
use tollgate_core::{ApiError, ErrorKind, TaskKind, crash, id};
use tollgate_media::Endpoint;
use tollgate_media::image::{self, ReceiptFacts};
use tollgate_store::{Idempotency, NewTask, Refusal, Submitted};

use crate::access::Caller;
use crate::app::App;
use crate::http::trace::RequestId;
use crate::{errors, idempotency, inputs, safety};

/// The header that turns silent adjustments of unknown fields into errors (DECISIONS.md › Values).
const STRICT: &str = "x-tollgate-strict";

/// One request to an image endpoint.
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
    let Request {
        caller,
        endpoint,
        headers,
        body,
        request_id,
    } = request;
    let key = &caller.key;
    let now = app.clock.now();

    // 1. The same key and body as before: the same receipt, whatever has changed since.
    let idempotency_key = idempotency::key(headers)?;
    let fingerprint = idempotency_key
        .as_ref()
        .map(|_| idempotency::fingerprint(endpoint.path(), body));
    if let (Some(idempotency_key), Some(fingerprint)) = (&idempotency_key, &fingerprint) {
        let earlier = app
            .store
            .receipt(&key.user_id, idempotency_key, now)
            .await
            .map_err(errors::store)?;
        match earlier {
            Some((same, receipt)) if same == *fingerprint => return Ok(receipt),
            Some(_) => return Err(idempotency::reused()),
            None => {}
        }
    }

    // 2. The model: known here, allowed to this key, served by some channel.
    let members = body
        .as_object()
        .ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    let model = app.catalogue.image(model_name(members)?, endpoint)?;
    caller.may_use(&model.name)?;
    let routing = app.routing();
    if !routing.channels.serves_images(&model.name) {
        return Err(ApiError::new(
            ErrorKind::BadGateway,
            format!(
                "no channel can serve {} at the moment: try again later",
                model.name
            ),
        ));
    }

    // 3. The fields, by the family's declaration.
    let strict = headers
        .get(STRICT)
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"true"));
    let mut submission = image::read(model, members, strict)?;

    // 4. The safety review, where the family has one.
    safety::review(app, &routing, model, &submission.job().prompt).await?;

    // 5. The pictures that came with it: checked as far as they are here, sizes settled that follow them.
    let deadline_at = now + app.config.time_limits.image_ms();
    let adjustments = std::mem::take(&mut submission.adjustments);
    let mut price = submission.price.clone();
    let (mut job, facts) = inputs::take(app, model.family, submission, deadline_at).await?;
    model.family.settle(&mut job, &facts)?;
    price.settled(&job);

    // 6. The price, frozen.
    let charge = routing.prices.charge(&model.name, &price, job.n)?;

    // 7. Idempotency record, hold and task in one transaction, on disk before anything is answered.
    let task_id = id::task_id(now);
    let receipt = image::receipt(
        model.family,
        &ReceiptFacts {
            task_id: &task_id,
            model: &model.name,
            created_at: now,
            size: &price.size,
            quality: job.quality.as_deref(),
            adjustments: &adjustments,
        },
    )
    .to_string();
    let broken = |e: serde_json::Error| {
        tracing::error!(error = %e, "a job cannot be written");
        ApiError::internal()
    };
    let task = NewTask {
        id: task_id,
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
        kind: TaskKind::Image,
        family: model.family.name.to_owned(),
        model: model.name.clone(),
        created_at: now,
        deadline_at,
        job: serde_json::to_string(&job).map_err(broken)?,
        adjustments: serde_json::to_string(&adjustments).map_err(broken)?,
        request_id: request_id.as_str().to_owned(),
        charge,
        idempotency: idempotency_key
            .zip(fingerprint)
            .map(|(key, fingerprint)| Idempotency {
                key,
                fingerprint,
                receipt: receipt.clone(),
            }),
    };
    let submitted = app.store.submit(task).await.map_err(errors::store)?;
    crash::point("submit.before_receipt");

    // 8. The receipt. What a refused or repeated submission stored goes by itself when its name expires.
    match submitted {
        Submitted::Accepted => {
            app.workers.wake();
            Ok(receipt)
        }
        Submitted::Repeated { receipt } => Ok(receipt),
        Submitted::KeyReused => Err(idempotency::reused()),
        Submitted::Refused(refusal) => Err(refused(app, refusal)),
    }
}

fn model_name(body: &serde_json::Map<String, Value>) -> Result<&str, ApiError> {
    match body.get("model") {
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(name),
        None | Some(Value::Null) => Err(ApiError::invalid(
            "`model` is required: GET /v1/models lists the models",
        )),
        Some(_) => Err(ApiError::invalid(
            "`model` must be a string that names a model",
        )),
    }
}

fn refused(app: &App, refusal: Refusal) -> ApiError {
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
