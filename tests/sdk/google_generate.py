"""The google-genai SDK on generate-content."""

import asyncio

from common import *
from google import genai
from google.genai import errors as genai_errors
from google.genai import types
from pydantic import BaseModel

BASE = f"{URL}/gemini"


def connect(key=KEY, **options):
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=BASE, **options))


client = connect()
DECLARATION = types.FunctionDeclaration(
    name="get_weather", description="The weather", parameters_json_schema=WEATHER
)
TOOL = types.Tool(function_declarations=[DECLARATION])
BY_HAND = types.AutomaticFunctionCallingConfig(disable=True)


class Description(BaseModel):
    name: str
    tags: list[str]
    count: int


def check_reply(reply, model):
    assert reply.candidates[0].finish_reason == types.FinishReason.STOP, reply
    assert reply.candidates[0].content.role == "model" and reply.model_version == model.id, reply
    usage = reply.usage_metadata
    assert usage.prompt_token_count > 0 and usage.candidates_token_count > 0, usage
    thought = usage.thoughts_token_count or 0
    assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count + thought, usage


@once
def models():
    names = [model.name for model in client.models.list()]
    assert all(f"models/{model.id}" in names for model in MODELS), names
    one = client.models.get(model=SANDBOX.id)
    assert one.name == f"models/{SANDBOX.id}" and one.input_token_limit > 0, one


@each_model
def plain(model):
    reply = client.models.generate_content(model=model.id, contents=say("hello"))
    check_echo(reply.text)
    check_reply(reply, model)


@each_model
def conversation(model):
    contents = [
        types.Content(role="user", parts=[types.Part.from_text(text="first")]),
        types.Content(role="model", parts=[types.Part.from_text(text="echo: first")]),
        types.Content(role="user", parts=[types.Part.from_text(text=say("second"))]),
    ]
    config = types.GenerateContentConfig(system_instruction="You are brief.", max_output_tokens=500, top_p=0.9)
    check_echo(client.models.generate_content(model=model.id, contents=contents, config=config).text, "second")


@each_model
def length(model):
    text = "one two three four five six seven eight nine ten " * 3 + "[[sandbox:words=50]]"
    config = types.GenerateContentConfig(max_output_tokens=16)
    reply = client.models.generate_content(model=model.id, contents=text, config=config)
    assert reply.candidates[0].finish_reason == types.FinishReason.MAX_TOKENS, reply


@each_model
def stream(model):
    chunks = list(client.models.generate_content_stream(model=model.id, contents=say("hello")))
    check_echo("".join(chunk.text or "" for chunk in chunks))
    assert len(chunks) > 1, chunks
    check_reply(chunks[-1], model)


@each_model
def chats(model):
    """The SDK's own history drops a turn whose last chunk has no part."""
    chat = client.chats.create(model=model.id)
    check_echo("".join(chunk.text or "" for chunk in chat.send_message_stream(say("first"))), "first")
    check_echo(chat.send_message(say("second")).text, "second")
    history = chat.get_history(curated=True)
    roles = [content.role for content in history]
    assert roles[0] == "user" and roles[-1] == "model" and roles.count("user") == 2, history
    check_echo(history[-1].parts[-1].text, "second")


@each_model
def tools(model):
    config = types.GenerateContentConfig(tools=[TOOL], automatic_function_calling=BY_HAND)
    contents = [types.Content(role="user", parts=[types.Part.from_text(text=TOOLS)])]
    chunks = list(client.models.generate_content_stream(model=model.id, contents=contents, config=config))
    parts = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
    calls = [part.function_call for part in parts if part.function_call]
    # Not every model gives its calls an id.
    check_calls(model, [(c.id or f"number {n}", c.name, c.args or {}) for n, c in enumerate(calls)])
    function_responses = [
        types.FunctionResponse(id=call.id, name=call.name, response={"output": f"sunny {n}"})
        for n, call in enumerate(calls)
    ]
    contents.append(types.Content(role="model", parts=parts))
    contents.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in function_responses]))
    reply = client.models.generate_content(model=model.id, contents=contents, config=config)
    assert "sunny 1" in reply.text, reply
    check_reply(reply, model)


@each_model
def tools_called_by_the_sdk(model):
    """The SDK creates the declaration, calls the function and sends the result by itself."""
    if model.is_sandbox:
        return  # The sandbox calls the function without the argument.
    cities = []

    def get_weather(city: str) -> str:
        """The weather."""
        cities.append(city)
        return f"sunny {len(cities)}"

    config = types.GenerateContentConfig(tools=[get_weather])
    reply = client.chats.create(model=model.id, config=config).send_message("call tool get_weather")
    assert len(cities) == 1 and "sunny 1" in reply.text, reply


@each_model
def tools_forced(model):
    calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["get_weather"])
    if str(model) == "deepseek":
        calling = types.FunctionCallingConfig(mode="AUTO")
    config = types.GenerateContentConfig(
        tools=[TOOL],
        automatic_function_calling=BY_HAND,
        tool_config=types.ToolConfig(function_calling_config=calling),
    )
    reply = client.models.generate_content(model=model.id, contents="call tool get_weather", config=config)
    assert len(reply.function_calls) == 1 and "city" in reply.function_calls[0].args, reply


