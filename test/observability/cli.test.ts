import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ask as askSite, siteTest } from '../cli/distributed.ts';
import { workplace } from '../cli/harness.ts';

const ASK = { author: { kind: 'user', id: 'ana', name: 'Ana' }, to: ['worker'], content: 'how is the sea?' };
/** An SDK that records each ended span, as an application would register one. */
const SDK = `
import { appendFileSync } from 'node:fs';
import { trace } from '${import.meta.resolve('@opentelemetry/api')}';
import { BasicTracerProvider } from '${import.meta.resolve('@opentelemetry/sdk-trace-base')}';
const note = { onStart() {}, onEnd: (span) => appendFileSync('spans.txt', span.name + '\\n'),
  forceFlush: async () => {}, shutdown: async () => {} };
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [note] }));
`;

async function ask(url: string, send: typeof askSite = fetch): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const posted = await send(`${url}/api/conversations/c1/events`, {
    method: 'POST',
    headers,
    body: JSON.stringify(ASK),
  });
  expect(posted.status).toBe(201);
}

/** The JSON lines; a process also prints others when it ends. */
function linesOf(text: string): Record<string, unknown>[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('dev writes text for people, and log lines only with a level', async () => {
  using place = workplace();
  const lines = async (args: string[], env?: Record<string, string>) => {
    const dev = await place.start(['dev', '--port', '0', '--data', ':memory:', ...args], env);
    await ask(String(dev.ready['url']));
    while (
      !(await (await fetch(`${String(dev.ready['url'])}/metrics`)).text()).includes(
        'troupe_turns_total{tenant="default",outcome="done"} 1',
      )
    );
    await dev[Symbol.asyncDispose]();
    return dev.err();
  };
  expect(await lines([])).toBe('finishing…\n');
  const info = linesOf(await lines(['--log-level', 'info']));
  expect(info).toMatchObject([
    { level: 'info', code: 'turn_done', conversation: 'c1', agent: 'worker', seq: 1 },
  ]);
  const debug = await lines([], { TROUPE_LOG: 'debug' });
  expect(linesOf(debug).map(({ code }) => code)).toEqual(['turn_started', 'turn_done']);
  expect(debug).not.toContain('sea');
});

test.each([
  [['--log-level', 'loud'], {}, /--log-level must be one of silent, error, warn, info, debug, not "loud"/],
  [[], { TROUPE_LOG: 'loud' }, /TROUPE_LOG must be one of/],
  [[], { TROUPE_TRACING: 'jaeger' }, /TROUPE_TRACING must be "otel" or empty, not "jaeger"/],
])('dev %j with %j is refused before anything starts', async (args, env, why) => {
  using place = workplace();
  const { code, err } = await place.call(['dev', '--port', '0', '--data', ':memory:', ...args], { env });
  expect([code, err]).toEqual([1, expect.stringMatching(why)]);
});

test('TROUPE_TRACING=otel uses the SDK that the process registered', async () => {
  using place = workplace();
  const sdk = place.write('otel.mjs', SDK);
  const env = { NODE_OPTIONS: `--import ${sdk}`, TROUPE_TRACING: 'otel' };
  const dev = await place.start(['dev', '--port', '0', '--data', ':memory:'], env);
  await ask(String(dev.ready['url']));
  while (
    !(await (await fetch(`${String(dev.ready['url'])}/metrics`)).text()).includes(
      'troupe_turns_total{tenant="default",outcome="done"} 1',
    )
  );
  await dev[Symbol.asyncDispose]();
  const spans = readFileSync(path.join(place.dir, 'spans.txt'), 'utf8').trim().split('\n');
  expect(spans).toEqual(['build_prompt', 'chat test', 'commit', 'invoke_agent worker']);
});

siteTest('a worker writes log lines in JSON with the ids of turns', async (site) => {
  const api = await site.serve();
  const worker = await site.worker();
  await ask(api.url, askSite);
  while (!worker.err().includes('turn_done'))
    await new Promise((resolve) => worker.child.stderr?.once('data', resolve));
  const { events } = (await (await askSite(`${api.url}/api/conversations/c1/events`)).json()) as {
    events: { kind: string; turn?: string }[];
  };
  const turn = events.find(({ kind }) => kind === 'turn.started')?.turn;
  expect(linesOf(worker.err()).find(({ code }) => code === 'turn_done')).toMatchObject({
    level: 'info',
    tenant: 'default',
    conversation: 'c1',
    agent: 'worker',
    turn,
    seq: 1,
  });
  expect(worker.err()).not.toContain('sea');
});
