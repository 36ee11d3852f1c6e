"""What OpenAI's SDK for Python makes of the door at the base URLs that are its arguments, of a conversation and of none: one JSON object on stdout."""

import json
import sys

from openai import APIError, OpenAI, pydantic_function_tool
from pydantic import BaseModel

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)


def user(content):
    return [{"role": "user", "content": content}]


def failure_of(ask):
    try:
        ask()
    except APIError as error:
        return {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": error.code,
            "message": error.message,
        }
    return None


def drain(stream):
    for _ in stream:
        pass


found = {"models": [model.id for model in client.models.list()]}

completion = client.chat.completions.create(model="desk", messages=user("Refund it."))
found["completion"] = [completion.choices[0].message.content, completion.choices[0].finish_reason]

with client.chat.completions.create(
    model="desk", messages=user("And again."), stream=True, stream_options={"include_usage": True}
) as stream:
    chunks = list(stream)
deltas = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
found["chunks"] = [delta for delta in deltas if delta]
found["usage"] = chunks[-1].usage.total_tokens

first = client.responses.create(model="clerk", input="Which colour?")
second = client.responses.create(model="clerk", input="Why?", previous_response_id=first.id)
found["responses"] = [first.output_text, second.output_text, second.status]

pieces = []
with client.responses.stream(model="clerk", input="Really?") as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            pieces.append(event.delta)
    found["streamed"] = [pieces, stream.get_final_response().output_text]



class Person(BaseModel):
    name: str


class Weather(BaseModel):
    at: str


parsed = client.chat.completions.parse(model="clerk", messages=user("Who?"), response_format=Person)
with client.responses.stream(model="clerk", input="Who?", text_format=Person) as stream:
    drain(stream)
    found["parsed"] = [parsed.choices[0].message.parsed.name, stream.get_final_response().output_parsed.name]

messages = user("Weather?")
tools = [pydantic_function_tool(Weather)]
calling = client.chat.completions.parse(model="clerk", messages=messages, tools=tools).choices[0].message
[call] = calling.tool_calls
messages += [calling, {"role": "tool", "tool_call_id": call.id, "content": "Rain"}]
told = client.chat.completions.parse(model="clerk", messages=messages, tools=tools)
found["called"] = [call.function.parsed_arguments.model_dump(), told.choices[0].message.content]

# A client without a state, at the base URL without a conversation.
anywhere = OpenAI(base_url=sys.argv[2], api_key="none", max_retries=0)
history = user("I am Uma.") + [{"role": "assistant", "content": "Hello."}] + user("Who am I?")
begun = anywhere.responses.create(model="clerk", input=history, store=False)
history += begun.output + user("And now?")
gone_on = anywhere.responses.create(model="clerk", input=history, store=False)
found["stateless"] = [begun.output_text, gone_on.output_text, begun.conversation.id == gone_on.conversation.id]

again = client.responses.retrieve(first.id)
[item] = client.responses.input_items.list(first.id).data
found["read"] = [again.output_text, item.content[0].text, client.models.retrieve("clerk").id]

found["unknown"] = failure_of(lambda: client.chat.completions.create(model="nobody", messages=user("x")))
found["failed"] = failure_of(lambda: client.responses.create(model="broken", input="x"))
found["brokenStream"] = failure_of(
    lambda: drain(client.chat.completions.create(model="broken", messages=user("x"), stream=True))
)
print(json.dumps(found))
