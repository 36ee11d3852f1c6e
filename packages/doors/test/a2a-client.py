"""What the SDK of A2A for Python makes of the agents at a base URL, for a key: one JSON object on stdout."""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageRequest, TaskState
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from jwt import PyJWK

BASE, KEY = sys.argv[1:]
count = 0


def said(text, **about):
    global count
    count += 1
    message = Message(message_id=f"p-{count}", role=Role.ROLE_USER, parts=[Part(text=text)], **about)
    return SendMessageRequest(message=message)


def texts_of(artifacts):
    return ["".join(part.text for part in artifact.parts) for artifact in artifacts]


async def client_for(http, agent, streaming):
    card = await A2ACardResolver(http, f"{BASE}/{agent}/").get_agent_card()
    return card, ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)


async def streamed(client, request):
    """The states that were told, and the text of each artifact as a client keeps it."""
    states, texts = [], {}
    async for event in client.send_message(request):
        if event.HasField("task"):
            states.append(TaskState.Name(event.task.status.state))
        elif event.HasField("status_update"):
            states.append(TaskState.Name(event.status_update.status.state))
        elif event.HasField("artifact_update"):
            update = event.artifact_update
            before = texts.get(update.artifact.artifact_id, "") if update.append else ""
            texts[update.artifact.artifact_id] = before + texts_of([update.artifact])[0]
    return {"states": states, "texts": list(texts.values())}


async def whole(client, request):
    async for event in client.send_message(request):
        return event.task
    raise AssertionError("nothing came")


async def is_signed(http, card):
    keys = (await http.get(f"{BASE}/.well-known/jwks.json")).json()["keys"]
    verify = create_signature_verifier(
        lambda kid, jku: next(PyJWK(key) for key in keys if key["kid"] == kid and jku == f"{BASE}/.well-known/jwks.json"),
        ["ES256"],
    )
    try:
        verify(card)
        return True
    except InvalidSignaturesError:
        return False


async def failure_of(work):
    try:
        await work
    except Exception as error:
        return {"class": type(error).__name__, "message": str(error)}
    return None


async def main():
    found = {}
    async with httpx.AsyncClient(timeout=30, headers={"authorization": f"Bearer {KEY}"}) as http:
        card, desk = await client_for(http, "desk", True)
        found["card"] = [card.name, card.description, card.supported_interfaces[0].protocol_version]
        found["signed"] = [await is_signed(http, card)]
        card.name = "Someone else"
        found["signed"].append(await is_signed(http, card))
        found["streamed"] = await streamed(desk, said("Refund it."))

        _, bo = await client_for(http, "bo", False)
        task = await whole(bo, said("Hello."))
        found["whole"] = [TaskState.Name(task.status.state), texts_of(task.artifacts)]
        again = await bo.get_task(GetTaskRequest(id=task.id))
        found["again"] = again == task

        _, asker = await client_for(http, "asker", False)
        asked = await whole(asker, said("A shirt."))
        found["asked"] = [TaskState.Name(asked.status.state), asked.status.message.parts[0].text]
        answer = said("size L", task_id=asked.id, context_id=asked.context_id)
        answered = await whole(asker, answer)
        found["answered"] = [answered.id == asked.id, TaskState.Name(answered.status.state), texts_of(answered.artifacts)]

        _, broken = await client_for(http, "broken", True)
        found["failed"] = (await streamed(broken, said("Go.")))["states"]
        found["unknown"] = await failure_of(bo.get_task(GetTaskRequest(id="c1~1")))
        found["over"] = await failure_of(whole(asker, said("More.", task_id=asked.id)))
    print(json.dumps(found))


asyncio.run(main())
