//! A simulated client: submits image tasks, polls and cancels them, uploads images, chats; it retries requests whose connection broke.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::accounts::Service;
use super::chats;
use super::observations::{Observations, Promise, count};
use super::record_check::{Cancel, End, check_image_file, check_record, end};
use super::submission::Submission;
use crate::http::{Client, HttpRequest, HttpResponse};
use crate::rng::Rng;

/// Maximum of unfinished tasks of one customer.
const MAX_UNFINISHED: usize = 5;
/// How long a request is retried while the gateway is killed and restarted.
const RETRY_FOR: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(40);

/// A customer with an account and a key.
pub(crate) struct Customer {
    number: usize,
    submissions: usize,
    rng: Rng,
    account: usize,
    keys: Vec<String>,
    addresses: Vec<String>,
    client: Client,
    observations: Arc<Observations>,
    bad_provider: bool,
    open: Vec<String>,
    uploads: Vec<String>,
}

/// An acknowledgement: the task's id and the receipt's bytes.
type Receipt = (String, Bytes);

impl Customer {
    /// Creates a customer; customers are distributed over the accounts.
    pub(crate) fn new(
        number: usize,
        rng: Rng,
        service: &Service,
        client: Client,
        observations: Arc<Observations>,
    ) -> Self {
        let account = number % service.accounts.len();
        Self {
            number,
            submissions: 0,
            rng,
            account,
            keys: service.accounts[account].keys.clone(),
            addresses: service.addresses.clone(),
            client,
            observations,
            bad_provider: service.bad_provider,
            open: Vec::new(),
            uploads: Vec::new(),
        }
    }

    /// Sends random requests until the observations are stopped.
    pub(crate) async fn run(mut self) {
        while self.observations.go_on() {
            match self.rng.below(16) {
                0 => self.upload().await,
                1..=6 if self.open.len() < MAX_UNFINISHED => self.submit_one().await,
                7 if self.rng.one_in(6) => self.cancel().await,
                8 => self.check_balance().await,
                9..=12 => self.chat().await,
                _ => self.poll().await,
            }
            // Leaves the gateway processor time for images.
            sleep(Duration::from_millis(self.rng.below(30))).await;
        }
    }

    async fn submit_one(&mut self) {
        self.submissions += 1;
        let name = format!("{}-{}", self.number, self.submissions);
        let submission = Submission::random(&mut self.rng, &name, &self.uploads, self.bad_provider);
        let key = self.rng.pick(&self.keys).clone();
        let twice = submission.idempotency_key.is_some() && self.rng.one_in(8);
        let (here, there) = (
            self.url("/v1/images/generations"),
            self.url("/v1/images/generations"),
        );
        let receipt = if twice {
            let both = tokio::join!(
                self.submit(&key, &here, &submission),
                self.submit(&key, &there, &submission)
            );
            self.compare(both)
        } else {
            self.submit(&key, &here, &submission).await
        };
        let Some((id, receipt)) = receipt else { return };
        let promise = Promise {
            account: self.account,
            key: key.clone(),
            submission: submission.clone(),
            cancel: Cancel::No,
            seen: None,
        };
        self.observations.promised(&id, promise);
        self.open.push(id.clone());
        if submission.idempotency_key.is_some() && self.rng.one_in(6) {
            let url = self.url("/v1/images/generations");
            let again = self.submit(&key, &url, &submission).await;
            self.compare((Some((id, receipt)), again));
            self.reuse_idempotency_key(&key, &submission).await;
        }
    }

    /// Sends a submission until there is a response; it is retried only if it has an idempotency key. Returns the acknowledgement, if there is one.
    async fn submit(&self, key: &str, url: &str, submission: &Submission) -> Option<Receipt> {
        let began = Instant::now();
        while began.elapsed() < RETRY_FOR {
            count(&self.observations.counts.submissions);
            let mut request = HttpRequest::json(url, &submission.body);
            if let Some(idempotency_key) = &submission.idempotency_key {
                request = request.header("idempotency-key", idempotency_key);
            }
            let answer = self.client.send(key, request).await;
            match answer {
                Err(_) => count(&self.observations.counts.cut_off),
                Ok(answer) => match answer.status.as_u16() {
                    200 => return self.acknowledged(&answer),
                    402 => {
                        count(&self.observations.counts.rejected);
                        return None;
                    }
                    429 | 502 | 503 => count(&self.observations.counts.shed),
                    _ => {
                        let what = format!("submission {}: {}", submission.body, answer.describe());
                        self.observations.violation(what);
                        return None;
                    }
                },
            }
            submission.idempotency_key.as_ref()?;
            sleep(PAUSE).await;
        }
        let what = format!("a submission got no answer within {RETRY_FOR:?}");
        self.observations.violation(what);
        None
    }

