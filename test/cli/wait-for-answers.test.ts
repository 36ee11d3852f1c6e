import { afterEach, expect, test, vi } from 'vitest';
import type { Client, Frame } from '../../src/cli/client/client.ts';
import { waitForAnswers } from '../../src/cli/commands/act.ts';
import type { Event } from '../../src/events/index.ts';
import type { ActorStatus } from '../../src/library/troupe.ts';

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

function eventAt(seq: number, more: object): Event {
  return {
    id: `e${seq}`,
    seq,
    to: [],
    author: { kind: 'system', id: 'troupe', name: 'Troupe' },
    ...more,
  } as never;
}

const SENT = eventAt(2, {
  kind: 'message',
  author: { kind: 'user', id: 'u', name: 'Uma' },
  to: ['worker'],
  body: { content: 'go' },
});
const NOTICE = eventAt(3, {
  id: 'failed:worker:1',
  kind: 'error',
  body: { code: 'actor_corrupt', message: '@worker has failed: nonsense' },
});

/** The messages about @worker, with `status` before and after the message. */
async function reported(
  status: (isSent: boolean) => ActorStatus['status'],
  frames: () => AsyncGenerator<Frame, void>,
) {
  const written: string[] = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  vi.spyOn(console, 'log').mockReturnValue();
  let isSent = false;
  const client = {
    isDirect: false,
    head: async () => (isSent ? 3 : 1),
    actors: async () => [
      { agent: 'worker', status: status(isSent), turn: null, lastProcessedIndex: isSent ? 2 : 1 },
    ],
    tasks: async () => ({ tasks: [] }),
    follow: frames,
  } as unknown as Client;
  const act = async () => ((isSent = true), SENT);
  await waitForAnswers(client, 'c', act, { stop: new AbortController(), asJson: true });
  return written.join('');
}

test('an agent that the message makes fail is reported with the reason, however late the notice is', async () => {
  const late = async function* (): AsyncGenerator<Frame, void> {
    yield { type: 'event', event: SENT };
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    yield { type: 'event', event: NOTICE };
  };
  expect(await reported((isSent) => (isSent ? 'failed' : 'idle'), late)).toContain('"actor_corrupt"');
});

test('what is stored is awaited although all agents are idle, as while a server restarts', async () => {
  const looks: unknown[] = [];
  const late = async function* (): AsyncGenerator<Frame, void> {
    yield { type: 'event', event: SENT };
    await vi.waitUntil(() => looks.length > 3, { timeout: 60_000 });
    yield { type: 'event', event: NOTICE };
  };
  const written = await reported((isSent) => (isSent && looks.push('look'), 'idle'), late);
  expect(written).toContain('"actor_corrupt"');
});

test('an agent that had failed before is not awaited', async () => {
  const never = async function* (): AsyncGenerator<Frame, void> {
    yield { type: 'event', event: SENT };
    await new Promise(() => {});
  };
  expect(await reported(() => 'paused', never)).toContain('"command_refused"');
});
