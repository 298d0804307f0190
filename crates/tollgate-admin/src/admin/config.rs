//! `/config` and `/nodes`: the settings in effect, the check of a configuration file, the complete configuration as TOML, and the configuration that
//! each node applies.

use axum::body::Body;
use http::Method;
use serde_json::{Value, json};
use tollgate_config::Config;
use tollgate_server::cluster::peers::{CommonSettings, FINGERPRINT};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::time_json;

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::export;
use super::fields;
use super::list::{self, NamedObjects};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/config",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Lists the settings of this node with their sources, except channels, prices and models. Secrets are not shown.",
        query: &[],
        body: None,
        returns: Returns::List("setting"),
        handler: handler!(list_settings),
    },
    Endpoint {
        method: Method::POST,
        path: "/config/validate",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Validates the text of a configuration file. Changes nothing.",
        query: &[],
        body: Some("config_text"),
        returns: Returns::Object("config_check", 200),
        handler: handler!(validate),
    },
    Endpoint {
        method: Method::GET,
        path: "/config/export",
        access: Access::Scope(Scope::ConfigRead),
        summary: "The settings of the file, and the channels, prices and models of the file and the database, as a configuration file.",
        query: &[],
        body: None,
        returns: Returns::Text(export::MEDIA_TYPE),
        handler: handler!(export_config),
    },
    Endpoint {
        method: Method::GET,
        path: "/nodes",
        access: Access::Scope(Scope::ConfigRead),
        summary: "Lists the nodes that are alive, newest first, with the version of the database's configuration that each applies.",
        query: &[],
        body: None,
        returns: Returns::List("node"),
        handler: handler!(list_nodes),
    },
];

async fn list_settings(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let settings = call.app.config.settings().into_iter();
    let mut objects: Vec<(String, Value)> = settings
        .map(|setting| {
            let object =
                json!({ "key": setting.key, "value": setting.value, "source": setting.source });
            (setting.key, object)
        })
        .collect();
    objects.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let listing = NamedObjects {
        columns: &["key", "value", "source"],
        objects,
    };
    list::reply(&call, listing).await
}

async fn validate(call: Call) -> Result<Reply, AdminError> {
    let mut fields = call.fields()?;
    let text = fields.required("toml", |name, value| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| AdminError::invalid(name, "must be the text of a configuration file"))
    })?;
    fields.optional("reason", fields::parse_text)?;
    fields.finish(&[])?;
    Ok(Reply::json(match Config::check_text(&text) {
        Ok(warnings) => json!({ "ok": true, "errors": [], "warnings": warnings }),
        Err(e) => {
            let error = json!({ "field": e.field(), "message": e.to_string() });
            json!({ "ok": false, "errors": [error], "warnings": [] })
        }
    }))
}

async fn export_config(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let text = export::write_configuration(&call).await?;
    Ok(Reply::stream(export::MEDIA_TYPE, Body::from(text)))
}

async fn list_nodes(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let mut nodes = call.app.store.live_nodes(call.now).await?;
    if !call.app.store.is_shared() {
        // The record of an earlier run of the only node may not have expired yet.
        nodes.retain(|node| node.id == call.app.heartbeat.node);
    }
    let is_alone = !call.app.store.is_shared();
    let objects = nodes.into_iter().enumerate().map(|(at, node)| {
        let settings: CommonSettings = node
            .settings
            .and_then(|settings| serde_json::from_str(&settings).ok())
            .unwrap_or_default();
        let object = json!({
            "id": node.id,
            "version": node.version,
            "started_at": time_json(node.started_at),
            "last_seen_at": time_json(node.last_seen_at),
            "config_version": node.config_version,
            "config_error": node.config_error,
            "config_fingerprint": settings.get(FINGERPRINT),
            "schema_version": node.schema_version,
            "clock_offset_ms": node.clock_offset,
            "leader": is_alone || node.is_leader,
            "ready": node.not_ready.is_none(),
            "not_ready": node.not_ready,
        });
        (format!("{at:06}"), object)
    });
    let listing = NamedObjects {
        columns: &[
            "id",
            "version",
            "started_at",
            "last_seen_at",
            "config_version",
            "config_error",
            "config_fingerprint",
            "schema_version",
            "clock_offset_ms",
            "leader",
            "ready",
            "not_ready",
        ],
        objects: objects.collect(),
    };
    list::reply(&call, listing).await
}
