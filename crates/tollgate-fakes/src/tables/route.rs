//! Finds the endpoint for a request: methods and paths with variables.

use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::scope::Scope;
use super::spec::Spec;

/// The variables of a path, if it matches this pattern.
fn match_path(pattern: &str, path: &str) -> Option<Map<String, Value>> {
    let mut vars = Map::new();
    let mut segments = path.split('/');
    for part in pattern.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix("*}"))
        {
            let all: Vec<&str> = segments.by_ref().collect();
            vars.insert(name.to_owned(), json!(all.join("/")));
        } else {
            match_segment(part, segments.next()?, &mut vars)?;
        }
    }
    segments.next().is_none().then_some(vars)
}

fn match_segment(pattern: &str, text: &str, vars: &mut Map<String, Value>) -> Option<()> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == text).then_some(());
    };
    let (name, rest) = rest.split_once('}')?;
    let text = text.strip_prefix(before)?;
    let literal = rest.split('{').next().unwrap_or_default();
    let end = if literal.is_empty() {
        text.len()
    } else {
        text.rfind(literal)?
    };
    let (value, text) = text.split_at(end);
    if value.is_empty() {
        return None;
    }
    vars.insert(name.to_owned(), json!(value));
    match_segment(rest, text, vars)
}

impl Spec {
    /// The endpoint for a request, and the variables in its path.
    pub(crate) fn route(
        &self,
        method: &str,
        path: &str,
    ) -> Option<(&Endpoint, Map<String, Value>)> {
        let path = path.strip_prefix(self.base_path.as_str())?;
        self.endpoints.iter().find_map(|endpoint| {
            let routes = endpoint
                .routes
                .iter()
                .filter_map(|route| route.split_once(' '));
            let mut routes = routes.filter(|(known, _)| *known == method);
            let vars = routes.find_map(|(_, pattern)| match_path(pattern, path))?;
            let mut scope = Scope::new(&vars, &Value::Null, &self.tables);
            scope.shared = endpoint
                .names
                .as_ref()
                .and_then(|names| self.definitions.get(names));
            let is_for_it = endpoint
                .when
                .as_ref()
                .is_none_or(|when| when.is_true(&scope));
            is_for_it.then_some((endpoint, vars))
        })
    }

    /// Whether an endpoint has the path, with any method.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        let path = path
            .strip_prefix(self.base_path.as_str())
            .unwrap_or_default();
        let routes = self.endpoints.iter().flat_map(|endpoint| &endpoint.routes);
        let mut routes = routes.filter_map(|route| route.split_once(' '));
        routes.any(|(_, pattern)| match_path(pattern, path).is_some())
    }
}
