import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { startFakeAnthropic, startFakeOpenAiResponses } from '../../packages/testing/src/fake-vendors.ts';
import type { Cli } from './fake-vendor.ts';

export interface Economy {
  /** Characters of input to the program over all turns. */
  sent: number;
  /** Characters of the whole prompts of all turns. */
  whole: number;
  percent: number;
  medianMs: number;
}

const TURNS = 50;
const ANSWER = 'That depends on the season, on the harbour and on who keeps the books there. '.repeat(6);
const PERSON = { kind: 'user', id: 'u1', name: 'Ana' } as const;

/** A conversation of fifty turns with a program that remembers, and its cost with one that does not. */
export async function playFifty(cli: Cli): Promise<Economy> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-fifty-'));
  const start = cli === 'claude-code' ? startFakeAnthropic : startFakeOpenAiResponses;
  await using server = await start(() => ({ text: ANSWER, chunk: 60 }));
  const troupe = await createTroupe(
    {
      agents: [
        {
          id: 'cli',
          provider: cli,
          model: cli === 'codex' ? 'gpt-5.5' : 'sonnet',
          baseUrl: server.url,
          apiKeyEnv: 'KEY_OF_RIG',
        },
      ],
    },
    {
      data: join(dir, 'data'),
      env: { ...process.env, KEY_OF_RIG: 'sk-ant-key-of-rig' },
      onWarning: () => undefined,
    },
  );
  const times: number[] = [];
  let sent = 0;
  let whole = 0;
  try {
    for (let turn = 1; turn <= TURNS; turn++) {
      const began = performance.now();
      const content = `Question ${turn}: what would you advise the harbour office about its books, and why?`;
      await troupe.send('talk', { author: PERSON, content, to: ['cli'] });
      await troupe.idle();
      times.push(performance.now() - began);
      const { messages } = await troupe.promptOf(`talk:cli:${turn}`);
      sent += messages.reduce((sum, message) => sum + message.content.length, 0);
      whole += lengthOf(server.requests.at(-1)?.body);
    }
  } finally {
    await troupe.close();
    rmSync(dir, { recursive: true, force: true });
  }
  const median = times.toSorted((a, b) => a - b)[TURNS >> 1] ?? 0;
  return { sent, whole, percent: (100 * sent) / whole, medianMs: median };
}

/** Length of all texts in a request to the API: what a provider without memory would need. */
function lengthOf(body: unknown): number {
  const { messages, input } = body as { messages?: unknown; input?: unknown };
  const texts = (value: unknown): number => {
    if (typeof value === 'string') return value.length;
    if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + texts(item), 0);
    return typeof value === 'object' && value !== null ? texts(Object.values(value)) : 0;
  };
  return texts(messages ?? input ?? []);
}
