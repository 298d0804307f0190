"""The openai SDK on images, videos and speech, as far as the shapes allow: all of them are tasks here."""

import io
import json
import time

import openai
from common import *

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)


def await_ended(task_id):
    """The record of a task, once it has ended."""
    for _ in range(1200):
        body = client.get(f"/tasks/{task_id}", cast_to=object)
        record = body.get("data", body)
        if record["status"] in ("completed", "failed"):
            return record
        time.sleep(0.05)
    raise AssertionError(f"{task_id} does not end")


def fetch(url):
    with urllib.request.urlopen(url) as reply:
        return reply.read()


@once
def images():
    receipt = client.images.generate(model="gpt-image-2-official", prompt="a harbour", size="1024x1024", n=1)
    assert receipt.data[0].status == "submitted", receipt
    record = await_ended(receipt.data[0].task_id)
    assert record["status"] == "completed" and record["cost"] == 0.04, record
    assert fetch(record["result"]["images"][0]["url"][0]).startswith(b"\x89PNG"), record


@once
def videos():
    video = client.videos.create(model="sora-2", prompt="waves", seconds="8", size="720x1280")
    assert video.id.startswith("task_") and video.status == "queued" and video.seconds == "8", video
    video = client.videos.poll(video.id, poll_interval_ms=50)
    assert video.status == "completed" and video.progress == 100 and video.size == "720x1280", video
    content = client.videos.download_content(video.id).read()
    assert content[4:8] == b"ftyp" and b"moov" in content[:200], content[:32]
    assert fetch(video.metadata["url"]) == content


@once
def videos_from_an_image():
    file = ("reference.png", io.BytesIO(IMAGE), "image/png")
    video = client.videos.create(model="sora-2", prompt="it moves", seconds="8", input_reference=file)
    assert await_ended(video.id)["status"] == "completed", video


@once
def videos_that_are_rejected():
    try:
        client.videos.create(model="sora-2", prompt="waves", seconds="4")
    except openai.BadRequestError as error:
        assert "seconds" in str(error), error
    else:
        raise AssertionError("4 seconds are not rejected")


@once
def speech():
    reply = client.audio.speech.create(model="native-v3", input="Good morning.", voice="alloy")
    receipt = json.loads(reply.read())
    assert receipt["status"] == "queued" and receipt["id"] == receipt["task_id"], receipt
    record = await_ended(receipt["id"])
    assert record["status"] == "completed", record
    assert fetch(record["metadata"]["url"])[:4] == b"RIFF", record


if __name__ == "__main__":
    main(f"openai {openai.__version__} media")
