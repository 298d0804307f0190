"""The anthropic SDK on messages."""

import asyncio

import anthropic
from common import *
from pydantic import BaseModel

BASE = f"{URL}/anthropic"
IS_OLD = int(anthropic.__version__.split(".")[0]) < 2
client = anthropic.Anthropic(base_url=BASE, api_key=KEY, max_retries=0)
TOOL = {"name": "get_weather", "description": "The weather", "input_schema": WEATHER}


class Description(BaseModel):
    name: str
    tags: list[str]
    count: int


def request(text, model=SANDBOX, **more):
    return dict(model=model.id, max_tokens=4000, messages=[{"role": "user", "content": text}], **more)


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def check_message(message, model, reason="end_turn"):
    assert message.stop_reason == reason and message.role == "assistant" and message.type == "message", message
    assert message.model == model.id and message.id, message
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0, message


@once
def models():
    ids = [model.id for model in client.models.list()]
    assert all(model.id in ids for model in MODELS), ids
    one = client.models.retrieve(SANDBOX.id)
    assert one.id == SANDBOX.id and one.type == "model" and one.created_at.year > 2000, one


@each_model
def plain(model):
    message = client.messages.create(**request(say("hello"), model))
    check_echo(text_of(message))
    check_message(message, model)
    assert message._request_id, message


@each_model
def conversation(model):
    messages = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [{"type": "text", "text": "echo: first"}]},
        {"role": "user", "content": [{"type": "text", "text": say("second"), "cache_control": {"type": "ephemeral"}}]},
    ]
    for system in ["You are brief.", [{"type": "text", "text": "You are brief."}]]:
        reply = client.messages.create(model=model.id, max_tokens=500, system=system, messages=messages)
        check_echo(text_of(reply), "second")


@each_model
def length(model):
    text = "one two three four five six seven eight nine ten " * 3 + "[[sandbox:words=50]]"
    message = client.messages.create(**{**request(text, model), "max_tokens": 16})
    check_message(message, model, "max_tokens")


@each_model
def stream_helper(model):
    with client.messages.stream(**request(say("hello"), model)) as stream:
        texts = list(stream.text_stream)
        final = stream.get_final_message()
    check_message(final, model)
    check_echo(text_of(final))
    assert "".join(texts) == text_of(final) and len(texts) > 1, texts


