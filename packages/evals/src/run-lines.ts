import { type ByKind, type Event, type EventOf, forKind } from './troupe.ts';
import { callsOf, type ConversationRun } from './conversation-run.ts';
import { eventWords, isSpoken } from './event-words.ts';

/** A line of a conversation as people read it. */
export type RunLine =
  | {
      /** Words of a person or an agent. */
      readonly kind: 'said';
      readonly event: Event;
      readonly who: string;
      readonly text: string;
    }
  | {
      /** A tool call with what came of it. */
      readonly kind: 'called';
      readonly event: Event;
      readonly who: string;
      readonly tool: string;
      readonly args: string;
      /** Null: it has none yet. */
      readonly result: EventOf<'tool.result'> | null;
    }
  | {
      /** A turn ended without an answer. */
      readonly kind: 'ended';
      readonly event: Event;
      readonly who: string;
      readonly text: string;
    };

/** What was said and called, in the order in which one led to the other, and which turns failed. */
export function linesOf(run: ConversationRun): RunLine[] {
  const calls = Map.groupBy(callsOf(run), ({ step }) => step);
  return run.events.flatMap((event): RunLine[] => {
    const who = event.author.id;
    const end = forKind(ENDS, event);
    if (end !== undefined) return [{ kind: 'ended', event, who, text: end }];
    const own = event.kind === 'step' ? (calls.get(event) ?? []) : [];
    const text = isSpoken(event) ? eventWords(event) : '';
    const said: RunLine[] = text === '' ? [] : [{ kind: 'said', event, who, text }];
    const made = own.map(({ turn, tool, args, result, step }): RunLine => {
      return { kind: 'called', event: step, who: turn.agent, tool, args, result };
    });
    return [...said, ...made];
  });
}

const ENDS: ByKind<'turn.failed' | 'turn.aborted' | 'guard.stopped', string> = {
  'turn.failed': (event) => `The turn failed: ${eventWords(event)}`,
  'turn.aborted': (event) => `The turn was stopped: ${eventWords(event)}`,
  'guard.stopped': (event) => eventWords(event),
};
