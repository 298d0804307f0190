"""The openai SDK on chat completions."""

import asyncio
import json

import openai
from common import *
from pydantic import BaseModel

BASE = f"{URL}/openai/v1"
client = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": WEATHER, "strict": True},
}


class Description(BaseModel):
    name: str
    tags: list[str]
    count: int


def user(text):
    return {"role": "user", "content": text}


def check_usage(usage):
    assert usage.prompt_tokens > 0 and usage.completion_tokens > 0, usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens, usage


@once
def models():
    ids = [model.id for model in client.models.list()]
    assert all(model.id in ids for model in MODELS), ids
    one = client.models.retrieve(SANDBOX.id)
    assert one.id == SANDBOX.id and one.object == "model" and one.created > 0, one


@each_model
def plain(model):
    reply = client.chat.completions.create(model=model.id, messages=[user(say("hello"))])
    check_echo(reply.choices[0].message.content)
    assert reply.choices[0].finish_reason == "stop" and reply.choices[0].message.role == "assistant", reply
    assert reply.model == model.id and reply.object == "chat.completion" and reply.id, reply
    assert reply._request_id, reply
    check_usage(reply.usage)


@each_model
def conversation(model):
    messages = [
        {"role": "system", "content": "You are brief."},
        user("first"),
        {"role": "assistant", "content": "echo: first"},
        {"role": "developer", "content": "Be briefer."},
        user(say("second")),
    ]
    reply = client.chat.completions.create(model=model.id, messages=messages, max_completion_tokens=500)
    # Gemini does not support instructions in the middle: the gateway puts them before the next message's text.
    assert "second" in reply.choices[0].message.content and "first" not in reply.choices[0].message.content, reply


@each_model
def length(model):
    text = "one two three four five six seven eight nine ten [[sandbox:words=50]]"
    reply = client.chat.completions.create(model=model.id, messages=[user(text)], max_completion_tokens=3)
    assert reply.choices[0].finish_reason == "length", reply


@each_model
def stream_helper(model):
    with client.chat.completions.stream(
        model=model.id, messages=[user(say("hello"))], stream_options={"include_usage": True}
    ) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    check_echo(final.choices[0].message.content)
    assert "".join(deltas) == final.choices[0].message.content and len(deltas) > 1, deltas
    assert final.choices[0].finish_reason == "stop" and final.model == model.id, final
    check_usage(final.usage)


@each_model
def stream_raw(model):
    chunks = list(client.chat.completions.create(model=model.id, messages=[user(say("hello"))], stream=True))
    assert all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks), chunks
    assert len({chunk.id for chunk in chunks}) == 1 and chunks[0].choices[0].delta.role == "assistant", chunks
    assert chunks[-1].choices[0].finish_reason == "stop", chunks
    check_echo("".join(chunk.choices[0].delta.content or "" for chunk in chunks))


@each_model
def tools(model):
    messages = [user(TOOLS)]
    with client.chat.completions.stream(model=model.id, messages=messages, tools=[TOOL]) as stream:
        final = stream.get_final_completion()
    choice = final.choices[0]
    assert choice.finish_reason == "tool_calls", final
    calls = choice.message.tool_calls
    check_calls(model, [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls])
    messages.append(sent_back(choice.message.to_dict()))
    messages += [{"role": "tool", "tool_call_id": c.id, "content": f"sunny {n}"} for n, c in enumerate(calls)]
    reply = client.chat.completions.create(model=model.id, messages=messages, tools=[TOOL])
    assert "sunny 1" in reply.choices[0].message.content and reply.choices[0].finish_reason == "stop", reply


