"""The load with LangGraph and its checkpoints on SQLite: whole states, or with DeltaChannel. The same sizes as troupe.ts."""

import json, pathlib, resource, sqlite3, sys, time
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

MODE, TURNS, DIR = sys.argv[1], int(sys.argv[2]), sys.argv[3]
AGENTS = ["planner", "coder", "reviewer"]
# As Deep Agents set it.
SNAPSHOT_EVERY = 50
turn = 0


def text_of(size, seed):
    lines, length, index = [], 0, 0
    while length < size:
        line = f"{seed} line {index}: service-{index % 17} took {index % 90} s.\n"
        lines.append(line)
        length += len(line)
        index += 1
    return "".join(lines)[:size]


def merged(files, more):
    return {**(files or {}), **more}


def merged_all(files, writes):
    for more in writes:
        files = merged(files, more)
    return files or {}


class Full(TypedDict):
    messages: Annotated[list, add_messages]
    files: Annotated[dict, merged]


class Delta(TypedDict):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer, snapshot_frequency=SNAPSHOT_EVERY)]
    files: Annotated[dict, DeltaChannel(merged_all, snapshot_frequency=SNAPSHOT_EVERY)]


def think(state):
    if isinstance(state["messages"][-1], ToolMessage):
        return {"messages": [AIMessage(text_of(20_000, f"answer {turn}"))]}
    wanted = [("write_file", "left"), ("write_file", "right"), ("read_file", "notes")]
    if turn % 10 == 9:
        wanted.append(("search", "all"))
    calls = [
        {"name": name, "args": {"path": f"{of}-{turn}"}, "id": f"{turn}-{index}"}
        for index, (name, of) in enumerate(wanted)
    ]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def use_tools(state):
    messages, files = [], {}
    for call in state["messages"][-1].tool_calls:
        path, name = call["args"]["path"], call["name"]
        if name == "read_file":
            content = text_of(4_000, path)
        else:
            files[path] = text_of(30_000 if name == "write_file" else 80_000, path)
            content = f"Written to {path}."
        messages.append(ToolMessage(content, tool_call_id=call["id"]))
    return {"messages": messages, "files": files}


def after_thinking(state):
    return "tools" if state["messages"][-1].tool_calls else END


def compiled(saver):
    builder = StateGraph(Full if MODE == "full" else Delta)
    builder.add_node("tools", use_tools)
    for agent in AGENTS:
        builder.add_node(agent, think)
        builder.add_conditional_edges(agent, after_thinking, ["tools", END])
    builder.add_conditional_edges(START, lambda state: AGENTS[turn % len(AGENTS)], AGENTS)
    builder.add_conditional_edges("tools", lambda state: AGENTS[turn % len(AGENTS)], AGENTS)
    return builder.compile(checkpointer=saver)


CONFIG = {"configurable": {"thread_id": "measured"}}


def ask(graph):
    return graph.invoke({"messages": [HumanMessage(f"Task {turn}.")]}, CONFIG)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def stored_bytes():
    for path in pathlib.Path(DIR).rglob("*.db"):
        database = sqlite3.connect(path)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
    return sum(path.stat().st_size for path in pathlib.Path(DIR).rglob("*") if path.is_file())


began, before = time.perf_counter(), cpu_seconds()
with SqliteSaver.from_conn_string(f"{DIR}/graph.db") as saver:
    graph = compiled(saver)
    for turn in range(TURNS):
        ask(graph)
        if turn % 50 == 49:
            print(f"delta-channel langgraph {MODE}: turn {turn + 1} of {TURNS}", file=sys.stderr, flush=True)
figures = {
    "seconds": time.perf_counter() - began,
    "cpuSeconds": cpu_seconds() - before,
    "storedMb": stored_bytes() / 1e6,
}
turn = TURNS
opening = time.perf_counter()
with SqliteSaver.from_conn_string(f"{DIR}/graph.db") as saver:
    state = ask(compiled(saver))
figures["resumeMs"] = (time.perf_counter() - opening) * 1_000
if len(state["messages"]) < (TURNS + 1) * 5 or len(state["files"]) < (TURNS + 1) * 2:
    sys.exit("the state lacks messages or files")
print(json.dumps(figures), flush=True)
