import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  copyFolds,
  isAtRest,
  isWorthStoring,
  restoreFolds,
  storeFolds,
} from '../../src/actors/features/checkpoints/feature.ts';
import { createCheckpoints, pack, unpack } from '../../src/actors/features/checkpoints/checkpoints.ts';
import { type Checkpoints, NOTHING_STORED, catchUp, type Folded } from '../../src/actors/log/read-log.ts';
import {
  beginTurn,
  createView,
  DEFAULT_POLICY,
  foldAhead,
  roomOf,
  scaledPolicy,
} from '../../src/context/index.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { ActorAddress, Event } from '../../src/events/index.ts';
import { newTaskFold } from '../../src/machines/task-fold.ts';
import { promptOf, SECRET, type Sent } from '../support/log-player.ts';
import { moves, RandomRun } from '../support/random-run.ts';

const WINDOW = 4_000;
const FILLER = ' as was agreed before, the office keeps its folds in the second drawer;'.repeat(6);
const policy = scaledPolicy(DEFAULT_POLICY, WINDOW);
const room = roomOf({ available: WINDOW, fixed: 0, ratio: 1, reason: 'over_budget' }, policy);

/** A store with the derived data of one log. */
function storeOf(log: readonly Event[]) {
  const texts = new Map<string, string>();
  const store = {
    putDerived: async (_: unknown, key: string, text: string) =>
      void (texts.has(key) || texts.set(key, text)),
    readDerived: async (_: unknown, keys: readonly string[]) => keys.map((key) => texts.get(key) ?? null),
    derivedKeys: async (_: unknown, prefix: string) =>
      [...texts.keys()].filter((key) => key.startsWith(prefix)).sort(),
    removeDerived: async (_: unknown, keys: readonly string[]) => keys.forEach((key) => texts.delete(key)),
    markOf: async (_: unknown, seq: number) => log[seq - 1]?.id ?? null,
  };
  return { texts, store };
}

const quiet = { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() };

function open(store: ReturnType<typeof storeOf>['store'], version = ''): Checkpoints {
  return createCheckpoints({
    store,
    clock: quiet,
    version,
    least: 1,
    onWarning: (error) => {
      throw error;
    },
  });
}

/** Folds the events from a checkpoint on, if there is one; otherwise from the first event. */
async function foldOf(log: readonly Event[], agent: string, from: Folded | null): Promise<Folded> {
  const folded = from ?? { view: createView(agent as ActorAddress['agent'], SECRET), tasks: newTaskFold() };
  const source = {
    readPage: async (_: unknown, { after }: { after: number }) => ({
      events: log.slice(after),
      isLast: true,
    }),
    readById: async (_: unknown, id: string) => log.find((event) => event.id === id) ?? null,
  };
  await catchUp(source, addressOf(agent), folded);
  return folded;
}

function addressOf(agent: string): ActorAddress {
  return { tenant: 'default', conversation: 'c', agent } as ActorAddress;
}

/** The request from these folds, with the output of its turn. */
function requestOf({ view }: Folded, { turn, outputs, compactions, prompt }: Sent) {
  // The engine supplies compactions that are newer than the pinned turn.
  for (const event of compactions)
    if (event.kind === 'compaction' && event.seq > turn.upTo) view.compactions.set(event.id, event.body);
  beginTurn(view, turn);
  for (const draft of outputs) foldAhead(view, draft, countTokens);
  return promptOf(view, prompt.step);
}

/** 0 <= n < 1, evenly: doubles of fast-check are mostly tiny. */
const share = fc.integer({ min: 0, max: 9_999 }).map((n) => n / 10_000);

type Damage =
  | 'none'
  | 'removed'
  | 'truncated'
  | 'flipped'
  | 'stale'
  | 'other version'
  | 'other log'
  | 'other secret';
const damage = fc.constantFrom<Damage>(
  ...([
    'none',
    'removed',
    'truncated',
    'flipped',
    'stale',
    'other version',
    'other log',
    'other secret',
  ] as const),
);

/** Damages the newest checkpoint. `place` chooses where, 0 <= place < 1. */
function spoil(texts: Map<string, string>, kind: Damage, place: number): void {
  const key = [...texts.keys()].sort().at(-1);
  const text = key === undefined ? undefined : texts.get(key);
  if (key === undefined || text === undefined) return;
  const at = Math.floor(place * text.length);
  const flipped = String.fromCharCode(text.charCodeAt(at) ^ 1);
  if (kind === 'removed' || kind === 'stale') texts.delete(key);
  if (kind === 'truncated') texts.set(key, text.slice(0, at));
  if (kind === 'flipped') texts.set(key, text.slice(0, at) + flipped + text.slice(at + 1));
}

