import { type Event, type EventOf, isAbout, type KindAbout } from '../../events/index.ts';
import type { Frame } from '../client/client.ts';
import { paint, print, printable } from './output.ts';
import { eventInWords } from '../../library/projection/summarise-event.ts';

/** Prints replies: on a terminal while they are written, elsewhere when they are complete. */
export interface ReplyPrinter {
  /** Events up to `after` are not shown. */
  show(frame: Frame, after: number): void;
}

export function createReplyPrinter(): ReplyPrinter {
  const isLive = process.stdout.isTTY === true;
  const line = createOpenLine();
  const begun = createBegunCalls();

  /** Shows a call when it begins, unless another reply is on the open line: then the call is shown with its step. */
  function showCall({ turn, agent, call, name }: Frame & { type: 'arguments' }): void {
    if (!line.isFreeFor(turn) || !begun.add(turn, call)) return;
    line.close();
    print(paint('dim', `${agent} calls ${printable(name)}`));
  }

  function showEvent(event: Event): void {
    if (event.author.kind !== 'agent' && event.kind !== 'guard.stopped' && event.kind !== 'run.directive')
      return;
    if (isAbout(event, 'announced')) {
      line.close();
      print(paint('dim', printable(describeEvent(event))));
      return;
    }
    if (isAbout(event, 'turn')) showTurnEvent(event);
  }

  function showMessage({ turn, author, body }: EventOf<'message'>): void {
    const wasStreamed = line.has(turn, body.content);
    line.close();
    if (!wasStreamed) print(heading(author.name) + printable(body.content));
  }

  function showTurnEvent(event: EventOf<KindAbout<'turn'>>): void {
    switch (event.kind) {
      case 'message':
        return showMessage(event);
      case 'step':
        line.close();
        for (const { name } of begun.rest(event))
          print(paint('dim', `${event.author.name} calls ${printable(name)}`));
        return;
      case 'error':
        // Without `retryUntil` the call is retried at once, or the end of the turn reports the failure.
        if (event.body.retryUntil === undefined) return;
        line.close();
        print(paint('dim', printable(`${event.author.name} waits for its model: ${describeEvent(event)}`)));
        return;
      case 'handoff':
        line.close();
        printHandoff(event);
        return;
      case 'turn.done':
      case 'turn.failed':
      case 'turn.aborted':
        begun.forget(event.turn);
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
      } else if (!isLive) return;
      else if (frame.type === 'text') line.show(frame);
      else if (frame.type === 'arguments') showCall(frame);
      else if (frame.type === 'void') begun.forget(frame.turn);
    },
  };
}

function printHandoff({ author, to, body }: EventOf<'handoff'>): void {
  const goal = printable(body.summary.goal);
  print(paint('dim', `${author.name} hands over to ${to.join(', ')}: `) + goal);
}

/** The line of the reply that is being written. Other replies wait for their event, so that lines do not mix. */
function createOpenLine() {
  let open: { turn: string; text: string } | null = null;

  function close(): void {
    if (open) print();
    open = null;
  }

  return {
    close,
    isFreeFor: (turn: string) => open === null || open.turn === turn,
    has: (turn: string | undefined, text: string) => open?.turn === turn && open?.text === text,
    show({ agent, turn, index, text }: Frame & { type: 'text' }): void {
      if (open && open.turn === turn && index === 0) close();
      if (!open && index !== 0) return;
      if (open && open.turn !== turn) return;
      if (!open) process.stdout.write(heading(agent));
      open = { turn, text: (open?.text ?? '') + text };
      process.stdout.write(printable(text));
    },
  };
}

/** Calls of running steps that were shown when they began, by turn. */
function createBegunCalls() {
  const byTurn = new Map<string | undefined, Set<string>>();
  return {
    /** Whether the call is new. */
    add(turn: string, call: string): boolean {
      const calls = byTurn.get(turn) ?? new Set<string>();
      byTurn.set(turn, calls);
      const isNew = !calls.has(call);
      calls.add(call);
      return isNew;
    },
    /** The calls of a step that were not shown yet. Ends the step. */
    rest({ turn, body }: EventOf<'step'>) {
      const shown = byTurn.get(turn);
      byTurn.delete(turn);
      return body.calls.filter(({ id }) => !shown?.has(id));
    },
    forget(turn: string | undefined): void {
      byTurn.delete(turn);
    },
  };
}

function heading(name: string): string {
  return `${paint('bold', printable(name))}: `;
}

export function describeEvent(event: Event): string {
  const told = eventInWords(event);
  if (told) return `${told.head}${told.text}`;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  return `${event.author.name}${to}: ${JSON.stringify(event.body)}`;
}
