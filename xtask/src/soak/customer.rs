//! One customer of the gateway: orders pictures, looks after them, cancels some, uploads others, chats;
//! never gives up because a connection broke.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::chats;
use super::notes::{Notes, Promise, count};
use super::order::Order;
use super::site::Site;
use super::verdict::{Cancel, End, end, examine, judge};
use crate::dice::Dice;
use crate::http::{Answer, Ask, Client};

/// How many unfinished tasks a customer has at most.
const PATIENCE: usize = 5;
/// How long a customer tries to get through to a gateway that keeps being killed.
const PERSISTENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(40);

/// A customer with an account and a key.
pub(super) struct Customer {
    number: usize,
    orders: usize,
    dice: Dice,
    account: usize,
    keys: Vec<String>,
    addresses: Vec<String>,
    client: Client,
    notes: Arc<Notes>,
    open: Vec<String>,
    uploads: Vec<String>,
}

/// An acknowledgement: the task and the receipt's bytes.
type Receipt = (String, Bytes);

impl Customer {
    /// The customers share the accounts out among themselves.
    pub(super) fn new(
        number: usize,
        dice: Dice,
        site: &Site,
        client: Client,
        notes: Arc<Notes>,
    ) -> Self {
        let account = number % site.accounts.len();
        Self {
            number,
            orders: 0,
            dice,
            account,
            keys: site.accounts[account].keys.clone(),
            addresses: site.addresses.clone(),
            client,
            notes,
            open: Vec::new(),
            uploads: Vec::new(),
        }
    }

    /// Does one thing after the other until `until`.
    pub(super) async fn live(mut self, until: Instant) {
        while Instant::now() < until {
            match self.dice.below(16) {
                0 => self.upload().await,
                1..=6 if self.open.len() < PATIENCE => self.order().await,
                7 if self.dice.once_in(6) => self.cancel().await,
                8 => self.look_at_balance().await,
                9..=12 => self.chat().await,
                _ => self.look().await,
            }
            // The gateway is to spend its time on pictures, not on polls.
            sleep(Duration::from_millis(self.dice.below(30))).await;
        }
    }

    async fn order(&mut self) {
        self.orders += 1;
        let name = format!("{}-{}", self.number, self.orders);
        let order = Order::any(&mut self.dice, &name, &self.uploads);
        let key = self.dice.pick(&self.keys).clone();
        let twice = order.idempotency_key.is_some() && self.dice.once_in(8);
        let (here, there) = (
            self.url("/v1/images/generations"),
            self.url("/v1/images/generations"),
        );
        let receipt = if twice {
            let both = tokio::join!(
                self.place(&key, &here, &order),
                self.place(&key, &there, &order)
            );
            self.compare(both)
        } else {
            self.place(&key, &here, &order).await
        };
        let Some((id, receipt)) = receipt else { return };
        let promise = Promise {
            account: self.account,
            key: key.clone(),
            order: order.clone(),
            cancel: Cancel::No,
            seen: None,
        };
        self.notes.promised(&id, promise);
        self.open.push(id.clone());
        if order.idempotency_key.is_some() && self.dice.once_in(6) {
            let url = self.url("/v1/images/generations");
            let again = self.place(&key, &url, &order).await;
            self.compare((Some((id, receipt)), again));
            self.misuse(&key, &order).await;
        }
    }

    /// Sends an order until there is an answer, which only an order with an idempotency key may
    /// do; returns the acknowledgement, if there is one.
    async fn place(&self, key: &str, url: &str, order: &Order) -> Option<Receipt> {
        let began = Instant::now();
        while began.elapsed() < PERSISTENCE {
            count(&self.notes.counts.submissions);
            let mut ask = Ask::json(url, &order.body);
            if let Some(idempotency_key) = &order.idempotency_key {
                ask = ask.header("idempotency-key", idempotency_key);
            }
            let answer = self.client.ask(key, ask).await;
            match answer {
                Err(_) => count(&self.notes.counts.cut_off),
                Ok(answer) => match answer.status.as_u16() {
                    200 => return self.acknowledged(&answer),
                    402 => {
                        count(&self.notes.counts.refused);
                        return None;
                    }
                    429 | 502 | 503 => count(&self.notes.counts.turned_away),
                    _ => {
                        let what = format!("submission {}: {}", order.body, answer.describe());
                        self.notes.violation(what);
                        return None;
                    }
                },
            }
            order.idempotency_key.as_ref()?;
            sleep(PAUSE).await;
        }
        let what = format!("a submission got no answer within {PERSISTENCE:?}");
        self.notes.violation(what);
        None
    }

