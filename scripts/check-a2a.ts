import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { NO_USAGE } from '../src/events/turn.ts';
import { createApp, serveHttp } from '../src/http/api/index.ts';
import { defineProvider } from '../src/providers/define-provider.ts';
import type { ModelEvent, ModelRequest } from '../src/providers/provider.ts';
import { createTroupe } from '../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../src/library/troupe.ts';

/**
 * `node scripts/check-a2a.ts --tck FOLDER [--python PROGRAM]`: A2A's Technology Compatibility Kit, from a checkout of the branch
 * `1.0-dev` of github.com/a2aproject/a2a-tck that is installed into the Python at PROGRAM, against an agent that does what the ids of
 * its messages ask for. what is `EXPLAINED` is left out. What follows `--` goes to pytest; `--serve` starts the agent alone.
 */
const { values, positionals } = parseArgs({
  options: {
    tck: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '0' },
  },
  allowPositionals: true,
});

/** Of the kit's receiver of notifications, which has any port by itself: one is allowed here. */
const RECEIVER_PORT = 48_123;
/** The kit sends ids of messages again, and expects another task each time: for Troupe a repeated message is the same task. */
const PLUGIN = `import itertools
import tck.webhook.server as server
from tck.transport.http_json_client import HttpJsonClient
from tck.transport.jsonrpc_client import JsonRpcClient

opened = server.HTTPServer
server.HTTPServer = lambda address, handler: opened((address[0], ${RECEIVER_PORT}), handler)
count = itertools.count()

def anew(send):
    def sent(self, message, **more):
        return send(self, {**message, "messageId": f'{message["messageId"]}-{next(count)}'}, **more)
    return sent

for client in (HttpJsonClient, JsonRpcClient):
    client.send_message = anew(client.send_message)
    client.send_streaming_message = anew(client.send_streaming_message)
`;
/** Below `tests/compatibility`. */
const EXPLAINED: Readonly<Record<string, string>> = {
  'agent_card/test_agent_card_caching.py::TestAgentCardLastModified':
    'optional: a card is made for each request, and has an etag',
  'core_operations/test_artifacts.py::TestFileArtifact': 'what an agent says is text, and JSON beside it',
  'core_operations/test_artifacts.py::TestFileUrlArtifact': 'the same',
  'core_operations/test_artifacts.py::TestDataArtifact': 'the same: data comes after its text',
  'core_operations/test_artifacts.py::TestMessageResponse': 'each message begins a task',
};
/** Longer than the kit reads a stream. */
const STAYS_MS = 12_000;

process.exitCode = await main();

async function main(): Promise<number> {
  if (!values.serve && !(values.tck && existsSync(path.join(values.tck, 'run_tck.py')))) {
    console.error('check-a2a: name a checkout of the kit with --tck');
    return 2;
  }
  let troupe: Troupe | null = null;
  const provider = defineProvider({
    name: 'tck',
    async *read(request, { signal }) {
      yield* answer(request, await promptOf(troupe!, request), signal);
    },
  });
  await using opened = await createTroupe(
    {
      providers: { tck: provider },
      webhooks: { allow: ['*', `localhost:${RECEIVER_PORT}`] },
      doors: ['a2a'],
      agents: [
        {
          id: 'desk',
          name: 'Desk',
          description: 'Does what the kit asks',
          provider: 'custom',
          adapter: 'tck',
          model: 'tck',
          tools: ['ask'],
        },
      ],
    },
    { onWarning: () => {} },
  );
  troupe = opened;
  const server = await serveHttp(createApp(opened), { port: Number(values.port) });
  const host = `${server.url}/api/a2a/desk`;
  try {
    if (!values.serve) return await runKit(values.tck!, host);
    console.log(host);
    return await new Promise<number>((resolve) => process.once('SIGINT', () => resolve(0)));
  } finally {
    await server.close();
  }
}

/** The id of the message that is answered says what to do: `tck-complete-task-1a2b3c4d`. */
async function promptOf(troupe: Troupe, { trace }: ModelRequest): Promise<string> {
  const { events } = await troupe.events(trace.conversation, { limit: 1_000 });
  const sent = events.findLast(({ kind, author }) => kind === 'message' && author.kind === 'user');
  return sent?.id ?? '';
}

async function* answer(
  { messages }: ModelRequest,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void> {
  const isAnswered = messages.some(({ role }) => role === 'tool');
  if (id.startsWith('tck-input-required') && !isAnswered) {
    yield { type: 'call', call: { id: 'call-1', name: 'ask', args: '{"question":"Which size?"}' } };
    yield { type: 'done', stop: 'calls', usage: NO_USAGE };
    return;
  }
  const words = id.startsWith('tck-artifact-text')
    ? ['Generated text content']
    : ['Hello ', 'from ', 'Troupe'];
  for (const delta of words) yield { type: 'text', delta };
  if (id.startsWith('test-resubscribe-message-id')) await after(STAYS_MS, signal);
  yield { type: 'done', stop: 'end', usage: NO_USAGE };
}

function after(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function runKit(folder: string, host: string): Promise<number> {
  const plugins = mkdtempSync(path.join(tmpdir(), 'troupe-check-a2a-'));
  writeFileSync(path.join(plugins, 'troupe_kit.py'), PLUGIN);
  const left = Object.entries(EXPLAINED).map(([name, why]) => {
    console.log(`check-a2a: leaves out ${name}: ${why}`);
    return `--deselect=tests/compatibility/${name}`;
  });
  const args = ['run_tck.py', '--sut-host', host, '-v', '--', '-p', 'troupe_kit', ...left, ...positionals];
  const env = { ...process.env, PYTHONPATH: plugins };
  const child = spawn(values.python, args, { cwd: folder, stdio: 'inherit', env });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      rmSync(plugins, { recursive: true, force: true });
      resolve(code ?? 1);
    });
  });
}