@each_model
def images(model):
    parts = [
        types.Part.from_uri(file_uri=IMAGE_URL, mime_type="image/png"),
        types.Part.from_bytes(data=IMAGE, mime_type="image/png"),
    ]
    # Older models do not accept links, and neither does Google's own API for them.
    for part in parts[str(model) == "gemini" :]:
        reply = client.models.generate_content(model=model.id, contents=[part, "see"])
        check_image(model, reply.text)


@each_model
def structured(model):
    for schema in [{"response_schema": Description}, {"response_json_schema": Description.model_json_schema()}]:
        config = types.GenerateContentConfig(response_mime_type="application/json", **schema)
        reply = client.models.generate_content(model=model.id, contents="describe it", config=config)
        Description.model_validate_json(reply.text)
        assert "response_schema" not in schema or isinstance(reply.parsed, Description), reply


@each_model
def thinking(model):
    if not model.thinks:
        return
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=2000)
    if str(model) == "gemini-next":
        thinking = types.ThinkingConfig(include_thoughts=True, thinking_level="HIGH")
    config = types.GenerateContentConfig(thinking_config=thinking)
    arguments = dict(model=model.id, contents="think about it", config=config)
    reply = client.models.generate_content(**arguments)
    chunks = list(client.models.generate_content_stream(**arguments))
    assert reply.usage_metadata.thoughts_token_count > 0, reply
    assert chunks[-1].usage_metadata.thoughts_token_count > 0, chunks[-1]
    streamed = [part for chunk in chunks for part in (chunk.candidates[0].content.parts or [])]
    for parts in [reply.candidates[0].content.parts, streamed]:
        thoughts = "".join(part.text for part in parts if part.thought and part.text)
        visible_text = "".join(part.text for part in parts if not part.thought and part.text)
        assert thoughts and visible_text and thoughts != visible_text, parts


@each_model
def counting(model):
    before = balance()
    few = client.models.count_tokens(model=model.id, contents="one two three").total_tokens
    more = client.models.count_tokens(model=model.id, contents="one two three " * 20).total_tokens
    assert 0 < few < more, (few, more)
    assert balance() == before


@each_model
def breaks_off(model):
    read = lambda: list(client.models.generate_content_stream(model=model.id, contents=breaks(model)))
    raises(genai_errors.APIError, read)


@each_model
def abort(model):
    def run():
        # A separate client: the SDK's streams can only be closed along with the client's connections.
        own = connect()
        config = types.GenerateContentConfig(max_output_tokens=endless_cap(model))
        stream = own.models.generate_content_stream(model=model.id, contents=endless(model), config=config)
        for _, chunk in zip(range(5), stream):
            pass
        stream.close()
        own.close()

    check_abort(run, max_charged=0.5)


@once
def errors():
    def generate(text="hello", model=SANDBOX.id, key=KEY, **config):
        config = types.GenerateContentConfig(**config)
        client = connect(key)
        return lambda: client.models.generate_content(model=model, contents=text, config=config)

    def check(kind, code, status, run):
        e = raises(kind, run)
        assert (e.code, e.status) == (code, status) and e.message, (e.code, e.status, e.message)

    stranger = connect(WRONG_KEY)
    client_error, server_error = genai_errors.ClientError, genai_errors.ServerError
    check(client_error, 401, "UNAUTHENTICATED", generate(key=WRONG_KEY))
    check(client_error, 401, "UNAUTHENTICATED", lambda: list(stranger.models.list()))
    check(client_error, 404, "NOT_FOUND", generate(model=UNKNOWN))
    check(client_error, 404, "NOT_FOUND", lambda: client.models.get(model=UNKNOWN))
    check(client_error, 400, "INVALID_ARGUMENT", generate(temperature=9))
    check(client_error, 402, "PAYMENT_REQUIRED", generate(key=EMPTY_KEY))
    check(server_error, 502, "BAD_GATEWAY", generate(text=FAIL))
    generate(key=LIMITED_KEY)()
    check(client_error, 429, "RESOURCE_EXHAUSTED", generate(key=LIMITED_KEY))


@once
def versions():
    """Both versions of the path, whichever one the SDK uses."""
    for version in ["v1", "v1beta"]:
        client = connect(api_version=version)
        check_echo(client.models.generate_content(model=SANDBOX.id, contents=say("hello")).text)


@once
def asynchronous():
    async def run():
        client = connect().aio
        reply = await client.models.generate_content(model=SANDBOX.id, contents=say("hello"))
        check_echo(reply.text)
        stream = await client.models.generate_content_stream(model=SANDBOX.id, contents=say("hello"))
        check_echo("".join([chunk.text or "" async for chunk in stream]))

    asyncio.run(run())


if __name__ == "__main__":
    main(f"google-genai {genai.__version__}")