    fn acknowledged(&self, answer: &HttpResponse) -> Option<Receipt> {
        let id = answer.json()["data"][0]["task_id"]
            .as_str()
            .map(str::to_owned);
        if id.is_none() {
            let what = format!("a receipt without a task id: {}", answer.describe());
            self.observations.violation(what);
        }
        Some((id?, answer.body.clone()))
    }

    /// Checks that two responses to one idempotency key are the same receipt, byte for byte.
    fn compare(&self, receipts: (Option<Receipt>, Option<Receipt>)) -> Option<Receipt> {
        if let (Some(first), Some(second)) = &receipts {
            count(&self.observations.counts.repeated);
            if first != second {
                let what = format!("one idempotency key, two receipts: {first:?} and {second:?}");
                self.observations.violation(what);
            }
        }
        receipts.0.or(receipts.1)
    }

    /// Checks that the same idempotency key with another body is rejected.
    async fn reuse_idempotency_key(&self, key: &str, submission: &Submission) {
        let Some(idempotency_key) = &submission.idempotency_key else {
            return;
        };
        let mut body = submission.body.clone();
        body["prompt"] = json!("something else");
        let url = format!("http://{}/v1/images/generations", self.addresses[0]);
        let request = HttpRequest::json(url, &body).header("idempotency-key", idempotency_key);
        if let Ok(answer) = self.client.send(key, request).await
            && !matches!(answer.status.as_u16(), 409 | 429 | 502 | 503)
        {
            let what = format!(
                "an idempotency key with another body: {}",
                answer.describe()
            );
            self.observations.violation(what);
        }
    }

    /// Polls one of the open tasks; if it has ended, checks the record and the images.
    async fn poll(&mut self) {
        if self.open.is_empty() {
            sleep(PAUSE).await;
            return;
        }
        let id = self.rng.pick(&self.open).clone();
        let Some(promise) = self.observations.promise(&id) else {
            return;
        };
        count(&self.observations.counts.polls);
        let url = self.url(&format!("/v1/tasks/{id}"));
        let Ok(answer) = self.client.send(&promise.key, HttpRequest::get(url)).await else {
            sleep(PAUSE).await;
            return;
        };
        let record = answer.json()["data"].take();
        match (answer.status.as_u16(), end(&record)) {
            (200, None) => sleep(PAUSE).await,
            (200, Some(end)) => {
                self.open.retain(|open| *open != id);
                self.ended(&id, &promise, &record, end).await;
            }
            (429 | 502 | 503, _) => count(&self.observations.counts.shed),
            _ => {
                self.open.retain(|open| *open != id);
                let what = format!("acknowledged task {id}: {}", answer.describe());
                self.observations.violation(what);
            }
        }
    }

    async fn ended(&mut self, id: &str, promise: &Promise, record: &Value, end: End) {
        self.observations.seen(id, record);
        if let Some(mismatch) = check_record(&promise.submission, promise.cancel, record) {
            self.observations.violation(format!("task {id} {mismatch}"));
        }
        let End::Completed(links) = end else { return };
        let links: Vec<String> = links
            .iter()
            .filter(|_| self.rng.one_in(2))
            .cloned()
            .collect();
        for link in links {
            let url = self.url(path(&link));
            check_image(&self.client, &self.observations, &url, &promise.submission).await;
        }
    }

    async fn cancel(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let id = self.rng.pick(&self.open).clone();
        let Some(promise) = self.observations.promise(&id) else {
            return;
        };
        // Recorded before the request is sent, so that a concurrent poll knows of the cancellation.
        self.observations.cancelled(&id, Cancel::AnswerLost);
        let url = self.url(&format!("/v1/tasks/{id}/cancel"));
        let request = HttpRequest::post(url, "application/json", "{}");
        let Ok(answer) = self.client.send(&promise.key, request).await else {
            return;
        };
        match answer.status.as_u16() {
            200 => self.observations.cancelled(&id, Cancel::Confirmed),
            // The task had already ended, or an earlier cancellation succeeded whose response was lost.
            409 => self.observations.cancelled(&id, promise.cancel),
            429 | 502 | 503 => count(&self.observations.counts.shed),
            _ => self
                .observations
                .violation(format!("cancelling {id}: {}", answer.describe())),
        }
    }