    fn acknowledged(&self, answer: &Answer) -> Option<Receipt> {
        let id = answer.json()["data"][0]["task_id"]
            .as_str()
            .map(str::to_owned);
        if id.is_none() {
            let what = format!("a receipt without a task id: {}", answer.describe());
            self.notes.violation(what);
        }
        Some((id?, answer.body.clone()))
    }

    /// Two answers to one idempotency key must be one receipt, byte for byte.
    fn compare(&self, receipts: (Option<Receipt>, Option<Receipt>)) -> Option<Receipt> {
        if let (Some(first), Some(second)) = &receipts {
            count(&self.notes.counts.repeated);
            if first != second {
                let what = format!("one idempotency key, two receipts: {first:?} and {second:?}");
                self.notes.violation(what);
            }
        }
        receipts.0.or(receipts.1)
    }

    /// The same idempotency key with another body is refused.
    async fn misuse(&self, key: &str, order: &Order) {
        let Some(idempotency_key) = &order.idempotency_key else {
            return;
        };
        let mut body = order.body.clone();
        body["prompt"] = json!("something else");
        let url = format!("http://{}/v1/images/generations", self.addresses[0]);
        let ask = Ask::json(url, &body).header("idempotency-key", idempotency_key);
        if let Ok(answer) = self.client.ask(key, ask).await
            && !matches!(answer.status.as_u16(), 409 | 429 | 502 | 503)
        {
            let what = format!(
                "an idempotency key with another body: {}",
                answer.describe()
            );
            self.notes.violation(what);
        }
    }

    /// Polls one of the open tasks; when it has ended, checks the record and the pictures.
    async fn look(&mut self) {
        if self.open.is_empty() {
            sleep(PAUSE).await;
            return;
        }
        let id = self.dice.pick(&self.open).clone();
        let Some(promise) = self.notes.promise(&id) else {
            return;
        };
        count(&self.notes.counts.polls);
        let url = self.url(&format!("/v1/tasks/{id}"));
        let Ok(answer) = self.client.ask(&promise.key, Ask::get(url)).await else {
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
            (429 | 502 | 503, _) => count(&self.notes.counts.turned_away),
            _ => {
                self.open.retain(|open| *open != id);
                let what = format!("acknowledged task {id}: {}", answer.describe());
                self.notes.violation(what);
            }
        }
    }

    async fn ended(&mut self, id: &str, promise: &Promise, record: &Value, end: End) {
        self.notes.seen(id, record);
        if let Some(wrong) = judge(&promise.order, promise.cancel, record) {
            self.notes.violation(format!("task {id} {wrong}"));
        }
        let End::Completed(links) = end else { return };
        let links: Vec<String> = links
            .iter()
            .filter(|_| self.dice.once_in(2))
            .cloned()
            .collect();
        for link in links {
            let url = self.url(path(&link));
            check_picture(&self.client, &self.notes, &url, &promise.order).await;
        }
    }

