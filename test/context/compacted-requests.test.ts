import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEFAULT_POLICY, roomOf, scaledPolicy } from '../../src/context/index.ts';
import type { PromptMessage } from '../../src/events/index.ts';
import { bytes, invalidities, misplaced, visibleSeqs } from '../support/check-prompt.ts';
import { rebuilt, type Sent, viewOf } from '../support/log-player.ts';
import { AGENTS, moves, RandomRun } from '../support/random-run.ts';

const RUNS = { numRuns: 300 };
const FILLER = ` and so on, ${'as was said before in so many words '.repeat(12)}`;

/** A run with windows so small that views are compacted again and again, before random requests. */
function crowdedRun([all, available, when]: [
  Parameters<RandomRun['play']>[0],
  number,
  boolean[],
]): RandomRun {
  const policy = scaledPolicy(DEFAULT_POLICY, available);
  const compaction = {
    policy,
    room: roomOf({ available, fixed: 50, ratio: 1, reason: 'over_budget' }, policy),
  };
  return new RandomRun({
    filler: FILLER,
    compaction: (n) => (when[n % when.length] ? compaction : null),
  }).play(all);
}

const crowded = fc.tuple(
  moves,
  fc.constantFrom(300, 1_500, 4_000, 12_000),
  fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
);

/**
 * The events that a summary replaces in a request: all up to its position, except those that the adopting turn had to
 * answer.
 */
function covered({ prompt }: Sent, all: readonly Sent[]): (seq: number) => boolean {
  const adopted = prompt.cuts.filter(({ compaction }) => compaction).at(-1);
  const turn = all.find((sent) => adopted?.event.startsWith(`${sent.turn.id}:`))?.turn;
  return (seq) => seq <= (adopted?.upTo ?? 0) && !turn?.inputs.includes(seq);
}

/** Seqs of call groups that the summary covers only in part: such groups must stay whole. */
function partedGroups(messages: readonly PromptMessage[], isCovered: (seq: number) => boolean): Set<number> {
  const parted = new Set<number>();
  for (let at = 0; at < messages.length;) {
    let end = at + 1;
    while (messages[end]?.role === 'tool') end += 1;
    const seqs = messages.slice(at, end).flatMap((message) => message.seqs);
    if (end > at + 1 && !seqs.every(isCovered)) for (const seq of seqs) parted.add(seq);
    at = end;
  }
  return parted;
}

test('every visible event is in a request once or covered by its summary, after any compaction', () => {
  let rewritten = 0;
  fc.assert(
    fc.property(crowded, (run) => {
      const { player } = crowdedRun(run);
      for (const sent of player.sent) {
        const { agent, prompt, log } = sent;
        rewritten += prompt.cuts.length;
        const isCovered = covered(sent, player.sent);
        const whole = partedGroups(prompt.messages, isCovered);
        const visible = visibleSeqs(log, agent).filter((seq) => !isCovered(seq) || whole.has(seq));
        const messages = prompt.messages.map((m) => ({
          ...m,
          seqs: m.seqs.filter((seq) => seq <= log.length),
        }));
        expect(misplaced(messages, visible)).toEqual([]);
      }
    }),
    RUNS,
  );
  expect(rewritten).toBeGreaterThan(0);
});

test('providers accept a request after a compaction', () => {
  fc.assert(
    fc.property(crowded, (run) => {
      for (const { prompt } of crowdedRun(run).player.sent) expect(invalidities(prompt.messages)).toEqual([]);
    }),
    RUNS,
  );
});

test('a compacted request has the same bytes when built from the log and the output of the turn alone', () => {
  fc.assert(
    fc.property(crowded, (run) => {
      for (const sent of crowdedRun(run).player.sent) {
        const cold = rebuilt(sent);
        expect(bytes(cold.messages)).toEqual(bytes(sent.prompt.messages));
        expect([cold.chain, cold.tokens, cold.layers]).toEqual([
          sent.prompt.chain,
          sent.prompt.tokens,
          sent.prompt.layers,
        ]);
      }
    }),
    RUNS,
  );
});

test('a view compacted while warm equals the one built from the whole log', () => {
  fc.assert(
    fc.property(crowded, (run) => {
      const { player } = crowdedRun(run);
      for (const agent of AGENTS) {
        const { slots, tokens, chain, floor, cuts } = player.view(agent);
        const cold = viewOf(agent, player.log);
        expect({ slots, tokens, chain, floor, cuts }).toEqual({
          slots: cold.slots,
          tokens: cold.tokens,
          chain: cold.chain,
          floor: cold.floor,
          cuts: cold.cuts,
        });
      }
    }),
    RUNS,
  );
});

test('between two compactions each request starts with all bytes of the previous one, except for a note', () => {
  fc.assert(
    fc.property(crowded, (run) => {
      const { player } = crowdedRun(run);
      const last = new Map<string, Sent>();
      for (const sent of player.sent) {
        const before = last.get(sent.agent);
        last.set(sent.agent, sent);
        if (!before || before.prompt.cuts.length !== sent.prompt.cuts.length) continue;
        // Prompts of an abandoned turn are in no log.
        if (!player.log.some(({ id }) => id === `${before.turn.id}:end`)) continue;
        const isNoted = before.prompt.layers.some(({ name }) => name === 'note');
        const sentBefore = bytes(before.prompt.messages.slice(0, isNoted ? -1 : undefined));
        expect(bytes(sent.prompt.messages).slice(0, sentBefore.length)).toEqual(sentBefore);
      }
    }),
    RUNS,
  );
});

test('the tokens of a view are the sum over its messages, and a compaction lowers them', () => {
  fc.assert(
    fc.property(crowded, (run) => {
      const { player } = crowdedRun(run);
      for (const view of player.views.values()) {
        expect(view.tokens).toBe(view.slots.reduce((sum, { tokens }) => sum + tokens, 0));
        for (const { tokens } of view.cuts) expect(tokens.after).toBeLessThan(tokens.before);
      }
    }),
    RUNS,
  );
});
