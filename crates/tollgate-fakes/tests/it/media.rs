//! What the tests of media have in common: a client of one fake, pictures, forms.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

    pub(crate) async fn post_form(&self, path: &str, form: &Form) -> Reply {
        let mut headers = self.headers.clone();
        headers.push(("content-type", Form::TYPE));
        let path = format!("{}{path}", self.base);
        let reply = send(&self.fake, "POST", &path, &headers, form.body()).await;
        reply.expect("an answer")
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

    /// Posts every row's patch of `base`: each is refused by the row's rule, or by none if that is
    /// empty. Fields that are null in a patch are taken away.
    pub(crate) async fn table(&self, path: &str, base: &Value, rows: &[(&str, Value)]) {
        for (rule, patch) in rows {
            let mut body = base.clone();
            let object = body.as_object_mut().expect("an object");
            for (name, value) in patch.as_object().expect("a patch is an object") {
                object.insert(name.clone(), value.clone());
            }
            object.retain(|_, value| !value.is_null());
            let reply = self.post(path, &body).await;
            let bytes = reply.bytes();
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(500)]);
            let short: String = patch.to_string().chars().take(300).collect();
            assert_eq!(reply.header("x-fake-rule"), *rule, "{short}\n{shown}");
            let refused = self.fake.requests().pop().and_then(|seen| seen.refused);
            assert_eq!(refused.unwrap_or_default(), *rule);
            assert_eq!(reply.status < 300, rule.is_empty(), "{short}\n{shown}");
        }
    }
}

/// A picture that is not there: only its beginning is, which says its size.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    picture(width, height, image::ImageFormat::Png)
}

pub(crate) fn picture(width: u32, height: u32, format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(width, height)
        .write_to(&mut bytes, format)
        .expect("a picture");
    bytes.into_inner()
}

/// A picture whose pixels can be transparent.
pub(crate) fn mask(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbaImage::new(width, height)
        .write_to(&mut bytes, image::ImageFormat::Png)
        .expect("a picture");
    bytes.into_inner()
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn data_uri(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", base64(bytes))
}

/// The size of a picture in bytes of a known format, read to its last pixel.
pub(crate) fn read_picture(bytes: &[u8], media_type: &str) -> (u32, u32) {
    let format = image::guess_format(bytes).expect("a format");
    assert_eq!(format.to_mime_type(), media_type);
    let picture = image::load_from_memory(bytes).expect("a picture");
    (picture.width(), picture.height())
}

/// The same in base64.
pub(crate) fn read_base64(text: &Value, media_type: &str) -> (u32, u32) {
    let bytes = STANDARD
        .decode(text.as_str().expect("text"))
        .expect("base64");
    read_picture(&bytes, media_type)
}

/// A form.
#[derive(Default)]
pub(crate) struct Form(Vec<u8>);

impl Form {
    const TYPE: &'static str = "multipart/form-data; boundary=edge";

    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        let mut head = String::new();
        write!(
            head,
            "--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
        .expect("a string takes everything");
        self.0.extend(head.as_bytes());
        self
    }

    pub(crate) fn file(mut self, name: &str, media_type: &str, bytes: &[u8]) -> Self {
        let head = format!(
            "--edge\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a\"\r\n\
             Content-Type: {media_type}\r\n\r\n"
        );
        self.0.extend(head.as_bytes());
        self.0.extend(bytes);
        self.0.extend(b"\r\n");
        self
    }

    fn body(&self) -> Vec<u8> {
        [&self.0[..], b"--edge--\r\n"].concat()
    }
}
