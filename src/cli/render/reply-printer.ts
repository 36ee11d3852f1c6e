import { type Event, type EventOf, isAbout, type KindAbout } from '../../events/index.ts';
import type { Frame } from '../client/client.ts';
import { paint, print, printable } from './output.ts';
import { eventInWords } from '../../projection/summarise-event.ts';

/** Prints replies: on a terminal while they are written, elsewhere when they are complete. */
export interface ReplyPrinter {
  /** Events up to `after` are not shown. */
  show(frame: Frame, after: number): void;
}

export function createReplyPrinter(): ReplyPrinter {
  const isLive = process.stdout.isTTY === true;
  /** The turn whose reply is on the open line. Other replies wait for their event, so that lines do not mix. */
  let open: { turn: string; text: string } | null = null;

  /** Calls of running steps that were shown when they began: their ids, by turn. */
  const begun = new Map<string, Set<string>>();

  /** A call is shown when it begins, unless another reply is on the open line: then with its step. */
  function showActivity(activity: Extract<Frame, { type: 'activity' }>['activity']): void {
    const { turn, agent } = activity;
    if (activity.kind === 'void') begun.delete(turn);
    if (activity.kind !== 'arguments' || (open && open.turn !== turn)) return;
    const calls = begun.get(turn) ?? new Set<string>();
    begun.set(turn, calls);
    if (calls.has(activity.call)) return;
    calls.add(activity.call);
    closeLine();
    print(paint('dim', `${agent} calls ${printable(activity.name)}`));
  }

  function closeLine(): void {
    if (open) print();
    open = null;
  }

  function showDelta({ agent, turn, index, text }: Extract<Frame, { type: 'delta' }>['delta']): void {
    if (open && open.turn === turn && index === 0) closeLine();
    if (!open && index !== 0) return;
    if (open && open.turn !== turn) return;
    if (!open) process.stdout.write(heading(agent));
    open = { turn, text: (open?.text ?? '') + text };
    process.stdout.write(printable(text));
  }

  function showEvent(event: Event): void {
    if (event.author.kind !== 'agent' && event.kind !== 'guard.stopped' && event.kind !== 'run.directive')
      return;
    if (isAbout(event, 'announced')) {
      closeLine();
      print(paint('dim', printable(describeEvent(event))));
      return;
    }
    if (isAbout(event, 'turn')) showTurnEvent(event);
  }

  function showMessage({ turn, author, body }: EventOf<'message'>): void {
    const wasStreamed = open?.turn === turn && open?.text === body.content;
    closeLine();
    if (!wasStreamed) print(heading(author.name) + printable(body.content));
  }

  /** The calls of a step that were not shown when they began. */
  function showCalls({ turn, author, body }: EventOf<'step'>): void {
    const shown = turn === undefined ? undefined : begun.get(turn);
    if (turn !== undefined) begun.delete(turn);
    for (const { id, name } of body.calls)
      if (!shown?.has(id)) print(paint('dim', `${author.name} calls ${printable(name)}`));
  }

  function showTurnEvent(event: EventOf<KindAbout<'turn'>>): void {
    switch (event.kind) {
      case 'message':
        return showMessage(event);
      case 'step':
        closeLine();
        showCalls(event);
        return;
      case 'error':
        // Without `retryUntil` the call is retried at once, or the end of the turn reports the failure.
        if (event.body.retryUntil === undefined) return;
        closeLine();
        print(paint('dim', printable(`${event.author.name} waits for its model: ${describeEvent(event)}`)));
        return;
      case 'handoff':
        closeLine();
        print(
          paint('dim', `${event.author.name} hands over to ${event.to.join(', ')}: `) +
            printable(event.body.summary.goal),
        );
        return;
      case 'turn.done':
      case 'turn.failed':
      case 'turn.aborted':
        if (event.turn !== undefined) begun.delete(event.turn);
        return;
      case 'tool.result':
      case 'command':
      case 'turn.started':
      case 'turn.steered':
        return;
    }
  }

  return {
    show(frame, after) {
      if (frame.type === 'event') {
        if (frame.event.seq > after) showEvent(frame.event);
      } else if (isLive && frame.type === 'delta') showDelta(frame.delta);
      else if (isLive && frame.type === 'activity') showActivity(frame.activity);
    },
  };
}

function heading(name: string): string {
  return `${paint('bold', printable(name))}: `;
}

/** An event in one line. */
export function describeEvent(event: Event): string {
  const told = eventInWords(event);
  if (told) return `${told.head}${told.text}`;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  return `${event.author.name}${to}: ${JSON.stringify(event.body)}`;
}
