import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { createApp } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { openOperators } from '../../src/library/runtime/operators.ts';
import { tempDir } from '../store/temp-dir.ts';
import { keepLines, startVendor } from './stage.ts';

const CARD = '4111 1111 1111 1111';
const KEY = `ghp_${'a1B2'.repeat(9)}`;
const SAID = `the password: hunter2, the key ${KEY}, the card ${CARD}`;
const SECRET = /hunter2|a1B2|4111/;

afterEach(() => trace.disable());

/** The log lines of a warning with secrets. */
async function warned({ hideSecrets }: Partial<TroupeInput>): Promise<string> {
  const { logger, lines } = keepLines();
  const company = { agents: [], context: { summaries: 'model' as const, retrieval: true }, hideSecrets };
  const { onWarning } = await openOperators(company, { logger, env: {}, process: 'p1' });
  onWarning(new Error(`refused ${SAID}`), 'model');
  return JSON.stringify(lines);
}

/** Says secrets to an agent that repeats them after one failed call. Returns everything that leaves the process. */
async function outputs(input: Partial<TroupeInput> = {}) {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  const record = path.join(tempDir(), 'recording.jsonl');
  await using vendor = await startVendor(
    ({ number }) =>
      number === 1
        ? { error: { code: 'provider_overloaded', message: `busy with ${SAID}`, retryAfter: '0' } }
        : { text: `I repeat: ${SAID}`, calls: [] },
    { tracing: { content: true }, record },
    input,
  );
  await vendor.troupe.send('c1', {
    author: { kind: 'user', id: 'u1', name: 'Ana' },
    to: ['bo'],
    content: SAID,
    forTools: { password: 'hunter2', shown: 'yes' },
    storeForTools: true,
  });
  await vendor.troupe.idle();
  const app = createApp(vendor.troupe, { token: 't' });
  const get = async (query: string) => {
    const headers = { authorization: 'Bearer t' };
    return (await app.request(`/api/conversations/c1/export?${query}`, { headers })).text();
  };
  return {
    leaving: {
      log: await warned(input),
      spans: JSON.stringify(
        exporter.getFinishedSpans().map(({ attributes, status }) => [attributes, status]),
      ),
      recording: readFileSync(record, 'utf8'),
      lines: await get(''),
      html: await get('format=html'),
    },
    kept: { lines: await get('secrets=kept'), html: await get('secrets=kept&format=html') },
    sent: vendor.server.requests.map(({ body }) => JSON.stringify(body)).join('\n'),
    stored: JSON.stringify((await vendor.troupe.events('c1')).events),
    record,
  };
}

test('keys, cards and passwords behind their name leave no process: log, traces, recordings, exports', async () => {
  const { leaving, kept, sent, stored } = await outputs();
  for (const [name, text] of Object.entries(leaving)) {
    expect(text, name).not.toMatch(SECRET);
    expect(text, name).toContain('password: [password], the key [key], the card [card]');
  }
  expect(leaving.lines.split('\n')[0]).toBe('{"troupe":1,"conversation":"c1","secrets":"hidden"}');
  expect(kept.lines.split('\n')[0]).toBe('{"troupe":1,"conversation":"c1"}');
  expect(leaving.lines).toContain('"forTools":{"password":"[password]","shown":"yes"}');
  // What agents see and the log holds is another setting: `redact`.
  for (const text of [sent, stored, kept.lines, kept.html]) expect(text).toMatch(SECRET);
});

test('one setting turns it off, and what is known to be a secret is hidden all the same', async () => {
  const { leaving } = await outputs({ hideSecrets: false });
  for (const text of [leaving.log, leaving.spans, leaving.recording, leaving.lines, leaving.html])
    expect(text).toContain('password: hunter2');
});

test('an export without its secrets can be imported', async () => {
  const { leaving } = await outputs();
  await using other = await createTroupe({ agents: [] }, { allowEmpty: true });
  const report = await other.import(Readable.from([leaving.lines]), {
    format: 'troupe',
    conversation: 'copy',
  });
  expect(report.skipped).toEqual([]);
  const { events } = await other.events('copy');
  expect(JSON.stringify(events)).toContain('the card [card]');
});

test('a recording replays, whether its secrets were hidden or not', async () => {
  for (const hideSecrets of [true, false]) {
    const { record } = await outputs({ hideSecrets });
    await using vendor = await startVendor(() => ({ text: 'not asked' }), { replay: record });
    const events = await vendor.say(SAID);
    expect(JSON.stringify(events)).toContain('I repeat: the ');
  }
});
