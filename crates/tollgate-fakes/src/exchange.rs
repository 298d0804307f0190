//! Handles one exchange: logs and checks the request, chooses a scenario, generates the response, applies the scenario to it and sends it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::bill::Bill;
use crate::body::{Body, InFlight};
use crate::chat_output::ChatOutput;
use crate::directive::Stage;
use crate::event_stream::{ChatResponse, EventStream};
use crate::instructions::Instructions;
use crate::media_context::{MediaContext, MediaRequest};
use crate::media_response::MediaResponse;
use crate::rejection::{OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::response::{self, OutgoingResponse};
use crate::result_files;
use crate::scenario::Scenario;
use crate::shared::{LoggedRequest, Shared};
use crate::socket::Reset;
use crate::tables::request_read::Accepted;
use crate::tables::spec::Spec;
use crate::usage_report;

/// The headers that contain keys.
const CREDENTIALS: &[&str] = &["authorization", "x-goog-api-key", "x-api-key"];

/// The path at which a fake reports how its tasks were polled.
const REPORT: &str = "/_polls";

/// The listening address at which a request arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// The address of the API, which serves results too.
    Api,
    /// The address that serves only results.
    Files,
}

/// The state with which a fake handles requests.
pub(crate) struct Service {
    /// The tables of the provider.
    pub(crate) spec: &'static Spec,
    pub(crate) shared: Shared,
}

pub(crate) async fn handle_request(
    service: Arc<Service>,
    port: Port,
    reset: Reset,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let shared = &service.shared;
    let flight = InFlight::new(&shared.open);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let request = Arc::new(ReceivedRequest::read(&head, &body).await);
    let logged = shared.remember(&request);
    let serial = shared.next_serial();
    let accepted = read_request(&service, port, &request);
    let outcome =
        accepted.and_then(|accepted| respond(&service, &logged, &request, accepted, serial));
    let reply = match outcome {
        Ok(Exchange::Respond(reply)) => reply,
        Ok(Exchange::Hang) => std::future::pending().await,
        Ok(Exchange::Close) => return Err(io::Error::other("closed on purpose")),
        Ok(Exchange::Reset) => {
            reset.arm();
            return Err(io::Error::other("reset on purpose"));
        }
        Err(rejection) => {
            logged.reject(rejection.rule);
            error_response(&service, &rejection, serial)
        }
    };
    if !reply.hold.is_zero() {
        tokio::time::sleep(reply.hold).await;
    }
    Ok(reply.send(reset, flight))
}

/// Rejects the request or reads it.
fn read_request(
    service: &Service,
    port: Port,
    request: &Arc<ReceivedRequest>,
) -> OrRejected<Accepted> {
    if port == Port::Files
        && CREDENTIALS
            .iter()
            .any(|name| request.header(name).is_some())
    {
        let message = "the address of results takes no keys";
        return Err(Box::new(Rejection::new(400, "fake", "key-leaked", message)));
    }
    if port == Port::Files || request.path.starts_with(result_files::PREFIX) {
        let request = Arc::clone(request);
        let fetch = move |context: &MediaContext<'_>| Ok(context.fetch(&request.path));
        let media = MediaRequest::about(Stage::File, Vec::new(), fetch);
        return Ok(Accepted::Media(media));
    }
    let shared = &service.shared;
    if request.path == REPORT {
        return Ok(Accepted::Fixed(shared.tasks().report().json()));
    }
    if let Some(report) = usage_report::report_usage(shared, request) {
        return report.map(Accepted::Fixed);
    }
    let key = service.spec.key(request)?;
    service
        .spec
        .check_key(&key, &shared.options.keys, request)?;
    service.spec.read_request(request)
}

/// How an exchange continues after its request was accepted.
enum Exchange {
    Respond(OutgoingResponse),
    Hang,
    Close,
    Reset,
}

