import fc from 'fast-check';
import type { Note } from '../../src/library/troupe.ts';

/** One step of a turn: what its model says in each of several rounds, of which only the last succeeds. */
interface Step {
  rounds: { text: string; call: boolean }[];
  pieces: number;
}
export interface Plan {
  /** Attempts of the turn before the one that counts. */
  attempts: number;
  steps: Step[];
  reply: string;
  /** The share of live parts that the reader gets: others are lost. */
  lost: number[];
  /** Where the reader is told again what was said so far. */
  again: number[];
}

const words = fc.string({ minLength: 0, maxLength: 12, unit: 'grapheme' });
export const plan: fc.Arbitrary<Plan> = fc.record({
  attempts: fc.integer({ min: 0, max: 2 }),
  steps: fc.array(
    fc.record({
      rounds: fc.array(fc.record({ text: words, call: fc.boolean() }), { minLength: 1, maxLength: 3 }),
      pieces: fc.integer({ min: 1, max: 4 }),
    }),
    { maxLength: 3 },
  ),
  reply: words.map((text) => text || 'yes'),
  lost: fc.array(fc.nat(200), { maxLength: 30 }),
  again: fc.array(fc.nat(200), { maxLength: 6 }),
});

export const at = { conversation: 'c', agent: 'bo', turn: 'c:bo:1' } as const;

/** Live parts of one round. */
export function roundParts(place: object, text: string, pieces: number, call: string | null): Note[] {
  const size = Math.max(1, Math.ceil(text.length / pieces));
  const parts: object[] = [];
  for (let index = 0; index < text.length; index += size)
    parts.push({ type: 'text', ...at, ...place, index, text: text.slice(index, index + size) });
  if (call !== null)
    for (const [index, text] of [
      [0, '{"n'],
      [3, '":1}'],
    ])
      parts.push({ type: 'arguments', ...at, ...place, call, name: 'look', index, text });
  return parts as Note[];
}

export function committed(kind: string, id: string, body: object): Note {
  const event = {
    kind,
    id: `c:bo:1:${id}`,
    conversation: 'c',
    turn: 'c:bo:1',
    author: { kind: 'agent', id: 'bo', name: 'Bo' },
    body,
  };
  return { type: 'event', event } as unknown as Note;
}

/** All that happens: live parts of every attempt, then the events. */
export function scene({ attempts, steps, reply }: Plan): { live: Note[]; stored: Note[] } {
  const live: Note[] = [];
  const stored: Note[] = [];
  for (let attempt = 1; attempt <= attempts + 1; attempt++) {
    let round = 0;
    for (const [number, { rounds, pieces }] of steps.entries()) {
      for (const [index, { text, call }] of rounds.entries()) {
        round += 1;
        const place = { attempt, step: number + 1, round };
        const isLast = index === rounds.length - 1;
        const id = isLast || call ? 'call_1' : null;
        live.push(...roundParts(place, text, pieces, id));
        if (!isLast) live.push({ type: 'void', ...at, ...place, reason: 'overloaded', all: false } as never);
        else {
          const of = { ...at, ...place, call: 'call_1', name: 'look' };
          live.push({ type: 'called', ...of, args: '{"n":1}' } as never);
          live.push({ type: 'result', ...of, outcome: 'done', text: 'seen' } as never);
        }
      }
    }
    const place = { attempt, step: steps.length + 1, round: round + 1 };
    live.push(...roundParts(place, reply, 3, null));
    if (attempt <= attempts)
      live.push({ type: 'void', ...at, ...place, reason: 'killed', all: true } as never);
  }
  for (const [index, { rounds }] of steps.entries()) {
    const calls = [{ id: 'call_1', name: 'look', args: '{"n":1}' }];
    stored.push(committed('step', `step:${index}`, { index, content: rounds.at(-1)?.text ?? '', calls }));
    const result = { call: 'call_1', name: 'look', outcome: 'done', content: 'seen' };
    stored.push(committed('tool.result', `result:${index}.0`, result));
  }
  stored.push(committed('message', 'reply', { content: reply }));
  stored.push(committed('turn.done', 'end', {}));
  return { live, stored };
}
