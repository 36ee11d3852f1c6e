"""The load with Temporal: a workflow of OpenAI Agents on its development server. The same sizes as troupe.ts."""

import asyncio, json, os, resource, socket, subprocess, sys, time
from datetime import timedelta

from agents import Agent, Model, ModelProvider, ModelResponse, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.contrib.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
from temporalio.contrib.openai_agents.workflow import activity_as_tool
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

WANTED, DIR, SERVER = int(sys.argv[2]), sys.argv[3], os.environ["TEMPORAL_SERVER"]
MESSAGES, MESSAGE_BYTES, RESULT_BYTES = 418, 2_000, 5_000
MINUTE = timedelta(minutes=1)


def text_of(size, seed):
    lines, length, index = [], 0, 0
    while length < size:
        line = f"{seed} line {index}: service-{index % 17} took {index % 90} s.\n"
        lines.append(line)
        length += len(line)
        index += 1
    return "".join(lines)[:size]


class Sent:
    calls = 0
    bytes = 0


class Fake(Model):
    async def get_response(self, system_instructions, input, *rest, **named):
        Sent.calls += 1
        Sent.bytes += sum(len(str(item.get("content") or item.get("output") or "")) for item in input)
        if Sent.calls % 25 == 0:
            print(f"history-growth temporal: call {Sent.calls} of {WANTED}", file=sys.stderr, flush=True)
        return ModelResponse(output=[answer()], usage=Usage(), response_id=None)

    def stream_response(self, *rest, **named):
        raise NotImplementedError


def answer():
    if Sent.calls < WANTED:
        call = f"call-{Sent.calls}"
        arguments = json.dumps({"number": Sent.calls})
        return ResponseFunctionToolCall(
            id=call, call_id=call, name="look_up", arguments=arguments, type="function_call", status="completed"
        )
    text = ResponseOutputText(annotations=[], text="That is all.", type="output_text", logprobs=[])
    return ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")


class Fakes(ModelProvider):
    def get_model(self, model_name):
        return Fake()


@activity.defn
async def look_up(number: int) -> str:
    """Looks something up."""
    return text_of(RESULT_BYTES, f"result {number}")


@workflow.defn
class Run:
    @workflow.run
    async def run(self) -> str:
        conversation = [
            {"role": "user", "content": text_of(MESSAGE_BYTES, f"message {index}")} for index in range(MESSAGES)
        ]
        tools = [activity_as_tool(look_up, start_to_close_timeout=MINUTE)]
        agent = Agent(name="agent", instructions="Help.", model="fake", tools=tools)
        asked = {"role": "user", "content": "Look everything up."}
        result = await Runner.run(agent, [*conversation, asked], max_turns=WANTED + 1)
        return result.final_output


def free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


async def connected(port, plugin):
    for _ in range(300):
        try:
            return await Client.connect(f"127.0.0.1:{port}", plugins=[plugin])
        except RuntimeError:
            await asyncio.sleep(0.1)
    sys.exit("the server of Temporal does not answer")


async def play(port):
    parameters = ModelActivityParameters(start_to_close_timeout=MINUTE)
    plugin = OpenAIAgentsPlugin(model_params=parameters, model_provider=Fakes())
    client = await connected(port, plugin)
    began = time.perf_counter()
    worker = Worker(
        client,
        task_queue="runs",
        workflows=[Run],
        activities=[look_up],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        handle = await client.start_workflow(Run.run, id="measured", task_queue="runs")
        try:
            await handle.result()
        except WorkflowFailureError as error:
            print(f"history-growth temporal: {error.cause}", file=sys.stderr, flush=True)
        seconds = time.perf_counter() - began
        info = (await handle.describe()).raw_description.workflow_execution_info
    return {
        "calls": Sent.calls,
        "storedMb": info.history_size_bytes / 1e6,
        "sentMb": Sent.bytes / 1e6,
        "seconds": seconds,
    }


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main():
    before, port = cpu_seconds(), free_port()
    # It warns of each payload above 512 KiB.
    errors = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=errors)))
    start = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "never"]
    server = subprocess.Popen(
        [SERVER, *start, "--db-filename", f"{DIR}/temporal.db"],
        stdout=subprocess.DEVNULL,
    )
    try:
        figures = asyncio.run(play(port))
    finally:
        server.terminate()
        server.wait()
    print(json.dumps({**figures, "cpuSeconds": cpu_seconds() - before}), flush=True)


main()