@each_model
def stream_raw(model):
    events = list(client.messages.create(**request(say("hello"), model), stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") > 0, kinds
    assert events[0].message.usage.input_tokens >= 0 and events[-2].usage.output_tokens > 0, events


@each_model
def tools(model):
    messages = [{"role": "user", "content": TOOLS}]
    arguments = dict(model=model.id, max_tokens=4000, tools=[TOOL])
    with client.messages.stream(**arguments, messages=messages) as stream:
        final = stream.get_final_message()
    check_message(final, model, "tool_use")
    calls = [block for block in final.content if block.type == "tool_use"]
    check_calls(model, [(c.id, c.name, c.input) for c in calls])
    results = [
        {"type": "tool_result", "tool_use_id": c.id, "content": f"sunny {n}", "is_error": n == 1}
        for n, c in enumerate(calls)
    ]
    messages += [{"role": "assistant", "content": final.content}, {"role": "user", "content": results}]
    reply = client.messages.create(**arguments, messages=messages)
    assert "sunny 1" in text_of(reply), reply
    check_message(reply, model)


@each_model
def tools_non_streaming(model):
    choice = {"type": "auto"} if str(model) == "deepseek" else {"type": "tool", "name": "get_weather"}
    message = client.messages.create(**request("call tool get_weather", model, tools=[TOOL], tool_choice=choice))
    calls = [block for block in message.content if block.type == "tool_use"]
    assert len(calls) == 1 and "city" in calls[0].input, message


@each_model
def images(model):
    sources = [
        {"type": "url", "url": IMAGE_URL},
        {"type": "base64", "media_type": "image/png", "data": IMAGE_BASE64},
    ]
    for source in sources:
        content = [{"type": "image", "source": source}, {"type": "text", "text": "see"}]
        check_image(model, text_of(client.messages.create(**request(content, model))))


@each_model
def structured(model):
    message = client.messages.parse(**request("describe it", model, output_format=Description))
    assert isinstance(message.parsed_output, Description), message
    with client.messages.stream(**request("describe it", model, output_format=Description)) as stream:
        assert isinstance(stream.get_final_message().parsed_output, Description)


@each_model
def thinking(model):
    if not model.thinks:
        return
    thinking = {"type": "enabled", "budget_tokens": 2000}
    if str(model) == "anthropic-next":
        thinking = {"type": "adaptive", "display": "summarized"}
    with client.messages.stream(**request("think about it", model, thinking=thinking)) as stream:
        final = stream.get_final_message()
    for message in [final, client.messages.create(**request("think about it", model, thinking=thinking))]:
        assert text_of(message), message
        thoughts = [block for block in message.content if block.type == "thinking"]
        assert thoughts and thoughts[0].thinking and isinstance(thoughts[0].signature, str), message
        messages = [
            {"role": "user", "content": "think about it"},
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": say("again")},
        ]
        again = client.messages.create(model=model.id, max_tokens=4000, messages=messages, thinking=thinking)
        check_echo(text_of(again), "again")


@each_model
def counting(model):
    arguments = {name: value for name, value in request("one two three", model).items() if name != "max_tokens"}
    before = balance()
    few = client.messages.count_tokens(**arguments).input_tokens
    more = client.messages.count_tokens(**arguments, system="You are brief.", tools=[TOOL]).input_tokens
    assert 0 < few < more, (few, more)
    assert balance() == before


@each_model
def breaks_off(model):
    def read():
        with client.messages.stream(**request(breaks(model), model)) as stream:
            return stream.get_final_message()

    raises(anthropic.APIStatusError, read)


@each_model
def abort(model):
    def run():
        with client.messages.create(**{**request(endless(model), model), "max_tokens": min(20_000, endless_cap(model))}, stream=True) as stream:
            for _, event in zip(range(8), stream):
                pass

    check_abort(run, max_charged=0.1)


@once
def errors():
    def send(text="hello", key=KEY, **more):
        return lambda: client.with_options(api_key=key).messages.create(**{**request(text), **more})

    e = raises(anthropic.AuthenticationError, send(key=WRONG_KEY))
    assert e.body["error"]["type"] == "authentication_error", e.body
    raises(anthropic.AuthenticationError, lambda: client.with_options(api_key=WRONG_KEY).models.list())
    e = raises(anthropic.NotFoundError, send(model=UNKNOWN))
    assert UNKNOWN in e.body["error"]["message"] and e.body["error"]["type"] == "not_found_error", e.body
    raises(anthropic.NotFoundError, lambda: client.models.retrieve(UNKNOWN))
    e = raises(anthropic.BadRequestError, send(extra_body={"temperature": "hot"}))
    assert e.body["type"] == "error" and "temperature" in e.body["error"]["message"], e.body
    kind = anthropic.APIStatusError if IS_OLD else anthropic.PaymentRequiredError
    e = raises(kind, send(key=EMPTY_KEY))
    assert e.status_code == 402 and e.body["error"]["type"] == "billing_error", e.body
    e = raises(anthropic.APIStatusError, send(text=FAIL))
    assert e.status_code == 502 and e.body["error"]["type"] == "api_error", e.body
    send(key=LIMITED_KEY)()
    e = raises(anthropic.RateLimitError, send(key=LIMITED_KEY))
    assert e.body["error"]["type"] == "rate_limit_error" and int(e.response.headers["retry-after"]) > 0, e.body
    raises(anthropic.NotFoundError, lambda: client.messages.batches.list())


@once
def keys_as_tokens():
    """A key given as `auth_token`, which goes out as a bearer token in every version."""
    client = anthropic.Anthropic(base_url=BASE, auth_token=KEY, api_key=None, max_retries=0)
    check_echo(text_of(client.messages.create(**request(say("hello")))))


@once
def beta():
    message = client.beta.messages.create(**request(say("hello")), betas=["context-1m-2025-08-07"])
    check_echo(text_of(message))


@once
def asynchronous():
    async def run():
        async with anthropic.AsyncAnthropic(base_url=BASE, api_key=KEY, max_retries=0) as client:
            check_echo(text_of(await client.messages.create(**request(say("hello")))))
            async with client.messages.stream(**request(say("hello"))) as stream:
                check_echo(text_of(await stream.get_final_message()))

    asyncio.run(run())


if __name__ == "__main__":
    main(f"anthropic {anthropic.__version__} messages")
