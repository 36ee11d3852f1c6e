import { describe, expect, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author } from '../../src/events/index.ts';
import { startFakeOpenAi, type FakeReply } from '../../packages/testing/src/fake-vendors.ts';
import { modelOf } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { pass } from '../support/compaction-stage.ts';
import { openTroupe } from '../support/mode.ts';
import { freePort } from '../services/server-process.ts';
import { untilHolds } from '../support/until-holds.ts';
import type { Troupe } from '../../src/library/troupe.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

/** The error of a wait that ends once the conversation has come that far, and what the console says. */
async function askAt(
  baseUrl: string,
  hasCome: (troupe: Troupe) => Promise<boolean>,
): Promise<{ message: string; warned: string[] }> {
  const warned: string[] = [];
  await using troupe = await openTroupe(
    {
      agents: [{ id: 'bo', provider: 'openai-compatible', baseUrl, model: 'm', contextWindow: 8_000 }],
    } as unknown as TroupeInput,
    {
      env: { OPENAI_API_KEY: 'k' },
      onWarning: (error, where) =>
        void warned.push(`${where}: ${error instanceof Error ? error.message : String(error)}`),
    },
  );
  const stop = new AbortController();
  const asked = troupe.ask('c', { author: ANA, to: ['bo'], content: 'hi' }, { signal: stop.signal });
  const ended = asked.then(
    ({ outcome }) => outcome,
    (error: Error) => error.message,
  );
  await untilHolds(async () => expect(await hasCome(troupe)).toBe(true));
  stop.abort();
  return { message: await ended, warned };
}

const hasFailed = async (troupe: Troupe) =>
  (await troupe.events('c').catch(() => ({ events: [] }))).events.some(({ kind }) => kind === 'error');
const isBackingOff = async (troupe: Troupe) =>
  (await troupe.stuck({ afterMs: 0 })).stuck.some(({ reason }) => reason.kind === 'backing_off');
const isAsked = async (troupe: Troupe) =>
  (await troupe.stuck({ afterMs: 0 })).stuck.some(({ reason }) => reason.kind === 'model_silent');

describe('the error of a wait that ended without an answer names the cause', () => {
  test('nobody listens: the console says so too, with the address', async () => {
    const port = await freePort();
    const { message, warned } = await askAt(`http://127.0.0.1:${port}/v1`, hasFailed);
    expect(message).toMatch(
      new RegExp(
        `^the wait for an answer was ended; at work: @bo; @bo.*its last call failed: .*ECONNREFUSED 127\\.0\\.0\\.1:${port}`,
      ),
    );
    expect(warned.filter((each) => each.startsWith('model of @bo'))).toEqual([
      expect.stringMatching(
        new RegExp(
          `^model of @bo: 127\\.0\\.0\\.1:${port} does not answer: .*ECONNREFUSED.*@bo waits for it in c$`,
        ),
      ),
    ]);
  });

  const answers: [name: string, reply: FakeReply, hasCome: typeof isAsked, cause: RegExp][] = [
    [
      'it takes the request and says nothing',
      { hang: true },
      isAsked,
      /@bo no word from the model for \d+ s/,
    ],
    [
      'it begins an answer and stops',
      { text: 'Hello there, Ana', breaks: { after: 1, how: 'hang' } },
      isAsked,
      /@bo no word from the model for \d+ s/,
    ],
    [
      'it loads its model',
      { raw: { status: 503, body: JSON.stringify({ error: { message: 'Loading model', code: 503 } }) } },
      hasFailed,
      /@bo.*its last call failed: 503 Loading model/,
    ],
    [
      'it asks to wait',
      { error: { code: 'provider_rate_limited', message: 'Slow down.', retryAfter: '60' } },
      isBackingOff,
      /@bo model calls have failed for \d+ s \(provider_rate_limited\) \(its last call failed: 429 Slow down\./,
    ],
  ];
  test.each(answers)('%s', async (_, reply, hasCome, cause) => {
    await using server = await startFakeOpenAi(() => reply);
    expect((await askAt(server.url, hasCome)).message).toMatch(cause);
  });
});

test('a server that has sent nothing for a minute is told to the operators once', async () => {
  const model = modelOf(async function* (_, signal) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    yield { type: 'aborted' };
  });
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'hi', ['bo']);
  await until('the model is asked', () => model.requests.length === 1);
  await pass(stage, 59_000);
  expect(stage.warnings).toEqual([]);
  await pass(stage, 120_000);
  expect(stage.warnings.map(({ error, where }) => `${where}: ${(error as Error).message}`)).toEqual([
    expect.stringMatching(
      /^model of @bo: .* does not answer: the request was accepted, and nothing has come for 60 s\. @bo waits for it in c$/,
    ),
  ]);
});