    async fn cancel(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let id = self.dice.pick(&self.open).clone();
        let Some(promise) = self.notes.promise(&id) else {
            return;
        };
        // Noted before it is sent: whoever looks meanwhile must know.
        self.notes.cancelled(&id, Cancel::Perhaps);
        let url = self.url(&format!("/v1/tasks/{id}/cancel"));
        let ask = Ask::post(url, "application/json", "{}");
        let Ok(answer) = self.client.ask(&promise.key, ask).await else {
            return;
        };
        match answer.status.as_u16() {
            200 => self.notes.cancelled(&id, Cancel::Done),
            // It had ended: by itself, or by a cancellation whose answer was lost.
            409 => self.notes.cancelled(&id, promise.cancel),
            429 | 502 | 503 => count(&self.notes.counts.turned_away),
            _ => self
                .notes
                .violation(format!("cancelling {id}: {}", answer.describe())),
        }
    }

    /// However many submissions run side by side, nobody spends what is not there.
    async fn look_at_balance(&mut self) {
        let key = self.dice.pick(&self.keys).clone();
        let path = *self.dice.pick(&["/v1/user/balance", "/balance"]);
        let ask = Ask::get(self.url(path));
        let Ok(answer) = self.client.ask(&key, ask).await else {
            sleep(PAUSE).await;
            return;
        };
        let balance = answer.json();
        let overdrawn = balance["remain_balance"]
            .as_f64()
            .is_none_or(|left| left < 0.0);
        if answer.status == 200 && overdrawn && balance["unlimited_quota"] != true {
            let what = format!("{path} of customer {}: {balance}", self.number);
            self.notes.violation(what);
        }
    }

    async fn chat(&mut self) {
        let key = self.dice.pick(&self.keys).clone();
        let address = self.dice.pick(&self.addresses).clone();
        let (client, notes) = (&self.client, &self.notes);
        chats::chat(&mut self.dice, client, notes, self.account, &key, &address).await;
    }

    async fn upload(&mut self) {
        let picture = picture(&mut self.dice);
        let body = form(&picture);
        let key = self.keys[0].clone();
        let url = self.url("/v1/uploads/images");
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let ask = Ask::post(url, &content_type, body);
        let Ok(answer) = self.client.ask(&key, ask).await else {
            return;
        };
        let record = answer.json();
        match (answer.status.as_u16(), record["url"].as_str()) {
            (200, Some(link)) if record["bytes"] == picture.len() => {
                self.notes.uploaded(link, picture);
                self.uploads.push(link.to_owned());
            }
            (429 | 502 | 503, _) => count(&self.notes.counts.turned_away),
            _ => {
                let what = format!("upload of {} bytes: {}", picture.len(), answer.describe());
                self.notes.violation(what);
            }
        }
    }

    fn url(&mut self, path: &str) -> String {
        format!("http://{}{path}", self.dice.pick(&self.addresses))
    }
}

/// The path of a link, which may name another node.
pub(super) fn path(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Downloads, however often the gateway is killed meanwhile.
pub(super) async fn download(client: &Client, url: &str) -> Result<Answer, String> {
    let began = Instant::now();
    loop {
        let answer = client.ask("", Ask::get(url)).await;
        let lost = match &answer {
            Err(_) => true,
            Ok(answer) => matches!(answer.status.as_u16(), 429 | 502 | 503),
        };
        if !lost || began.elapsed() > PERSISTENCE {
            return answer;
        }
        sleep(PAUSE).await;
    }
}

/// Downloads a picture of an order and decodes it.
pub(super) async fn check_picture(client: &Client, notes: &Notes, url: &str, order: &Order) {
    let wrong = match download(client, url).await {
        Ok(answer) => examine(order, &answer),
        Err(e) => Some(e),
    };
    count(&notes.counts.downloads);
    if let Some(wrong) = wrong {
        notes.violation(format!("picture {url} {wrong}"));
    }
}

const BOUNDARY: &str = "tollgate-soak-boundary";

/// A small PNG unlike any other.
fn picture(dice: &mut Dice) -> Bytes {
    let side = 64 + u32::try_from(dice.below(200)).unwrap_or(0);
    let salt = dice.next();
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
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"soak.png\"\r\ncontent-type: image/png\r\n\r\n"
    );
    let tail = format!("\r\n--{BOUNDARY}--\r\n");
    [head.as_bytes(), file, tail.as_bytes()].concat().into()
}
