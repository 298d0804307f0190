"""What the scripts of all SDKs share: the gateway under test, its models, images, a runner.

A script's cases are functions marked `@once` or `@each_model`. The last user text of a case tells the fake providers
what to do (`call tool NAME twice`, `think`, `[[fake:NAME]]`) and, in directives, the sandbox (`[[sandbox:NAME]]`).
"""

import base64
import json
import os
import struct
import sys
import threading
import time
import traceback
import urllib.request
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_site = json.loads(os.environ["TOLLGATE_SDK_SITE"])
URL = _site["url"]
KEY = _site["key"]  # of a user with a balance
EMPTY_KEY = _site["empty_key"]  # of a user without a balance
LIMITED_KEY = _site["limited_key"]  # limited to one request a minute
CREDIT = _site["credit"]  # the initial balance of the user


@dataclass(frozen=True)
class Model:
    """A model of gateway.toml."""

    id: str
    thinks: bool = True  # counts thinking tokens if thinking is requested
    shows: bool = True  # also shows its thoughts

    @property
    def is_sandbox(self):
        return self.id == "sdk-sandbox"

    def __str__(self):
        return self.id.removeprefix("sdk-")


SANDBOX = Model("sdk-sandbox")
MODELS = [
    SANDBOX,
    Model("sdk-openai-chat", thinks=False, shows=False),
    Model("sdk-deepseek"),
    Model("sdk-openai-responses"),
    Model("sdk-anthropic"),
    Model("sdk-anthropic-next"),
    Model("sdk-gemini"),
    Model("sdk-gemini-next"),
]

# The values with which rejections are tested: a wrong key, an unknown model and others.
WRONG_KEY = "sk-" + "0" * 40
UNKNOWN = "no-such-model"
FAIL = "hello [[sandbox:fail]]"
TOOLS = "call tool get_weather twice [[sandbox:tool=get_weather]][[sandbox:tool=get_weather]]"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def say(text):
    """A message to which every model responds with `echo: TEXT…`: the fakes do so for any message."""
    return f"{text}[[sandbox:say=echo: {text}]]"


def breaks(model):
    """A message whose response breaks off in the middle of the stream."""
    return "one two three four five six seven " + ("[[sandbox:cut=2]]" if model.is_sandbox else "[[fake:error-event]]")


def endless(model):
    """A message whose response is longer than any client reads."""
    return "go on " + ("[[sandbox:words=100000]]" if model.is_sandbox else "[[fake:endless]]")


def endless_cap(model):
    """The limit of that response. After the client leaves, the gateway reads a stream with hidden reasoning until the hold is used up: a low limit
    shortens that."""
    return 100_000 if model.is_sandbox else 300


def check_echo(text, expected="hello"):
    assert text.startswith(f"echo: {expected}"), text


def check_calls(model, calls):
    """Two calls of get_weather: `calls` are their ids, names and arguments."""
    assert len(calls) == 2, calls
    assert calls[0][0] != calls[1][0] and all(id for id, _, _ in calls), calls
    for _, name, arguments in calls:
        assert name == "get_weather", calls
        # The sandbox calls tools without arguments.
        assert arguments == {} if model.is_sandbox else arguments["city"].startswith("city"), calls
    assert model.is_sandbox or calls[0][2] != calls[1][2], calls


def check_image(model, text):
    """Whether the response shows that an image arrived, as bytes or as a link."""
    known = ["image"] if model.is_sandbox else ["[image/png", IMAGE_URL]
    assert any(word in text for word in known), text


def sent_back(item):
    """A part of a reply in the form that a request accepts: without the members that the SDK's helpers added."""
    if isinstance(item, list):
        return [sent_back(one) for one in item]
    if not isinstance(item, dict):
        return item
    own = ["index", "parsed", "parsed_arguments"]
    return {name: sent_back(value) for name, value in item.items() if name not in own}


# Images.


def _png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = 16
    rows = (b"\0" + b"\xd0\x40\x20" * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


IMAGE = _png()
IMAGE_BASE64 = base64.b64encode(IMAGE).decode()


class _Images(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "image/png")
        self.send_header("content-length", str(len(IMAGE)))
        self.end_headers()
        self.wfile.write(IMAGE)

    def log_message(self, *_):
        pass


_images = ThreadingHTTPServer(("127.0.0.1", 0), _Images)
threading.Thread(target=_images.serve_forever, daemon=True).start()
IMAGE_URL = f"http://127.0.0.1:{_images.server_port}/image.png"


# Money.


def balance():
    """The remaining amount of the user's balance, and the charged amount."""
    request = urllib.request.Request(f"{URL}/v1/user/balance", headers={"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request) as response:
        record = json.load(response)
    return record["remain_balance"], record["used_balance"]


def check_abort(begin_and_abort, max_charged):
    """A response that the client aborts is settled: something is charged, less than `max_charged`, and nothing stays held."""
    remain, used = balance()
    begin_and_abort()
    until = time.monotonic() + 60
    while True:
        now_remain, now_used = balance()
        held = (remain + used) - (now_remain + now_used)
        if now_used > used and abs(held) < 1e-6:
            break
        assert time.monotonic() < until, f"not settled: {held} is held, {now_used - used} charged"
        time.sleep(0.02)
    assert now_used - used < max_charged, f"{now_used - used} charged for a response that the client aborted"


def raises(kind, run):
    """Checks that `run` raises an exception of this class or a subclass; returns it."""
    try:
        got = run()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}: {got!r}")


def check_balance():
    """Nothing stays held, and the remaining and the charged amount add up to the initial balance."""
    until = time.monotonic() + 60
    while abs(sum(balance()) - CREDIT) > 1e-6:
        assert time.monotonic() < until, f"{balance()} is not {CREDIT}"
        time.sleep(0.02)


# The runner.

_cases = []


def once(run):
    _cases.append((run.__name__, run))
    return run


def each_model(run):
    """Registers a case for every model."""
    for model in MODELS:
        _cases.append((f"{run.__name__}[{model}]", lambda model=model: run(model)))
    return run


def main(package):
    """Runs the cases whose names contain one of the arguments, or all cases."""
    chosen = [case for case in _cases if len(sys.argv) < 2 or any(word in case[0] for word in sys.argv[1:])]
    failed = 0
    for name, run in [*chosen, ("balance", check_balance)]:
        try:
            run()
        except Exception as e:
            failed += 1
            frames = [f for f in traceback.extract_tb(e.__traceback__) if os.path.dirname(__file__) in f.filename]
            print(f"FAILED {package} {name}: {type(e).__name__}: {str(e)[:1500]}")
            print("".join(traceback.format_list(frames[1:])), end="")
    print(f"{package}: {len(chosen) + 1 - failed} of {len(chosen) + 1} cases passed", flush=True)
    # Exits without waiting for connections that the SDKs keep open.
    os._exit(1 if failed or not chosen else 0)
