//! [`Customer`]: a simulated client. It submits image tasks, polls and cancels them, uploads images and sends chats; it retries requests whose
//! connection broke.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::accounts::Service;
use super::chats;
use super::observations::{AcknowledgedTask, Observations, increment};
use super::record_check::{
    Cancellation, TaskOutcome, check_image_file, check_record, task_outcome,
};
use super::submission::Submission;
use crate::http::{Client, HttpRequest, HttpResponse};
use crate::rng::Rng;

/// Maximum of unfinished tasks of one customer.
const MAX_UNFINISHED: usize = 5;
/// How long a request is retried while the gateway is killed and restarted.
const RETRY_FOR: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(40);

/// A simulated client that uses the keys of one account.
pub(crate) struct Customer {
    number: usize,
    submissions: usize,
    rng: Rng,
    account: usize,
    keys: Vec<String>,
    addresses: Vec<String>,
    client: Client,
    observations: Arc<Observations>,
    failing_provider: bool,
    /// The ids of acknowledged tasks that have not been observed as ended.
    unfinished: Vec<String>,
    /// The links of uploaded images.
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
            failing_provider: service.failing_provider,
            unfinished: Vec::new(),
            uploads: Vec::new(),
        }
    }

    /// Sends random requests until the observations are stopped.
    pub(crate) async fn run(mut self) {
        while self.observations.is_running() {
            match self.rng.below(16) {
                0 => self.upload_image().await,
                1..=6 if self.unfinished.len() < MAX_UNFINISHED => self.submit_one().await,
                7 if self.rng.one_in(6) => self.cancel_task().await,
                8 => self.check_balance().await,
                9..=12 => self.send_chat().await,
                _ => self.poll_task().await,
            }
            // Leaves the gateway processor time for images.
            sleep(Duration::from_millis(self.rng.below(30))).await;
        }
    }

    async fn submit_one(&mut self) {
        self.submissions += 1;
        let name = format!("{}-{}", self.number, self.submissions);
        let submission =
            Submission::random(&mut self.rng, &name, &self.uploads, self.failing_provider);
        let key = self.rng.pick(&self.keys).clone();
        let twice = submission.idempotency_key.is_some() && self.rng.one_in(8);
        let (first_url, second_url) = (
            self.url("/v1/images/generations"),
            self.url("/v1/images/generations"),
        );
        let receipt = if twice {
            let both = tokio::join!(
                self.submit(&key, &first_url, &submission),
                self.submit(&key, &second_url, &submission)
            );
            self.compare_receipts(both)
        } else {
            self.submit(&key, &first_url, &submission).await
        };
        let Some((id, receipt)) = receipt else { return };
        let task = AcknowledgedTask {
            account: self.account,
            key: key.clone(),
            submission: submission.clone(),
            cancellation: Cancellation::NotRequested,
            final_record: None,
        };
        self.observations.record_acknowledged(&id, task);
        self.unfinished.push(id.clone());
        if submission.idempotency_key.is_some() && self.rng.one_in(6) {
            let url = self.url("/v1/images/generations");
            let again = self.submit(&key, &url, &submission).await;
            self.compare_receipts((Some((id, receipt)), again));
            self.reuse_idempotency_key(&key, &submission).await;
        }
    }

    /// Sends a submission until there is a response; it is retried only if it has an idempotency key. Returns the acknowledgement, if there is one.
    async fn submit(&self, key: &str, url: &str, submission: &Submission) -> Option<Receipt> {
        let began = Instant::now();
        while began.elapsed() < RETRY_FOR {
            increment(&self.observations.counts.submissions);
            let mut request = HttpRequest::json(url, &submission.body);
            if let Some(idempotency_key) = &submission.idempotency_key {
                request = request.header("idempotency-key", idempotency_key);
            }
            let response = self.client.send(key, request).await;
            match response {
                Err(_) => increment(&self.observations.counts.cut_off),
                Ok(response) => match response.status.as_u16() {
                    200 => return self.parse_receipt(&response),
                    402 => {
                        increment(&self.observations.counts.rejected);
                        return None;
                    }
                    429 | 502 | 503 => increment(&self.observations.counts.shed),
                    _ => {
                        let what =
                            format!("submission {}: {}", submission.body, response.describe());
                        self.observations.record_violation(what);
                        return None;
                    }
                },
            }
            submission.idempotency_key.as_ref()?;
            sleep(PAUSE).await;
        }
        let what = format!("a submission got no response within {RETRY_FOR:?}");
        self.observations.record_violation(what);
        None
    }

    /// The receipt in the response to a submission.
    fn parse_receipt(&self, response: &HttpResponse) -> Option<Receipt> {
        let id = response.json()["data"][0]["task_id"]
            .as_str()
            .map(str::to_owned);
        if id.is_none() {
            let what = format!("a receipt without a task id: {}", response.describe());
            self.observations.record_violation(what);
        }
        Some((id?, response.body.clone()))
    }

    /// Checks that two responses to one idempotency key are the same receipt, byte for byte.
    fn compare_receipts(&self, receipts: (Option<Receipt>, Option<Receipt>)) -> Option<Receipt> {
        if let (Some(first), Some(second)) = &receipts {
            increment(&self.observations.counts.repeated);
            if first != second {
                let what = format!("one idempotency key, two receipts: {first:?} and {second:?}");
                self.observations.record_violation(what);
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
        if let Ok(response) = self.client.send(key, request).await
            && !matches!(response.status.as_u16(), 409 | 429 | 502 | 503)
        {
            let what = format!(
                "an idempotency key with another body: {}",
                response.describe()
            );
            self.observations.record_violation(what);
        }
    }

    /// Polls one of the unfinished tasks; if it has ended, checks the record and the images.
    async fn poll_task(&mut self) {
        if self.unfinished.is_empty() {
            sleep(PAUSE).await;
            return;
        }
        let id = self.rng.pick(&self.unfinished).clone();
        let Some(task) = self.observations.acknowledged_task(&id) else {
            return;
        };
        increment(&self.observations.counts.polls);
        let url = self.url(&format!("/v1/tasks/{id}"));
        let Ok(response) = self.client.send(&task.key, HttpRequest::get(url)).await else {
            sleep(PAUSE).await;
            return;
        };
        let record = response.json()["data"].take();
        match (response.status.as_u16(), task_outcome(&record)) {
            (200, None) => sleep(PAUSE).await,
            (200, Some(outcome)) => {
                self.unfinished.retain(|unfinished| *unfinished != id);
                self.check_ended_task(&id, &task, &record, outcome).await;
            }
            (429 | 502 | 503, _) => increment(&self.observations.counts.shed),
            _ => {
                self.unfinished.retain(|unfinished| *unfinished != id);
                let what = format!("acknowledged task {id}: {}", response.describe());
                self.observations.record_violation(what);
            }
        }
    }

    /// Checks the final record of a task, and half of its images.
    async fn check_ended_task(
        &mut self,
        id: &str,
        task: &AcknowledgedTask,
        record: &Value,
        outcome: TaskOutcome,
    ) {
        self.observations.record_final(id, record);
        if let Some(mismatch) = check_record(&task.submission, task.cancellation, record) {
            self.observations
                .record_violation(format!("task {id} {mismatch}"));
        }
        let TaskOutcome::Completed(links) = outcome else {
            return;
        };
        let links: Vec<String> = links
            .iter()
            .filter(|_| self.rng.one_in(2))
            .cloned()
            .collect();
        for link in links {
            let url = self.url(link_path(&link));
            check_image(&self.client, &self.observations, &url, &task.submission).await;
        }
    }

    async fn cancel_task(&mut self) {
        if self.unfinished.is_empty() {
            return;
        }
        let id = self.rng.pick(&self.unfinished).clone();
        let Some(task) = self.observations.acknowledged_task(&id) else {
            return;
        };
        // Recorded before the request is sent, so that a concurrent poll knows of the cancellation.
        self.observations
            .record_cancellation(&id, Cancellation::ResponseLost);
        let url = self.url(&format!("/v1/tasks/{id}/cancel"));
        let request = HttpRequest::post(url, "application/json", "{}");
        let Ok(response) = self.client.send(&task.key, request).await else {
            return;
        };
        match response.status.as_u16() {
            200 => self
                .observations
                .record_cancellation(&id, Cancellation::Confirmed),
            // The task had already ended, or an earlier cancellation succeeded whose response was lost.
            409 => self
                .observations
                .record_cancellation(&id, task.cancellation),
            429 | 502 | 503 => increment(&self.observations.counts.shed),
            _ => self
                .observations
                .record_violation(format!("cancelling {id}: {}", response.describe())),
        }
    }

    /// Checks that concurrent requests do not overdraw a balance.
    async fn check_balance(&mut self) {
        let key = self.rng.pick(&self.keys).clone();
        let path = *self.rng.pick(&["/v1/user/balance", "/balance"]);
        let request = HttpRequest::get(self.url(path));
        let Ok(response) = self.client.send(&key, request).await else {
            sleep(PAUSE).await;
            return;
        };
        let balance = response.json();
        let overdrawn = balance["remain_balance"]
            .as_f64()
            .is_none_or(|left| left < 0.0);
        if response.status == 200 && overdrawn && balance["unlimited_quota"] != true {
            let what = format!("{path} of customer {}: {balance}", self.number);
            self.observations.record_violation(what);
        }
    }

    async fn send_chat(&mut self) {
        let key = self.rng.pick(&self.keys).clone();
        let address = self.rng.pick(&self.addresses).clone();
        let (client, observations) = (&self.client, &self.observations);
        chats::send_chat(
            &mut self.rng,
            client,
            observations,
            self.account,
            &key,
            &address,
        )
        .await;
    }

    async fn upload_image(&mut self) {
        let image = random_png(&mut self.rng);
        let body = multipart_form(&image);
        let key = self.keys[0].clone();
        let url = self.url("/v1/uploads/images");
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = HttpRequest::post(url, &content_type, body);
        let Ok(response) = self.client.send(&key, request).await else {
            return;
        };
        let record = response.json();
        match (response.status.as_u16(), record["url"].as_str()) {
            (200, Some(link)) if record["bytes"] == image.len() => {
                self.observations.record_upload(link, image);
                self.uploads.push(link.to_owned());
            }
            (429 | 502 | 503, _) => increment(&self.observations.counts.shed),
            // The storage is full for a moment.
            (500, _) if response.headers.contains_key("retry-after") => {
                increment(&self.observations.counts.shed);
            }
            _ => {
                let what = format!("upload of {} bytes: {}", image.len(), response.describe());
                self.observations.record_violation(what);
            }
        }
    }

    fn url(&mut self, path: &str) -> String {
        format!("http://{}{path}", self.rng.pick(&self.addresses))
    }
}

/// The path of a link, whose host may be another node.
pub(super) fn link_path(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Downloads a file, with retries while the gateway is killed and restarted.
pub(super) async fn download(client: &Client, url: &str) -> Result<HttpResponse, String> {
    let began = Instant::now();
    loop {
        let response = client.send("", HttpRequest::get(url)).await;
        let should_retry = match &response {
            Err(_) => true,
            Ok(response) => matches!(response.status.as_u16(), 429 | 502 | 503),
        };
        if !should_retry || began.elapsed() > RETRY_FOR {
            return response;
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
        Ok(response) => check_image_file(submission, &response),
        Err(e) => Some(e),
    };
    increment(&observations.counts.downloads);
    if let Some(mismatch) = mismatch {
        observations.record_violation(format!("image {url} {mismatch}"));
    }
}

const BOUNDARY: &str = "tollgate-customer-boundary";

/// A small random PNG.
fn random_png(rng: &mut Rng) -> Bytes {
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
fn multipart_form(file: &[u8]) -> Bytes {
    let head = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"drawn.png\"\r\ncontent-type: image/png\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    [head.as_bytes(), file, tail.as_bytes()].concat().into()
}
