//! The quote of an image, video or speech task.

use serde_json::Value;
use tollgate_core::{Amount, ApiError};
use tollgate_media::{Endpoint, MediaJob as _, Units};
use tollgate_store::Charge;

use super::request::QuoteRequest;
use super::result::Quote;
use crate::http::large_work;
use crate::tasks::context::TaskContext;
use crate::tasks::submit::{find_model, freeze_price, is_strict, serialization_error};
use crate::tasks::{inputs, moderation};

/// Runs steps 2 to 6 of a submission, without the checks of the caller's money and backlog and without the provider's moderation.
pub(super) async fn quote(
    context: &TaskContext,
    endpoint: Endpoint,
    request: &QuoteRequest<'_>,
) -> Result<Quote, ApiError> {
    let reloadable = context.reloadable.current();
    let fields = request.request.as_object();
    let fields = fields.ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    let model = find_model(&reloadable, request.caller, endpoint, fields)?;
    let (layout, is_strict) = (endpoint.request_layout(), is_strict(request.headers));
    let parse = || tollgate_media::parse_request(model, layout, fields, is_strict);
    let mut submission = large_work::run_in_place(request.body_bytes, parse)?;
    moderation::check_blocked_words(&context.settings.safety, model, submission.job().prompt())?;
    let adjustments = std::mem::take(&mut submission.adjustments);
    let adjustments = serde_json::to_value(adjustments).map_err(serialization_error)?;
    let mut price = submission.price.clone();
    let (mut job, references) = inputs::check_submitted(context, model.family, submission).await?;
    let charge = freeze_price(&reloadable, model, &mut job, &mut price, &references)?;

    let (routing, kind) = (&reloadable.routing, model.family.kind());
    let name = routing.name_of(model.names());
    let user_id = request.caller.map_or("", |caller| &caller.key.user_id);
    let text = job.to_text().map_err(serialization_error)?;
    Ok(Quote {
        model: model.name.clone(),
        job: serde_json::from_str::<Value>(&text).map_err(serialization_error)?,
        adjustments,
        unit: unit_name(job.units(), charge.units),
        units: charge.units,
        price: price_of_one(&charge),
        total: charge.cost(charge.units).ok_or_else(ApiError::internal)?,
        exact: true,
        channels: routing.names_of_task_channels(kind, name),
        available: routing.is_ready_for_task(kind, name, user_id),
    })
}

/// The unit of a charge: if a video has one price for any duration, the unit is the video.
pub fn unit_name(units: Units, charged_units: u64) -> &'static str {
    match units {
        Units::Images(_) => "image",
        Units::Seconds(seconds) if u64::from(seconds) != charged_units => "video",
        Units::Seconds(_) => "second",
        Units::Characters(_) => "character",
    }
}

/// The price of one unit. `None` if it has more than nine decimals.
fn price_of_one(charge: &Charge) -> Option<Amount> {
    let per = i64::try_from(charge.units_per_price).ok()?;
    let nanos = charge.price.nanos();
    (nanos.checked_rem(per)? == 0).then(|| Amount::from_nanos(nanos / per))
}
