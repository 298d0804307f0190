//! DashScope: what it is sent, and what is made of its answers (help.aliyun.com, Model Studio's error codes).

use serde_json::{Value, json};
use tollgate_core::TaskKind::Image;
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_upstream::{Channel, Polled, UpstreamErrorKind};

use crate::desk::{
    Desk, Desktop, KEY, Pictures, channel, check, failure, fake, image_job, provider_job_id, raw,
    refused, reply, rules_broken, says_all, with_header,
};

fn open(desk: &Desk) -> Desktop {
    Desktop::open(at(desk))
}

fn at(desk: &Desk) -> Channel {
    let base = desk.url("/api/v1");
    channel("dashscope", base, "wan2.7-image-pro", "wan2.7-image-pro")
}

fn pending() -> crate::desk::Reply {
    reply(
        200,
        json!({ "request_id": "r-1", "output": { "task_id": "t-1", "task_status": "PENDING" } }),
    )
}

#[tokio::test]
async fn a_submission_is_asynchronous_and_complete() {
    let desk = Desk::saying([pending()]).await;
    let mut channel = at(&desk);
    channel.options = json!({ "workspace": "ws-1" }).as_object().cloned().unwrap();
    let open = Desktop::open(channel);
    let job = image_job(json!({
        "n": 2, "seed": 7, "watermark": false,
        "size": { "pixels": { "width": 2560, "height": 1440 }, "ratio": "16:9", "tier": "2K" },
        "extra": { "thinking_mode": true, "enable_sequential": false },
    }));
    assert_eq!(provider_job_id(open.image(&job, &[], None).await), "t-1");
    let asked = &desk.asked()[0];
    assert_eq!(
        asked.line,
        "POST /api/v1/services/aigc/image-generation/generation"
    );
    for (name, value) in [
        ("x-dashscope-async", "enable"),
        ("x-dashscope-workspace", "ws-1"),
        ("content-type", "application/json"),
        ("authorization", &format!("Bearer {KEY}")),
    ] {
        assert_eq!(asked.header(name), Some(value), "{name}");
    }
    let expected = json!({
        "model": "wan2.7-image-pro",
        "input": { "messages": [{ "role": "user", "content": [{ "text": "a red boat" }] }] },
        "parameters": { "size": "2560*1440", "n": 2, "seed": 7, "watermark": false,
                        "thinking_mode": true, "enable_sequential": false },
    });
    assert_eq!(asked.json(), expected);
}

#[tokio::test]
async fn references_come_before_the_text_in_their_order() {
    let desk = Desk::saying([pending()]).await;
    let pictures = Pictures::new();
    let files = [
        pictures.file("image_urls[0]", b"one"),
        pictures.file("image_urls[1]", b"second"),
    ];
    let reference =
        |n: usize| json!({ "field": format!("image_urls[{n}]"), "source": { "stored": "x" } });
    let mut job = image_job(json!({
        "prompt": "", "references": [reference(0), reference(1)],
        "size": { "pixels": { "width": 2048, "height": 1536 }, "ratio": "auto", "tier": "2K" },
        "extra": { "bbox_list": [[], [[1, 2, 3, 4]]] },
    }));
    open(&desk).image(&job, &files, None).await.unwrap();
    job.prompt = "blue".to_owned();
    open(&desk).image(&job, &files, None).await.unwrap();
    let sent: Vec<Value> = desk.asked().iter().map(|asked| asked.json()).collect();
    let images = [
        json!({ "image": "data:image/png;base64,b25l" }),
        json!({ "image": "data:image/png;base64,c2Vjb25k" }),
    ];
    let no_text = json!({ "text": "Make a picture of what these pictures show." });
    assert_eq!(
        sent[0]["input"]["messages"][0]["content"],
        json!([images[0], images[1], no_text])
    );
    assert_eq!(
        sent[1]["input"]["messages"][0]["content"],
        json!([images[0], images[1], { "text": "blue" }])
    );
    let expected = json!({ "size": "2K", "n": 1, "bbox_list": [[], [[1, 2, 3, 4]]] });
    assert_eq!(sent[1]["parameters"], expected);
    let mask = pictures.file("mask_url", b"m");
    let error = open(&desk).image(&job, &files, Some(&mask)).await;
    assert_eq!(
        error.unwrap_err().kind,
        UpstreamErrorKind::UnsupportedByChannel
    );
    assert_eq!(desk.asked().len(), 2);
}