fn respond(
    service: &Service,
    logged: &LoggedRequest,
    request: &ReceivedRequest,
    accepted: Accepted,
    serial: u64,
) -> OrRejected<Exchange> {
    let shared = &service.shared;
    let instructions = Instructions::new(shared, request, &accepted)?;
    let how = instructions.scenario.clone();
    if let Some(outcome) = respond_before_work(service, request, &how, serial) {
        return Ok(outcome);
    }
    let headers = service.spec.response_headers(&request_id(serial));
    let reply = match generate_response(shared, logged, accepted, instructions, serial) {
        Ok(GeneratedResponse::Complete(mut response)) => {
            if matches!(how, Scenario::ErrorEvent | Scenario::ErrorFirst) {
                let rejection = service.spec.reject_request("overloaded", request);
                let body = service.spec.error_body(&rejection, &request_id(serial));
                response = MediaResponse::json(body);
            }
            let mut reply = response::complete(response, headers, &how);
            // The client cannot use a part of the response, so the provider does not bill it.
            let bill = logged.bill.get();
            reply.bill = bill.filter(|_| !how.breaks_off()).cloned();
            reply
        }
        Ok(GeneratedResponse::Events(events)) => {
            let options = &shared.options;
            let seed = options.seed.wrapping_add(serial);
            let bill = logged.bill.get().cloned();
            response::stream(events, headers, &how, seed, options.delay, bill)
        }
        // The rejection reports the outcome of the work, not an error in the request.
        Err(rejection) if rejection.is_outcome => error_response(service, &rejection, serial),
        Err(rejection) => return Err(rejection),
    };
    Ok(match how {
        Scenario::LostResponse { hang: true } => Exchange::Hang,
        Scenario::LostResponse { hang: false } => Exchange::Reset,
        _ => Exchange::Respond(response::apply_to_any(reply, &how)),
    })
}

/// The response that a scenario causes before any work is done. `None` if it causes none.
fn respond_before_work(
    service: &Service,
    request: &ReceivedRequest,
    how: &Scenario,
    serial: u64,
) -> Option<Exchange> {
    match how {
        Scenario::Hang => return Some(Exchange::Hang),
        Scenario::CloseWithoutResponse => return Some(Exchange::Close),
        Scenario::ResetBeforeHead => return Some(Exchange::Reset),
        _ => {}
    }
    let (name, vars) = scenario_error(service, request, how)?;
    let rejection = service.spec.reject_with(name, &vars, request);
    let mut reply = error_response(service, &rejection, serial);
    if let Scenario::Status(status, Some(body)) = how {
        let body = Bytes::from(body.clone());
        let headers = service.spec.response_headers(&request_id(serial));
        reply = OutgoingResponse::json(*status, headers, body);
    }
    Some(Exchange::Respond(reply))
}

/// A response before a scenario changes it.
enum GeneratedResponse {
    Complete(MediaResponse),
    Events(EventStream),
}

fn generate_response(
    shared: &Shared,
    logged: &LoggedRequest,
    accepted: Accepted,
    instructions: Instructions,
    serial: u64,
) -> OrRejected<GeneratedResponse> {
    let number = shared.number(serial);
    match accepted {
        Accepted::Fixed(value) => Ok(GeneratedResponse::Complete(MediaResponse::json(value))),
        Accepted::Media(media) => {
            let context = MediaContext::new(shared, instructions.plan, number, request_id(serial));
            (media.run)(&context).map(GeneratedResponse::Complete)
        }
        Accepted::Chat(chat) => {
            let chunks = shared.options.chunks;
            let scenario = &instructions.scenario;
            let output = ChatOutput::decide(&chat.prompt, scenario, number, chunks);
            let bill = Bill::new(&chat.prompt, &output, logged.received_at);
            logged.bill.get_or_init(|| Arc::new(bill));
            Ok(match chat.write_response(&output)? {
                ChatResponse::Json(value) => {
                    GeneratedResponse::Complete(MediaResponse::json(value))
                }
                ChatResponse::Events(events) => GeneratedResponse::Events(events),
            })
        }
    }
}

/// The name of the error that a scenario causes, and the values for its template. `None` if it causes no error.
fn scenario_error(
    service: &Service,
    request: &ReceivedRequest,
    scenario: &Scenario,
) -> Option<(&'static str, Value)> {
    Some(match scenario {
        Scenario::Status(status, _) => ("status", json!({"status": status})),
        Scenario::RateLimited { retry_after } => {
            ("rate-limited", json!({"retry_after": retry_after}))
        }
        Scenario::QuotaExhausted => ("quota-exhausted", Value::Null),
        Scenario::KeyRefused { key } => {
            let own = service.spec.key(request).ok();
            let applies = key.is_none() || *key == own;
            ("key-refused", applies.then_some(Value::Null)?)
        }
        Scenario::ModelMissing => ("model-missing", Value::Null),
        Scenario::Overloaded => ("overloaded", Value::Null),
        _ => return None,
    })
}

fn request_id(serial: u64) -> String {
    format!("req_fake_{serial:08}")
}

fn error_response(service: &Service, rejection: &Rejection, serial: u64) -> OutgoingResponse {
    let id = request_id(serial);
    let mut headers = service.spec.response_headers(&id);
    headers.extend(rejection.headers.iter().cloned());
    headers.push(("x-fake-rule", rejection.rule.to_owned()));
    let body = service.spec.error_body(rejection, &id).to_string();
    OutgoingResponse::json(rejection.status, headers, Bytes::from(body))
}
