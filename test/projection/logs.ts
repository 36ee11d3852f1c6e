import type { Event, EventDraft, EventOf } from '../../src/events/index.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import type { Projection } from '../../src/library/projection/model.ts';
import { logged } from '../support/log-player.ts';

export const CONVERSATION = 'c';
export const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;
export const SYSTEM = { kind: 'system', id: 'troupe', name: 'Troupe' } as const;

export function agent(id: string) {
  return { kind: 'agent' as const, id, name: id };
}

type Loose = Partial<Omit<EventDraft, 'id' | 'body' | 'kind' | 'to' | 'turn'>> & {
  id?: string;
  kind: string;
  body: unknown;
  to?: string[];
  turn?: string;
};

/** A log written by hand. Events get their seqs; the default author is Ana and the default addressees are none. */
export function logOf(...drafts: Loose[]): Event[] {
  return drafts.map((draft, index) =>
    logged({ id: `e${index + 1}`, author: ANA, to: [], ...draft } as EventDraft, index + 1),
  );
}

export function says(text: string, to: string[] = [], by: Loose['author'] = ANA): Loose {
  return { kind: 'message', author: by, to, body: { content: text } };
}

export function starts(
  id: string,
  number: number,
  upTo: number,
  inputs: number[],
  more: Partial<EventOf<'turn.started'>['body']> = {},
): Loose {
  const body = { upTo, inputs, live: {}, join: 'full', baseline: 'b', ...more };
  return { kind: 'turn.started', author: agent(id), turn: `c:${id}:${number}`, body };
}

export const USAGE = { input: 100, output: 10, cacheRead: 60, cacheWrite: 5, reasoning: 3 };

export function ends(
  id: string,
  number: number,
  how: 'done' | 'failed' | 'aborted',
  covers: number[],
  partial = '',
): Loose {
  const bodies = {
    done: { covers, steps: 1, usage: USAGE },
    failed: { covers, code: 'provider_failed', message: 'it said 500', partial },
    aborted: { covers, by: 'command', partial },
  };
  return { kind: `turn.${how}`, author: agent(id), turn: `c:${id}:${number}`, body: bodies[how] };
}

export function folded(log: Iterable<Event>): Projection {
  return foldEvents(newProjection(CONVERSATION), log);
}

/** `<condition> <state>` of each agent. */
export function conditions({ agents }: Projection): Record<string, string> {
  return Object.fromEntries(
    Object.values(agents).map(({ id, condition, state }) => [id, `${condition} ${state}`]),
  );
}
