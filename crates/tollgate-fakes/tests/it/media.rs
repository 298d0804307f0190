//! What the tests of media have in common: a client of one fake, images, forms.

use serde_json::Value;
use tollgate_fakes::{Fake, Options, Provider};

use crate::client::{Reply, send};

/// A fake and how it is asked.
pub(crate) struct Site {
    pub(crate) fake: Fake,
    headers: Vec<(&'static str, &'static str)>,
    base: &'static str,
}

/// What a body of JSON says of itself.
const JSON: (&str, &str) = ("content-type", "application/json");

impl Site {
    /// A fake that is asked with these headers, with paths that begin with `base`.
    pub(crate) async fn start(
        provider: Provider,
        options: Options,
        base: &'static str,
        headers: &[(&'static str, &'static str)],
    ) -> Self {
        let fake = tollgate_fakes::start(provider, options)
            .await
            .expect("a port");
        let headers = headers.to_vec();
        Self {
            fake,
            headers,
            base,
        }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str) -> Reply {
        let path = format!("{}{path}", self.base);
        let reply = send(&self.fake, method, &path, &self.headers, "").await;
        reply.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path).await
    }

    pub(crate) async fn try_post(&self, path: &str, body: &Value) -> Result<Reply, hyper::Error> {
        let mut headers = self.headers.clone();
        headers.push(JSON);
        let path = format!("{}{path}", self.base);
        send(&self.fake, "POST", &path, &headers, body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.try_post(path, body).await.expect("an answer")
    }

    /// Posts and expects status 200.
    pub(crate) async fn good(&self, path: &str, body: &Value) -> Value {
        let reply = self.post(path, body).await;
        assert_eq!(reply.status, 200, "{body}\n{}", reply.text());
        reply.json()
    }

    /// Follows a link of the fake's own, without any key.
    pub(crate) async fn fetch(&self, link: &Value) -> Reply {
        self.try_fetch(link).await.expect("an answer")
    }

    pub(crate) async fn try_fetch(&self, link: &Value) -> Result<Reply, hyper::Error> {
        let link = link.as_str().expect("a link");
        let origin = format!("http://{}", self.fake.address());
        let path = link.strip_prefix(&origin).expect("the fake's own origin");
        send(&self.fake, "GET", path, &[], "").await
    }
}