    /// Checks that concurrent requests do not overdraw a balance.
    async fn check_balance(&mut self) {
        let key = self.rng.pick(&self.keys).clone();
        let path = *self.rng.pick(&["/v1/user/balance", "/balance"]);
        let request = HttpRequest::get(self.url(path));
        let Ok(answer) = self.client.send(&key, request).await else {
            sleep(PAUSE).await;
            return;
        };
        let balance = answer.json();
        let overdrawn = balance["remain_balance"]
            .as_f64()
            .is_none_or(|left| left < 0.0);
        if answer.status == 200 && overdrawn && balance["unlimited_quota"] != true {
            let what = format!("{path} of customer {}: {balance}", self.number);
            self.observations.violation(what);
        }
    }

    async fn chat(&mut self) {
        let key = self.rng.pick(&self.keys).clone();
        let address = self.rng.pick(&self.addresses).clone();
        let (client, observations) = (&self.client, &self.observations);
        chats::chat(
            &mut self.rng,
            client,
            observations,
            self.account,
            &key,
            &address,
        )
        .await;
    }

    async fn upload(&mut self) {
        let image = image(&mut self.rng);
        let body = form(&image);
        let key = self.keys[0].clone();
        let url = self.url("/v1/uploads/images");
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = HttpRequest::post(url, &content_type, body);
        let Ok(answer) = self.client.send(&key, request).await else {
            return;
        };
        let record = answer.json();
        match (answer.status.as_u16(), record["url"].as_str()) {
            (200, Some(link)) if record["bytes"] == image.len() => {
                self.observations.uploaded(link, image);
                self.uploads.push(link.to_owned());
            }
            (429 | 502 | 503, _) => count(&self.observations.counts.shed),
            // The storage is full for a moment.
            (500, _) if answer.headers.contains_key("retry-after") => {
                count(&self.observations.counts.shed);
            }
            _ => {
                let what = format!("upload of {} bytes: {}", image.len(), answer.describe());
                self.observations.violation(what);
            }
        }
    }

    fn url(&mut self, path: &str) -> String {
        format!("http://{}{path}", self.rng.pick(&self.addresses))
    }
}

/// The path of a link, whose host may be another node.
pub(super) fn path(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Downloads a file, with retries while the gateway is killed and restarted.
pub(super) async fn download(client: &Client, url: &str) -> Result<HttpResponse, String> {
    let began = Instant::now();
    loop {
        let answer = client.send("", HttpRequest::get(url)).await;
        let lost = match &answer {
            Err(_) => true,
            Ok(answer) => matches!(answer.status.as_u16(), 429 | 502 | 503),
        };
        if !lost || began.elapsed() > RETRY_FOR {
            return answer;
        }
        sleep(PAUSE).await;
    }
}

/// Downloads an image of a submission and decodes it.
pub(super) async fn check_image(
    client: &Client,
    observations: &Observations,
    url: &str,
    submission: &Submission,
) {
    let mismatch = match download(client, url).await {
        Ok(answer) => check_image_file(submission, &answer),
        Err(e) => Some(e),
    };
    count(&observations.counts.downloads);
    if let Some(mismatch) = mismatch {
        observations.violation(format!("image {url} {mismatch}"));
    }
}

const BOUNDARY: &str = "tollgate-customer-boundary";

/// A small random PNG.
fn image(rng: &mut Rng) -> Bytes {
    let side = 64 + u32::try_from(rng.below(200)).unwrap_or(0);
    let salt = rng.number();
    let pixel = |x: u32, y: u32| {
        let [a, b, c, ..] = (u64::from(x * 31 + y * 17).wrapping_mul(salt | 1)).to_be_bytes();
        image::Rgb([a, b, c])
    };
    let mut bytes = std::io::Cursor::new(Vec::new());
    let drawn = image::RgbImage::from_fn(side, side, pixel);
    match drawn.write_to(&mut bytes, image::ImageFormat::Png) {
        Ok(()) => bytes.into_inner().into(),
        Err(_) => Bytes::new(),
    }
}

/// A multipart form with one file.
fn form(file: &[u8]) -> Bytes {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"drawn.png\"\r\ncontent-type: image/png\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    [head.as_bytes(), file, tail.as_bytes()].concat().into()
}
