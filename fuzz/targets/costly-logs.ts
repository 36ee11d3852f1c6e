import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { below, pick, type Random } from '../../sim/random.ts';
import { createView, foldEvent, type Steps } from '../../src/context/index.ts';
import { beginTurnSteps } from '../../src/context/render/begin-turn.ts';
import { extractionSteps } from '../../src/context/compaction/compose.ts';
import { DEFAULT_POLICY } from '../../src/context/compaction/policy.ts';
import { countingWork } from '../../src/context/budget/tokens.ts';
import { peopleOf } from '../../src/context/text/people.ts';
import { summaryRequestSteps } from '../../src/context/summary/requests.ts';
import type { Event } from '../../src/events/index.ts';
import { COSTLY_TEXTS, costlyText } from '../../test/support/costly-texts.ts';
import { nastyText } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';

/**
 * Logs of texts that are slow to read, as a turn reads them.
 * L1  No step, and nothing counted between two steps, exceeds `MOST_OF_A_STEP` characters of work.
 * L2  All steps together are linear in the log.
 */
const MOST_OF_A_STEP = 2_097_152;
const MOST_PER_CHARACTER = 24;
const FIXED_WORK = 16 * 1_048_576;
/** Work between two turns of the event loop, as in the engine: what it takes there is what the fuzzer measures. */
const SLICE = 32_768;
const MOST_MESSAGES = 12;
const LONGEST = 65_536;

interface Said {
  author: string;
  name: string;
  content: string;
}

export function costlyLogsTarget(): Target<Said[]> {
  return { name: 'costly-logs', make: (random) => makeLog(random), run: readLog };
}

function makeLog(random: Random): Said[] {
  const kinds = Object.keys(COSTLY_TEXTS);
  return Array.from({ length: 1 + below(random, MOST_MESSAGES) }, () => {
    const length = random() < 0.1 ? LONGEST : below(random, 4_096);
    const content =
      random() < 0.3
        ? nastyText(random).slice(0, LONGEST)
        : costlyText(pick(random, kinds), length, 1 + below(random, 1e6));
    return {
      author: `eve${below(random, 20)}`,
      name: random() < 0.5 ? 'Eve' : nastyText(random).slice(0, 64),
      content,
    };
  });
}

async function readLog(said: readonly Said[]): Promise<string> {
  const log = said.map(eventOf);
  const chars = said.reduce((sum, { content }) => sum + content.length, 0);
  let counted = 0;
  const count = (text: string) => {
    counted += countingWork(text.length);
    return Math.ceil(text.length / 3);
  };
  const view = createView('bo' as never, 's');
  for (const event of log) foldEvent(view, event);
  const base = { events: log, previous: null, people: peopleOf(log), secret: 's', trusted: null, count };
  const every: Steps<unknown>[] = [
    extractionSteps({ ...base, ...COMPACTION, upTo: log.length }),
    summaryRequestSteps({ ...base, budgetTokens: 4_000, maxTokens: 100_000 }),
    beginTurnSteps(view, turnUpTo(log.length)),
  ];
  for (const steps of every) {
    let [sum, slice] = [0, 0];
    for (let step = steps.next(); !step.done; step = steps.next()) {
      const most = Math.max(step.value, counted);
      if (most > MOST_OF_A_STEP) throw new Broken(`a step of ${most} characters of work`);
      counted = 0;
      sum += step.value;
      slice += step.value;
      if (slice < SLICE) continue;
      slice = 0;
      await turnOfTheLoop();
    }
    if (sum > FIXED_WORK + MOST_PER_CHARACTER * chars)
      throw new Broken(`${sum} characters of work for a log of ${chars}`);
  }
  return 'accepted';
}

const COMPACTION = {
  number: 1,
  reason: 'over_budget' as const,
  by: 'bo' as never,
  before: 10_000_000,
  budget: 20_000,
  policy: DEFAULT_POLICY,
};

function turnUpTo(upTo: number) {
  return { id: 't', upTo, inputs: [upTo], live: {}, join: 'full', baseline: null } as never;
}

function eventOf({ author, name, content }: Said, index: number): Event {
  const place = { tenant: 'default', conversation: 'c', seq: index + 1, at: index, id: `e${index}`, to: [] };
  const by = { kind: 'user', id: author, name };
  return {
    ...place,
    tokens: Math.ceil(content.length / 3),
    author: by,
    kind: 'message',
    body: { content },
  } as unknown as Event;
}
