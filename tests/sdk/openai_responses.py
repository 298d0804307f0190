"""The openai SDK on responses."""

import asyncio
import json

import openai
from common import *
from pydantic import BaseModel

BASE = f"{URL}/openai/v1"
client = openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
TOOL = {"type": "function", "name": "get_weather", "description": "The weather", "parameters": WEATHER, "strict": True}


class Description(BaseModel):
    name: str
    tags: list[str]
    count: int


def check_usage(usage):
    assert usage.input_tokens > 0 and usage.output_tokens > 0, usage
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens, usage


@each_model
def plain(model):
    reply = client.responses.create(model=model.id, input=say("hello"), instructions="You are brief.", store=False)
    check_echo(reply.output_text)
    assert reply.status == "completed" and reply.model == model.id and reply.object == "response", reply
    assert reply.id and reply._request_id and "message" in [item.type for item in reply.output], reply
    check_usage(reply.usage)


@each_model
def conversation(model):
    items = [
        {"role": "developer", "content": "You are brief."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "echo: first"},
        {"role": "user", "content": [{"type": "input_text", "text": say("second")}]},
    ]
    first = client.responses.create(model=model.id, input=items, max_output_tokens=500, store=False)
    check_echo(first.output_text, "second")
    # The output is sent back unchanged.
    items += [sent_back(item.to_dict()) for item in first.output]
    items += [{"role": "user", "content": say("third")}]
    check_echo(client.responses.create(model=model.id, input=items, store=False).output_text, "third")


@each_model
def length(model):
    text = "one two three four five six seven eight nine ten " * 3 + "[[sandbox:words=50]]"
    reply = client.responses.create(model=model.id, input=text, max_output_tokens=16, store=False)
    assert reply.status == "incomplete" and reply.incomplete_details.reason == "max_output_tokens", reply


@each_model
def stream_helper(model):
    with client.responses.stream(model=model.id, input=say("hello"), store=False) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    check_echo(final.output_text)
    assert "".join(deltas) == final.output_text and len(deltas) > 1, deltas
    assert events[0].type == "response.created" and events[-1].type == "response.completed", events
    assert [event.sequence_number for event in events] == sorted({e.sequence_number for e in events}), events
    assert final.model == model.id, final
    check_usage(final.usage)


@each_model
def stream_raw(model):
    events = list(client.responses.create(model=model.id, input=say("hello"), stream=True, store=False))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
    assert "response.output_text.done" in kinds and "response.output_item.done" in kinds, kinds
    check_echo(events[-1].response.output_text)


@each_model
def tools(model):
    items = [{"role": "user", "content": TOOLS}]
    with client.responses.stream(model=model.id, input=items, tools=[TOOL], store=False) as stream:
        final = stream.get_final_response()
    calls = [item for item in final.output if item.type == "function_call"]
    check_calls(model, [(c.call_id, c.name, json.loads(c.arguments)) for c in calls])
    items += [sent_back(item.to_dict()) for item in final.output]
    items += [
        {"type": "function_call_output", "call_id": c.call_id, "output": f"sunny {n}"} for n, c in enumerate(calls)
    ]
    reply = client.responses.create(model=model.id, input=items, tools=[TOOL], store=False)
    assert "sunny 1" in reply.output_text and reply.status == "completed", reply


@each_model
def tools_non_streaming(model):
    choice = "auto" if str(model) == "deepseek" else {"type": "function", "name": "get_weather"}
    reply = client.responses.create(
        model=model.id, input="call tool get_weather", tools=[TOOL], tool_choice=choice, store=False
    )
    calls = [item for item in reply.output if item.type == "function_call"]
    assert len(calls) == 1 and "city" in json.loads(calls[0].arguments), reply


@each_model
def images(model):
    for url in [IMAGE_URL, f"data:image/png;base64,{IMAGE_BASE64}"]:
        content = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": url, "detail": "auto"}]
        reply = client.responses.create(model=model.id, input=[{"role": "user", "content": content}], store=False)
        check_image(model, reply.output_text)


@each_model
def structured(model):
    arguments = dict(model=model.id, input="describe it", text_format=Description, store=False)
    assert isinstance(client.responses.parse(**arguments).output_parsed, Description)
    with client.responses.stream(**arguments) as stream:
        assert isinstance(stream.get_final_response().output_parsed, Description)


@each_model
def thinking(model):
    if not model.thinks:
        return
    arguments = dict(model=model.id, input="think about it", store=False)
    arguments["reasoning"] = {"effort": "high", "summary": "auto"}
    arguments["include"] = ["reasoning.encrypted_content"]
    reply = client.responses.create(**arguments)
    with client.responses.stream(**arguments) as stream:
        final = stream.get_final_response()
    for reply in [reply, final]:
        assert reply.output_text and reply.usage.output_tokens_details.reasoning_tokens > 0, reply
        thoughts = [item for item in reply.output if item.type == "reasoning"]
        assert thoughts and thoughts[0].summary and thoughts[0].summary[0].text, reply
    items = [{"role": "user", "content": "think about it"}]
    items += [sent_back(item.to_dict()) for item in final.output]
    items.append({"role": "user", "content": say("again")})
    check_echo(client.responses.create(model=model.id, input=items, store=False).output_text, "again")


@each_model
def breaks_off(model):
    """The error is an event; the helper then raises, because there is no complete response."""
    with client.responses.stream(model=model.id, input=breaks(model), store=False) as stream:
        try:
            kinds = [event.type for event in stream]
        except openai.APIError:
            return
        assert kinds[-1] in ("response.failed", "error"), kinds
        raises(RuntimeError, stream.get_final_response)


@each_model
def abort(model):
    def run():
        arguments = dict(model=model.id, input=endless(model), max_output_tokens=endless_cap(model), store=False)
        with client.responses.create(**arguments, stream=True) as stream:
            for _, event in zip(range(8), stream):
                pass

    check_abort(run, max_charged=0.5)


@once
def errors():
    def send(text="hello", model=SANDBOX.id, key=KEY, **more):
        return lambda: client.with_options(api_key=key).responses.create(model=model, input=text, **more)

    raises(openai.AuthenticationError, send(key=WRONG_KEY))
    e = raises(openai.NotFoundError, send(model=UNKNOWN))
    assert UNKNOWN in e.message, e
    e = raises(openai.BadRequestError, send(temperature="hot"))
    assert e.param == "temperature", e
    e = raises(openai.APIStatusError, send(key=EMPTY_KEY))
    assert e.status_code == 402, e
    e = raises(openai.InternalServerError, send(text=FAIL))
    assert e.status_code == 502, e
    raises(openai.BadRequestError, send(model="sdk-anthropic", previous_response_id="resp_of_nobody"))


@once
def asynchronous():
    async def run():
        async with openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0) as client:
            arguments = dict(model=SANDBOX.id, input=say("hello"))
            check_echo((await client.responses.create(**arguments)).output_text)
            async with client.responses.stream(**arguments) as stream:
                check_echo((await stream.get_final_response()).output_text)

    asyncio.run(run())


if __name__ == "__main__":
    main(f"openai {openai.__version__} responses")