#[tokio::test]
async fn a_negative_prompt_that_is_refused_is_left_out() {
    let invalid = || {
        reply(
            400,
            json!({ "code": "InvalidParameter", "message": "no such" }),
        )
    };
    let desk = Desk::saying([invalid(), pending()]).await;
    let job = image_job(json!({ "family": "wan2.7", "negative_prompt": "fog" }));
    let desktop = open(&desk);
    assert_eq!(provider_job_id(desktop.image(&job, &[], None).await), "t-1");
    let asked = desk.asked();
    assert_eq!(asked[0].json()["parameters"]["negative_prompt"], "fog");
    assert_eq!(asked[1].json()["parameters"].get("negative_prompt"), None);
    let adjusted = desktop.shelf.record_adjustment();
    assert_eq!(adjusted, [r#"negative_prompt: "fog" → null"#]);
    // Without one to leave out the refusal stands.
    let desk = Desk::saying([invalid()]).await;
    let error = open(&desk).image(&image_job(json!({})), &[], None).await;
    assert_eq!(error.unwrap_err().kind, UpstreamErrorKind::Rejected);
    assert_eq!(desk.asked().len(), 1);
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    use UpstreamErrorKind::*;
    for (status, code, expected) in [
        (400, "InvalidParameter", Rejected),
        (400, "BadRequest.EmptyInput", Rejected),
        (400, "InvalidURL", Rejected),
        (400, "DataInspectionFailed", Moderated),
        (400, "data_inspection_failed", Moderated),
        (400, "Arrearage", QuotaExhausted),
        (401, "InvalidApiKey", KeyRejected),
        (403, "AccessDenied", ModelNotFound),
        (403, "AccessDenied.Unpurchased", ModelNotFound),
        (403, "Model.AccessDenied", ModelNotFound),
        (404, "ModelNotFound", ModelNotFound),
        (408, "RequestTimeOut", Unavailable),
        (413, "BadRequest.TooLarge", Rejected),
        (429, "Throttling", RateLimited),
        (429, "Throttling.RateQuota", RateLimited),
        (429, "Throttling.AllocationQuota", RateLimited),
        (429, "insufficient_quota", QuotaExhausted),
        (500, "InternalError", Unavailable),
        (500, "InternalError.Algo", Unavailable),
        (503, "ModelUnavailable", Unavailable),
        (504, "ServiceUnavailable", Unavailable),
    ] {
        let said = json!({ "request_id": "r", "code": code, "message": "in words" });
        let desk = Desk::saying([with_header(reply(status, said), "retry-after", "3")]).await;
        let error = open(&desk).image(&image_job(json!({})), &[], None).await;
        let error = error.unwrap_err();
        assert_eq!(
            (error.kind, error.status),
            (expected, Some(status)),
            "{code}"
        );
        assert_eq!(error.message, "in words");
        assert_eq!(error.retry_after.map(|t| t.as_secs()), Some(3));
    }
    for (answer, expected) in [
        (raw(200, "text/html", "<html></html>"), Unavailable),
        (raw(502, "text/html", "<html></html>"), Unavailable),
        (
            reply(200, json!({ "code": "Throttling", "message": "x" })),
            RateLimited,
        ),
        // Sent, and no answer: it may have been taken.
        (None, OutcomeUnknown),
    ] {
        let desk = Desk::saying([answer]).await;
        let error = open(&desk).image(&image_job(json!({})), &[], None).await;
        assert_eq!(error.unwrap_err().kind, expected);
        assert_eq!(desk.asked().len(), 1);
    }
}

fn state(output: Value) -> crate::desk::Reply {
    reply(200, json!({ "request_id": "r", "output": output }))
}

#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    let picture =
        |name: &str| json!({ "image": format!("https://oss.example/{name}.png"), "type": "image" });
    let choice = |content: Value| json!({ "finish_reason": "stop", "message": { "role": "assistant", "content": content } });
    let desk = Desk::saying([
        state(json!({ "task_id": "t/1", "task_status": "PENDING" })),
        state(json!({ "task_id": "t/1", "task_status": "RUNNING" })),
        state(json!({ "task_id": "t/1", "task_status": "SUSPENDED" })),
        state(
            json!({ "task_id": "t/1", "task_status": "SUCCEEDED", "finished": true,
            "choices": [choice(json!([picture("a"), picture("b")])), choice(json!([picture("c")]))] }),
        ),
    ])
    .await;
    let open = open(&desk);
    for _ in 0..3 {
        let polled = open.poll("t/1", Image, 4).await;
        assert!(matches!(polled, Ok(Polled::Pending(None))), "{polled:?}");
    }
    assert_eq!(refused(open.poll("t/1", Image, 4).await), []);
    let expected = ["a", "b", "c"].map(|name| format!("https://oss.example/{name}.png"));
    assert_eq!(open.shelf.links(), expected);
    let asked = &desk.asked()[0];
    assert_eq!(asked.line, "GET /api/v1/tasks/t%2F1");
    assert_eq!(
        asked.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
}

#[tokio::test]
async fn tasks_end_badly_in_many_ways() {
    use UpstreamErrorKind::*;
    let failed = |code: &str, message: &str| json!({ "task_status": "FAILED", "code": code, "message": message });
    for (output, expected, words) in [
        (
            failed("DataInspectionFailed", "not allowed"),
            Moderated,
            "not allowed",
        ),
        (failed("InternalError.Algo", "oops"), Unavailable, "oops"),
        (failed("InvalidParameter", "bad size"), Rejected, "bad size"),
        (
            failed("SomethingNew", ""),
            Failed,
            "the upstream's task failed without a reason",
        ),
        (
            json!({ "task_status": "CANCELED" }),
            Failed,
            "the upstream's task was cancelled",
        ),
        (
            json!({ "task_status": "UNKNOWN" }),
            Failed,
            "the upstream does not know the task any more",
        ),
        (
            json!({ "task_status": "SUCCEEDED", "choices": [] }),
            Failed,
            "the upstream's task ended without a result",
        ),
    ] {
        let desk = Desk::saying([state(output)]).await;
        let error = failure(open(&desk).poll("t-1", Image, 1).await);
        assert_eq!((error.kind, error.message.as_str()), (expected, words));
    }
    let gone = reply(
        404,
        json!({ "code": "NotFound", "message": "no such task" }),
    );
    let desk = Desk::saying([gone]).await;
    assert_eq!(
        failure(open(&desk).poll("t-1", Image, 1).await).kind,
        Failed
    );
}

#[tokio::test]
async fn a_poll_without_an_answer_is_asked_again() {
    use UpstreamErrorKind::*;
    for (answer, expected) in [
        (None, Unavailable),
        (raw(502, "text/html", "<html>"), Unavailable),
        (raw(200, "text/html", "<html>"), Unavailable),
        (
            reply(429, json!({ "code": "Throttling", "message": "x" })),
            RateLimited,
        ),
        (
            reply(401, json!({ "code": "InvalidApiKey", "message": "x" })),
            KeyRejected,
        ),
    ] {
        let desk = Desk::saying([answer]).await;
        let error = open(&desk).poll("t-1", Image, 1).await.unwrap_err();
        assert_eq!(error.kind, expected);
    }
    // A picture that cannot be fetched now is there later, and so are the others.
    let done = |links: &[&str]| {
        let items: Vec<Value> = links.iter().map(|link| json!({ "image": link })).collect();
        state(
            json!({ "task_status": "SUCCEEDED", "choices": [{ "message": { "content": items } }] }),
        )
    };
    for links in [&["https://x/gone"][..], &["https://x/gone", "https://x/b"]] {
        let desk = Desk::saying([done(links)]).await;
        let open = open(&desk);
        let error = open.poll("t-1", Image, 2).await.unwrap_err();
        assert_eq!(error.kind, Unavailable);
        assert_eq!(open.shelf.links().len(), links.len() - 1);
    }
}

#[tokio::test]
async fn what_waits_can_be_cancelled() {
    let unsupported = json!({ "code": "UnsupportedOperation", "message": "it runs" });
    let denied = json!({ "code": "InvalidApiKey", "message": "x" });
    let desk = Desk::saying([
        reply(200, json!({ "request_id": "r" })),
        reply(400, unsupported),
        reply(401, denied),
    ])
    .await;
    let open = open(&desk);
    open.cancel("t-1", Image).await.unwrap();
    open.cancel("t-1", Image).await.unwrap();
    let error = open.cancel("t-1", Image).await.unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::KeyRejected);
    assert_eq!(desk.lines()[0], "POST /api/v1/tasks/t-1/cancel");
}

#[test]
fn it_says_what_becomes_of_every_field() {
    says_all("dashscope");
}

#[test]
fn its_options_are_checked() {
    let with = |options: Value| {
        let options = options.as_object().cloned().unwrap();
        check(&Channel {
            options,
            ..Channel::new("main", "dashscope")
        })
    };
    assert_eq!(with(json!({ "workspace": "ws-1" })), Ok(()));
    for (options, words) in [
        (json!({ "workspace": 5 }), "`workspace` must be the id"),
        (json!({ "workspace": "a\nb" }), "`workspace` must be the id"),
        (json!({ "region": "x" }), "unknown option \"region\""),
    ] {
        let error = with(options).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

async fn faked(options: Options) -> (Fake, Desktop) {
    let fake = fake(Provider::DashScope, options).await;
    let name = "wan2.7-image-pro";
    let opened = Desktop::open(channel("dashscope", fake.base_url(), name, name));
    (fake, opened)
}

#[tokio::test]
async fn a_fake_takes_every_kind_of_job() {
    let (fake, open) = faked(Options {
        polls: 3,
        ..Options::default()
    })
    .await;
    let pictures = Pictures::new();
    let file = [pictures.real("image_urls[0]")];
    let reference = json!([{ "field": "image_urls[0]", "source": { "stored": "x" } }]);
    let size = |ratio: Option<&str>, w: u32, h: u32| json!({ "pixels": { "width": w, "height": h }, "ratio": ratio, "tier": "2K" });
    for (given, files, made) in [
        (
            json!({ "size": size(Some("16:9"), 2560, 1440) }),
            &[][..],
            1,
        ),
        (
            json!({ "size": size(Some("1:1"), 4096, 4096), "n": 4, "negative_prompt": "fog" }),
            &[],
            4,
        ),
        (
            json!({ "size": size(None, 1024, 768), "n": 12, "extra": { "enable_sequential": true } }),
            &[],
            12,
        ),
        (
            json!({ "prompt": "", "references": reference, "size": size(Some("auto"), 2048, 1536),
                "extra": { "bbox_list": [[[1, 2, 30, 40]]] } }),
            &file[..],
            1,
        ),
    ] {
        let provider_job_id =
            provider_job_id(open.image(&image_job(given.clone()), files, None).await);
        let before = open.shelf.links().len();
        assert_eq!(
            refused(open.end(&provider_job_id, Image, 1).await),
            [],
            "{given}"
        );
        assert_eq!(open.shelf.links().len() - before, made, "{given}");
    }
    assert_eq!(rules_broken(&fake), [] as [&str; 0]);
}

#[tokio::test]
async fn fewer_images_than_requested_may_be_delivered() {
    let (_fake, open) = faked(Options::default()).await;
    let job = image_job(json!({ "n": 4, "prompt": "[[fake:partial=2]]" }));
    let four = provider_job_id(open.image(&job, &[], None).await);
    open.end(&four, Image, 4).await.unwrap();
    assert_eq!(open.shelf.links().len(), 2);
}
