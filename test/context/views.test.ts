import fc from 'fast-check';
import { expect, test } from 'vitest';
import { foldEvent, forkView, createView, minute, showWaiting, type View } from '../../src/context/index.ts';
import type { AgentId, Event } from '../../src/events/index.ts';
import { bytes, invalidities, misplaced, occurrences, visibleSeqs } from '../support/check-prompt.ts';
import { promptOf, rebuilt, SECRET, viewOf } from '../support/log-player.ts';
import { AGENTS, moves, RandomRun } from '../support/random-run.ts';

const RUNS = { numRuns: 400 };

test('every request contains every visible event once, with its words, and nothing else', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      for (const { agent, prompt, log, outputs } of player.sent) {
        const visible = visibleSeqs(log, agent);
        expect(misplaced(withoutAhead(prompt.messages, log.length), visible)).toEqual([]);
        const seen = new Set(visible);
        for (const event of log) {
          const isOwn = event.author.id === agent && !(event.to as string[]).includes(agent);
          for (const word of wordsOf(event, isOwn)) {
            expect([word, occurrences(prompt.messages, word)]).toEqual([word, seen.has(event.seq) ? 1 : 0]);
          }
        }
        for (const draft of outputs) {
          const isPast = isNote(draft) && draft !== outputs.at(-1);
          for (const word of wordsOf(draft as Event, true))
            expect(occurrences(prompt.messages, word)).toBe(isPast ? 0 : 1);
        }
      }
    }),
    RUNS,
  );
});

test('every preview contains every visible event once, at every index of the log', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { log } = new RandomRun().play(all).player;
      for (const agent of AGENTS) {
        const view = createView(agent as AgentId, SECRET);
        for (const event of log) {
          foldEvent(view, event);
          const fork = forkView(view);
          if (!fork.turn) showWaiting(fork);
          const waiting = new Set(fork.pending.map(({ seq }) => seq));
          const isNoted = isNote(event) && event.author.id === agent;
          const visible = [...visibleSeqs(log.slice(0, event.seq), agent), ...(isNoted ? [event.seq] : [])];
          if (isOwnOf(event, agent)) expect(fork.note !== null).toBe(isNoted);
          expect(
            misplaced(
              promptOf(fork).messages,
              visible.filter((seq) => !waiting.has(seq)),
            ),
          ).toEqual([]);
        }
      }
    }),
    { numRuns: 100 },
  );
});

test('a request has the same bytes from a warm view, from a cold one, and from events after a JSON round trip', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      for (const sent of player.sent) {
        const cold = rebuilt(sent);
        expect(bytes(cold.messages)).toEqual(bytes(sent.prompt.messages));
        expect([cold.chain, cold.tokens]).toEqual([sent.prompt.chain, sent.prompt.tokens]);
        expect(rebuilt(JSON.parse(JSON.stringify(sent)) as typeof sent)).toEqual(cold);
      }
    }),
    RUNS,
  );
});

test('a view kept warm through every turn equals the one built from the whole log', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      for (const agent of AGENTS) {
        expect(state(player.view(agent))).toEqual(state(viewOf(agent, player.log)));
      }
    }),
    RUNS,
  );
});

test('each request starts with all bytes of the previous one, except for a note at its end', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      const before = new Map<string, string[]>();
      for (const { agent, prompt, turn } of player.sent) {
        // A turn without an end in the log loses its output.
        if (!ended(player.log, turn.id)) continue;
        const now = bytes(prompt.messages);
        const then = before.get(agent) ?? [];
        expect(now.slice(0, then.length)).toEqual(then);
        before.set(agent, prompt.layers.some(({ name }) => name === 'note') ? now.slice(0, -1) : now);
      }
    }),
    RUNS,
  );
});

test('providers accept every request', () => {
  fc.assert(
    fc.property(moves, (all) => {
      for (const { prompt } of new RandomRun().play(all).player.sent) {
        expect(invalidities(prompt.messages)).toEqual([]);
      }
    }),
    RUNS,
  );
});

test("an agent's own words are never in a user message, and other words, like the note of a failure, never in an assistant message", () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      for (const { agent, prompt, log } of player.sent) {
        const authors = new Map(log.map((event) => [event.seq, event]));
        for (const { role, seqs } of prompt.messages) {
          for (const seq of seqs) {
            const event = authors.get(seq);
            if (!event) continue;
            const mine = event.author.id === agent && !(event.to as string[]).includes(agent);
            const late = event.kind === 'tool.result' && role === 'user';
            const isWordless =
              (event.kind === 'turn.failed' || event.kind === 'turn.aborted') &&
              event.body.partial.trim() === '';
            expect([seq, role === 'user']).toEqual([seq, !mine || late || isWordless]);
          }
        }
      }
    }),
    RUNS,
  );
});

test('a preview does not change its view', () => {
  fc.assert(
    fc.property(moves, (all) => {
      const { player } = new RandomRun().play(all);
      for (const { agent } of player.sent) {
        const view = player.views.get(agent);
        if (!view) continue;
        const before = structuredClone(state(view));
        const fork = forkView(view);
        for (const event of player.log.slice(fork.upTo)) foldEvent(fork, event);
        if (!fork.turn) showWaiting(fork);
        promptOf(fork);
        expect(state(view)).toEqual(before);
      }
    }),
    { numRuns: 100 },
  );
});

function state({ slots, tokens, chain, pending, people, present, stated, calls, lost, turn, note }: View) {
  return {
    note,
    slots,
    tokens,
    chain,
    pending: pending.map(({ seq }) => seq),
    people,
    present,
    stated,
    calls,
    lost,
    turn: turn?.id ?? null,
  };
}

/** Removes the output of the running turn, which the pinned log lacks. */
function withoutAhead<M extends { seqs: number[] }>(messages: readonly M[], head: number): M[] {
  return messages.map((message) => ({ ...message, seqs: message.seqs.filter((seq) => seq <= head) }));
}

function ended(log: readonly Event[], turn: string): boolean {
  return log.some((event) => event.turn === turn && /^turn\.(?:done|failed|aborted)$/.test(event.kind));
}

function isOwnOf({ author, to }: Event, agent: string): boolean {
  return author.id === agent && !(to as string[]).includes(agent);
}

/** Notes are visible to one step only. */
function isNote(event: Pick<Event, 'kind' | 'body'>): boolean {
  return event.kind === 'injection' && (event.body as { oneStep: boolean }).oneStep;
}

/** The words of an event that a reader may see: of another agent's step, only the text and not the calls. */
function wordsOf(event: Event, own: boolean): string[] {
  if (event.kind === 'step' && !own) return event.body.content.match(/w\d+z/g) ?? [];
  if (event.kind === 'tool.result' && !own) return [];
  return JSON.stringify(event.body).match(/w\d+z/g) ?? [];
}

test.each([
  [Date.UTC(2026, 10, 21, 22, 5, 59), '2026-11-21T22:05Z'],
  [Number.MAX_SAFE_INTEGER, '+275760-09-13T00:00Z'],
])('the time %i, which an imported event may name, is said as %s', (at, said) => {
  expect(minute(at)).toBe(said);
});
