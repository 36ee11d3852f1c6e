import { createReadStream, readFileSync } from 'node:fs';
import path from 'node:path';
import { countTokens } from '../../../../src/context/budget/tokens.ts';
import type { ConversationRun } from '../../../../packages/evals/src/index.ts';
import type { RecordedAnswer } from '../../../../packages/evals/src/recording.ts';
import type { Event } from '../../../../src/events/index.ts';
import { importTranscript } from '../../../../src/library/import/index.ts';
import { priceOf } from '../../../../src/providers/prices.ts';
import { logged } from '../../../../test/support/log-player.ts';
import { ASSISTANT } from '../../../../test/support/real-logs.ts';

/** Where conversations were held: all of a file have the same policy. */
export interface Desk {
  instructions: string;
  trajectories: ConversationRun[];
}

/** The model whose prices and cache are assumed. */
export const MODEL = 'claude-sonnet-4-5';
const WITH_POLICY = 'gpt-4o-airline-60.json';
const FILES = [WITH_POLICY, 'tau-airline-few_shot.jsonl', 'tau-retail-few_shot.jsonl'] as const;

/** At most so many trajectories of each file. */
export async function readDesks(data: string, most: number): Promise<Desk[]> {
  const desks: Desk[] = [];
  for (const file of FILES) {
    const trajectories = (await readTrajectories(path.join(data, 'tau', file))).slice(0, most);
    desks.push({ instructions: policyOf(path.join(data, 'tau', file)), trajectories });
  }
  return desks;
}

async function readTrajectories(file: string): Promise<ConversationRun[]> {
  const logs = new Map<string, Event[]>();
  const options = { agent: ASSISTANT as never, fileName: path.basename(file) };
  for await (const { conversation, draft } of importTranscript(createReadStream(file), options)) {
    const log = logs.get(conversation) ?? [];
    logs.set(conversation, log);
    if (draft) log.push({ ...logged(draft, log.length + 1), conversation });
  }
  return [...logs].map(([conversation, events]) => ({
    conversation: conversation as Event['conversation'],
    events,
    turns: [],
    durationMs: 0,
    ended: { kind: 'done' },
    place: null,
    users: [],
  }));
}

/** The importer leaves system messages out, since agents bring their own instructions. */
function policyOf(file: string): string {
  if (path.basename(file) !== WITH_POLICY) return 'Help the customer.';
  const [first] = JSON.parse(readFileSync(file, 'utf8')) as { traj: { content: string }[] }[];
  return first?.traj[0]?.content ?? '';
}

/** Tokens of an answer. */
export function outputOf({ content, calls = [] }: Pick<RecordedAnswer, 'content' | 'calls'>): number {
  return countTokens([content, ...calls.map(({ name, args }) => `${name} ${args}`)].join('\n'));
}

/** What the calls of a model cost: sums of cache reports. */
export function costSum() {
  let input = 0;
  let read = 0;
  let cost = 0;
  let uncached = 0;
  return {
    /** `cost` and `uncached` in fresh input tokens. */
    add(total: { input: number; read: number; cost: number; uncached: number }) {
      input += total.input;
      read += total.read;
      cost += total.cost;
      uncached += total.uncached;
    },
    figures() {
      const dollars = (priceOf(MODEL)?.input ?? Number.NaN) / 1e6;
      return {
        kiloTokens: input / 1_000,
        cachedShare: (100 * read) / input,
        dollars: cost * dollars,
        dollarsUncached: uncached * dollars,
      };
    },
  };
}
