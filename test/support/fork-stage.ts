import type { Author, Command, ConversationId, Event } from '../../src/events/index.ts';
import { ANA, type Stage, until } from './engine-stage.ts';

export function fork(
  stage: Stage,
  about: Omit<Extract<Command, { command: 'fork' }>, 'command'>,
  by: Author = ANA,
) {
  return stage.troupe.command({ command: 'fork', ...about }, by);
}

export function at(seq: number, as?: string) {
  return { conversation: 'c' as ConversationId, seq, ...(as && { as: as as ConversationId }) };
}

export function forkedAs(event: Event): string {
  return event.kind === 'command' ? (event.body.fork?.conversation ?? '') : '';
}

/** An agent whose record is leased waits a moment before it retries; the test advances the clock for it. */
export async function given(stage: Stage, asked: Promise<Event>[]): Promise<Event[]> {
  let isDone = false;
  const all = Promise.all(asked).finally(() => (isDone = true));
  await until('all have an answer', async () => {
    await stage.clock.advance(20);
    return isDone;
  });
  return all;
}