@each_model
def tools_non_streaming(model):
    """A reply that is not streamed, with one forced tool."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    if str(model) == "deepseek":
        choice = "auto"
    reply = client.chat.completions.create(
        model=model.id, messages=[user("call tool get_weather")], tools=[TOOL], tool_choice=choice
    )
    calls = reply.choices[0].message.tool_calls
    assert len(calls) == 1 and "city" in json.loads(calls[0].function.arguments), reply


@each_model
def images(model):
    for url in [IMAGE_URL, f"data:image/png;base64,{IMAGE_BASE64}"]:
        content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
        reply = client.chat.completions.create(model=model.id, messages=[{"role": "user", "content": content}])
        check_image(model, reply.choices[0].message.content)


@each_model
def structured(model):
    arguments = dict(model=model.id, messages=[user("describe it")], response_format=Description)
    reply = client.chat.completions.parse(**arguments)
    assert isinstance(reply.choices[0].message.parsed, Description), reply
    with client.chat.completions.stream(**arguments) as stream:
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Description)


@each_model
def thinking(model):
    if not model.thinks:
        return
    arguments = dict(model=model.id, messages=[user("think about it")], reasoning_effort="high")
    reply = client.chat.completions.create(**arguments)
    check_thoughts(model, reply.choices[0].message, reply.usage)
    stream = client.chat.completions.stream(**arguments, stream_options={"include_usage": True})
    with stream as events:
        final = events.get_final_completion()
    assert final.choices[0].message.content, final
    assert final.usage.completion_tokens_details.reasoning_tokens > 0, final


def check_thoughts(model, message, usage):
    assert message.content, message
    assert usage.completion_tokens_details.reasoning_tokens > 0, usage
    # A model on the responses format shows its thoughts only if a summary is requested.
    if model.shows and str(model) != "openai-responses":
        assert message.reasoning_content and message.reasoning_content not in message.content, message


@each_model
def breaks_off(model):
    def read():
        with client.chat.completions.stream(model=model.id, messages=[user(breaks(model))]) as stream:
            return stream.get_final_completion()

    raises(openai.APIError, read)


@each_model
def abort(model):
    def run():
        arguments = dict(model=model.id, messages=[user(endless(model))], max_completion_tokens=endless_cap(model))
        with client.chat.completions.create(**arguments, stream=True) as stream:
            for _, chunk in zip(range(5), stream):
                pass

    check_abort(run, max_charged=0.5)


@once
def errors():
    def send(text="hello", model=SANDBOX.id, client=client, **more):
        return lambda: client.chat.completions.create(model=model, messages=[user(text)], **more)

    def with_key(key):
        return client.with_options(api_key=key)

    e = raises(openai.AuthenticationError, send(client=with_key(WRONG_KEY)))
    assert e.status_code == 401 and e.code == "invalid_api_key", e
    e = raises(openai.AuthenticationError, lambda: with_key(WRONG_KEY).models.list())
    e = raises(openai.NotFoundError, send(model=UNKNOWN))
    assert UNKNOWN in e.message and e.code == "model_not_found", e
    raises(openai.NotFoundError, lambda: client.models.retrieve(UNKNOWN))
    e = raises(openai.BadRequestError, send(temperature="hot"))
    assert e.param == "temperature" and e.type == "invalid_request_error", e
    raises(openai.BadRequestError, lambda: client.chat.completions.create(model=SANDBOX.id, messages=[]))
    e = raises(openai.APIStatusError, send(client=with_key(EMPTY_KEY)))
    assert e.status_code == 402 and e.code == "insufficient_quota", e
    e = raises(openai.InternalServerError, send(text=FAIL))
    assert e.status_code == 502 and "directive says that it fails" in e.message, e
    raises(openai.InternalServerError, send(text=FAIL, stream=True))
    send(client=with_key(LIMITED_KEY))()
    e = raises(openai.RateLimitError, send(client=with_key(LIMITED_KEY)))
    assert int(e.response.headers["retry-after"]) > 0, e
    e = raises(openai.NotFoundError, lambda: client.embeddings.create(model=SANDBOX.id, input="x"))
    assert e.body["message"], e


@once
def asynchronous():
    async def run():
        async with openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0) as client:
            arguments = dict(model=SANDBOX.id, messages=[user(say("hello"))])
            check_echo((await client.chat.completions.create(**arguments)).choices[0].message.content)
            async with client.chat.completions.stream(**arguments) as stream:
                check_echo((await stream.get_final_completion()).choices[0].message.content)

    asyncio.run(run())


@once
def bare_v1():
    """Clients that accept only a base URL that ends in /v1, below the root."""
    root = client.with_options(base_url=f"{URL}/v1")
    reply = root.chat.completions.create(model=SANDBOX.id, messages=[user(say("hello"))])
    check_echo(reply.choices[0].message.content)


if __name__ == "__main__":
    main(f"openai {openai.__version__} chat")