test('a request from a checkpoint, whole or damaged, is the request from the first event', async () => {
  let used = 0;
  let compacted = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(moves, moves, moves).map((parts) => parts.flat()),
      damage,
      fc.tuple(share, share, share),
      async (all, kind, [which, where, spot]) => {
        const { player } = new RandomRun({ filler: FILLER, compaction: () => ({ policy, room }) }).play(all);
        const sent = player.sent[Math.floor(which * player.sent.length)];
        if (!sent) return;
        const { store, texts } = storeOf(sent.log);
        const address = addressOf(sent.agent);
        const writer = open(store, kind === 'other version' ? ' another' : '');
        // As by a process that has worked for a while, up to some place in the log.
        const written = sent.log.slice(0, Math.floor(where * (sent.log.length + 1)));
        const worked = await foldOf([], sent.agent, null);
        let stored = NOTHING_STORED;
        for (const { seq } of written) {
          await foldOf(written.slice(0, seq), sent.agent, worked);
          const place = await writer.mark(address, seq);
          const isKept = isAtRest(worked.view) && isWorthStoring({ ...worked, stored }, { least: 1 });
          if (!place || !isKept) continue;
          stored = storeFolds(writer, address, copyFolds(worked), place);
          await writer.flush();
        }
        expect(texts.size).toBeLessThanOrEqual(2);
        spoil(texts, kind, spot);
        const log =
          kind === 'other log'
            ? sent.log.map((event) => ({ ...event, id: `${event.id}:2` }) as Event)
            : sent.log;
        const found = await restoreFolds(
          open(kind === 'other log' ? storeFrom(texts, log) : store),
          address,
          { secret: kind === 'other secret' ? 'another' : SECRET },
        );
        if (kind.startsWith('other')) expect(found).toBeNull();
        used += found ? 1 : 0;
        const folded = await foldOf(sent.log, sent.agent, found?.folded ?? null);
        const anew = await foldOf(sent.log, sent.agent, null);
        expect({ ...folded.view, compactions: null }).toEqual({ ...anew.view, compactions: null });
        expect(folded.tasks).toEqual(anew.tasks);
        const request = requestOf(folded, sent);
        compacted += request.cuts.length > 0 ? 1 : 0;
        expect(request).toEqual(requestOf(anew, sent));
        expect(JSON.stringify([...texts])).not.toContain(`"secret":"${SECRET}"`);
      },
    ),
    { numRuns: 250 },
  );
  expect(used).toBeGreaterThan(0);
  expect(compacted).toBeGreaterThan(0);
});

function storeFrom(texts: Map<string, string>, log: readonly Event[]) {
  const { store, texts: copy } = storeOf(log);
  for (const [key, text] of texts) copy.set(key, text);
  return store;
}

const leaf = fc.oneof(
  fc.string(),
  fc.constantFrom('~', '~r0', '~u', '~~', '\ud800', 'a text that is long enough to be shared'),
  fc.double(),
  fc.constantFrom(undefined, null, true, -0, Infinity, NaN),
);
const plain = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('value')),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('~m', '__proto__', 'constructor')), tie('value'), {
      noNullPrototype: true,
    }),
    fc.array(fc.tuple(tie('value'), tie('value'))).map((entries) => new Map(entries)),
    fc.array(tie('value')).map((parts) => new Set(parts)),
  ),
})).value;

test('plain data is packed and unpacked without a change, shared parts once', () => {
  fc.assert(
    fc.property(plain, (value) => {
      expect(unpack(pack([value, value]))).toEqual([value, value]);
    }),
  );
  const part = { text: 'a text that is long enough to be shared' };
  const [one, other] = unpack(pack([part, part, part.text])) as [object, object, string];
  expect(one).toBe(other);
  expect(pack(Array.from({ length: 100 }, () => part)).length).toBeLessThan(1_000);
});

test('keys that JSON escapes survive the parser of the running Node', () => {
  // Node 24 reads the key `\\` for some of these, depending on which objects it parsed before.
  const keys = ['"', '\\', '\n', '\ud800', '\u0001', 'é"', 'a'];
  for (let round = 0; round < 2_000; round += 1) {
    const chosen = keys.filter((_, at) => ((round * 37) >> at) % 2 === 0);
    const value = Object.fromEntries(chosen.map((key, at) => [key, at % 2 ? '' : at]));
    expect(unpack(pack(value))).toEqual(value);
  }
});

test('what is no plain data is refused', () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  for (const value of [cycle, () => 1, Symbol('s'), 1n, new Date(), new (class Box {})()])
    expect(() => pack([value])).toThrow(TypeError);
});
