//! `GET /me`: returns the caller.

use http::Method;
use tollgate_server::http::admin_error::AdminError;

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::reply::Reply;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::GET,
    path: "/me",
    access: Access::Any,
    summary: "The caller, with its scopes.",
    query: &[],
    body: None,
    returns: Returns::Object("me", 200),
    handler: handler!(get),
}];

async fn get(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    Ok(Reply::json(call.actor()?.to_json()))
}
