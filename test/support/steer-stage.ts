import { expect } from 'vitest';
import * as z from 'zod';
import {
  type BusyPolicy,
  DEFAULT_TENANT,
  type Event,
  type EventId,
  type EventOf,
  eventOf,
} from '../../src/events/index.ts';
import { readReceipts } from '../../src/library/inspect/prompts.ts';
import { defineTool, type Tool } from '../../src/tools/tool.ts';
import { ANA, type Stage } from './engine-stage.ts';

/** A tool that runs `say` during its first call only. */
export function meanwhile(say: () => Promise<unknown>): Tool {
  let said = false;
  return defineTool({
    name: 'look',
    description: 'takes its time',
    schema: z.object({}),
    idempotent: true,
    async run() {
      if (!said) {
        said = true;
        await say();
      }
      return 'seen';
    },
  });
}

export async function post(
  stage: Pick<Stage, 'troupe'>,
  content: string,
  to: string[],
  { whileBusy, id, author = ANA }: { whileBusy?: BusyPolicy; id?: string; author?: Event['author'] } = {},
): Promise<Event> {
  const message = { author, content, to, ...(whileBusy && { whileBusy }), ...(id && { id: id as EventId }) };
  return (await stage.troupe.send('c', message)).event;
}

export function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

export type Ending = EventOf<'turn.done'> | EventOf<'turn.failed'> | EventOf<'turn.aborted'>;

export function endings(events: readonly Event[], agent = 'bo'): Ending[] {
  return events.filter(
    ({ kind, author }) =>
      (kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted') && author.id === agent,
  ) as Ending[];
}

/** Each turn ending of an agent: its kind, and the messages that it covers. */
export function answered(events: readonly Event[], agent = 'bo'): [kind: string, covered: string[]][] {
  return endings(events, agent).map(({ kind, body }) => [
    kind.slice('turn.'.length),
    body.covers.map((seq) => {
      const event = events[seq - 1];
      return event?.kind === 'message' ? event.body.content : (event?.id ?? '');
    }),
  ]);
}

/** F9: a turn covers the messages that started it and those that it took in. */
export function coverProblems(events: readonly Event[]): string[] {
  const inputs = new Map<string, number[]>();
  const problems: string[] = [];
  for (const event of events) {
    const { turn = '' } = event;
    const given = eventOf(event, 'turn.started')?.body ?? eventOf(event, 'turn.steered')?.body;
    if (given) inputs.set(turn, [...(inputs.get(turn) ?? []), ...given.inputs]);
    const end = endings([event], event.author.id)[0];
    if (end && String(inputs.get(turn)) !== String(end.body.covers))
      problems.push(`turn ${turn} was given ${inputs.get(turn)}, covers ${end.body.covers}`);
  }
  return problems;
}

/** Prompts that cannot be rebuilt from the log byte for byte. */
export async function unverified(stage: Stage, conversation = 'c'): Promise<string[]> {
  const found: string[] = [];
  for (const { turn } of only(await stage.events(conversation), 'turn.started')) {
    const receipts = await readReceipts(stage.deps, DEFAULT_TENANT, turn ?? '');
    for (const { step } of receipts) {
      const { verified } = await stage.troupe.promptOf(turn ?? '', step);
      if (!verified) found.push(`${turn} step ${step}`);
    }
  }
  return found;
}

/** Checks that the log is legal and that every prompt can be rebuilt from it. */
export async function sound(stage: Stage, cancelled: string[] = []): Promise<void> {
  expect(await stage.check('c', { cancelled })).toEqual([]);
  expect(coverProblems(await stage.events('c'))).toEqual([]);
  expect(await unverified(stage)).toEqual([]);
}
