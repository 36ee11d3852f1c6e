"""One scene with one peer of PyPI, in this process: the same as play.mjs, which says what the scenes are."""

import asyncio, json, os, pathlib, resource, sqlite3, sys, time

NAME, SCENE, COUNT, DIR = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
REPLY = "Understood, and noted."
LONGEST_S = 30


def text_of(index):
    return f"Message {index}: the deploy of service-{index % 17} took {index % 90} s, please note it for the report."


def messages_of(count):
    return [("user", text_of(index)) if index % 2 == 0 else ("assistant", REPLY) for index in range(count)]


class Sent:
    calls = 0
    chars = 0
    messages = 0


async def open_openai_agents(folder):
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    from agents import Agent, ModelResponse, Model, Runner, SQLiteSession, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    sent = Sent()

    class Fake(Model):
        async def get_response(self, system_instructions, input, *rest, **named):
            sent.calls += 1
            items = input if isinstance(input, list) else [{"content": input}]
            sent.messages = len(items) + 1
            sent.chars += len(system_instructions or "") + sum(chars_of(item["content"]) for item in items)
            text = ResponseOutputText(annotations=[], text=REPLY, type="output_text", logprobs=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *rest, **named):
            raise NotImplementedError

    model = Fake()
    sides = {name: Agent(name=name, instructions="Take notes.", model=model) for name in ("left", "right")}
    sessions = {}

    def session_of(conversation):
        if conversation not in sessions:
            sessions[conversation] = SQLiteSession(conversation, f"{folder}/sessions.db")
        return sessions[conversation]

    class Peer:
        async def turn(self, conversation, agent, text):
            await Runner.run(sides[agent], text, session=session_of(conversation))

        async def fill(self, conversation, count):
            items = [{"role": role, "content": text} for role, text in messages_of(count)]
            await session_of(conversation).add_items(items)

        async def close(self):
            for session in sessions.values():
                session.close()
            sessions.clear()

    peer = Peer()
    peer.sent = sent
    return peer


def chars_of(content):
    return len(content) if isinstance(content, str) else sum(len(part.get("text", "")) for part in content)


async def open_langgraph(folder):
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    sent = Sent()

    def answer(state):
        sent.calls += 1
        sent.messages = len(state["messages"]) + 1
        sent.chars += len("Take notes.") + sum(len(message.content) for message in state["messages"])
        return {"messages": [AIMessage(REPLY)]}

    context = AsyncSqliteSaver.from_conn_string(f"{folder}/graph.db")
    saver = await context.__aenter__()
    graphs = {}
    for side in ("left", "right"):
        builder = StateGraph(MessagesState)
        builder.add_node(side, answer)
        builder.add_edge(START, side)
        builder.add_edge(side, END)
        graphs[side] = builder.compile(checkpointer=saver)

    def config(conversation):
        return {"configurable": {"thread_id": conversation}}

    class Peer:
        async def turn(self, conversation, agent, text):
            await graphs[agent].ainvoke({"messages": [HumanMessage(text)]}, config(conversation))

        async def fill(self, conversation, count):
            messages = [HumanMessage(text) if role == "user" else AIMessage(text) for role, text in messages_of(count)]
            await graphs["left"].aupdate_state(config(conversation), {"messages": messages}, as_node="left")

        async def close(self):
            await context.__aexit__(None, None, None)

    peer = Peer()
    peer.sent = sent
    return peer


OPEN = {"openai-agents": open_openai_agents, "langgraph": open_langgraph}


def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (used.ru_utime + used.ru_stime) * 1_000


def bytes_in(folder):
    for path in pathlib.Path(folder).rglob("*.db"):
        database = sqlite3.connect(path)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


async def conversations(peer, prefix, count):
    names = iter([f"{prefix}-{index}" for index in range(count)])

    async def client():
        for name in names:
            for turn in range(3):
                await peer.turn(name, "left", text_of(turn))

    await asyncio.gather(*[client() for _ in range(64)])


async def play_turn(peer, opened):
    for index in range(60):
        await peer.turn("warm-up", "left", text_of(index))
    is_short = COUNT < 100
    of = (lambda index: f"measured-{index}") if is_short else (lambda index: "measured")
    turns = 40 if COUNT > 5_000 else 120
    for name in dict.fromkeys(of(index) for index in range(turns)):
        await peer.fill(name, COUNT - 4 if is_short else COUNT)
        for index in range(2 if is_short else 5):
            await peer.turn(name, "left", text_of(index))
    before = cpu_ms()
    times = []
    began = time.perf_counter()
    for index in range(turns):
        if time.perf_counter() - began > LONGEST_S:
            break
        start = time.perf_counter()
        await peer.turn(of(index), "left", text_of(index))
        times.append((time.perf_counter() - start) * 1_000)
    cpu = (cpu_ms() - before) / len(times)
    return {"p50Ms": sorted(times)[len(times) // 2], "cpuMs": cpu, "messages": peer.sent.messages}


async def play_fill(peer, opened):
    await peer.fill("measured", COUNT)
    await peer.turn("measured", "left", text_of(0))
    return {}


async def play_cold(peer, opened):
    await peer.turn("measured", "left", text_of(1))
    return {"firstTurnMs": (time.perf_counter() - opened) * 1_000, "messages": peer.sent.messages}


def rss_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


async def play_many(peer, opened):
    rss_start = rss_mb()
    await conversations(peer, "warm-up", min(100, COUNT))
    before = cpu_ms()
    start = time.perf_counter()
    await conversations(peer, "measured", COUNT)
    seconds = time.perf_counter() - start
    return {
        "turnsPerSecond": COUNT * 3 / seconds,
        "cpuMs": (cpu_ms() - before) / (COUNT * 3),
        "rssStartMb": rss_start,
        "rssPeakMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024,
    }


async def play_rally(peer, opened):
    for index in range(COUNT):
        await peer.turn("measured", "left" if index % 2 == 0 else "right", text_of(index))
    return {"calls": peer.sent.calls, "kiloChars": peer.sent.chars / 1_000}


async def play_bytes(peer, opened):
    await peer.turn("measured", "left", text_of(0))
    await peer.close()
    before = bytes_in(DIR)
    again = await OPEN[NAME](DIR)
    for index in range(COUNT):
        await again.turn("measured", "left", text_of(index))
    await again.close()
    return {"bytesPerTurn": (bytes_in(DIR) - before) / COUNT}


async def main():
    opened = time.perf_counter()
    peer = await OPEN[NAME](DIR)
    figures = await globals()[f"play_{SCENE}"](peer, opened)
    print(json.dumps(figures), flush=True)
    # What a peer leaves open must not keep the process.
    os._exit(0)


asyncio.run(main())
