import { type Event, type EventOf, isAbout, type TurnId } from '../events/index.ts';
import type { ChatChange } from './chat-change.ts';
import { ChatTurn } from './chat-turn.ts';
import type { CallPart, Part, ProgressPart, ReasoningPart, ResultPart, TextPart, VoidPart } from './part.ts';

type LivePart = TextPart | ReasoningPart | CallPart | ProgressPart | ResultPart | VoidPart;

/**
 * The parts of an exchange as changes of a chat. Owns what was shown of the turns that run.
 *  B1  The text deltas of a turn without the void ones, joined, are the texts of its steps and its reply as the log has them:
 *      what a reader has missed is added before the event that has it.
 *  B2  A block or call starts once, and then ends, or has its result, or is void. When its turn has ended, nothing is open.
 *  B3  Parts may be late, doubled, or of a void attempt: no words come twice.
 *  B4  Every event comes once, in the order of its part.
 */
export function chatChanges(): (part: Part) => ChatChange[] {
  const turns = new Map<TurnId, ChatTurn>();
  /** The calls that wait for approval, by the id of the request: it is the id of the call when it runs. */
  const asked = new Map<string, string>();

  function turnOf({
    turn,
    conversation,
    agent,
  }: Pick<LivePart, 'turn' | 'conversation' | 'agent'>): ChatTurn {
    const known = turns.get(turn);
    if (known) return known;
    const added = new ChatTurn({ turn, conversation, agent }, asked);
    turns.set(turn, added);
    return added;
  }

  function ofEvent(event: Event): ChatChange[] {
    const { turn, author, conversation } = event;
    if (turn === undefined || author.kind !== 'agent') return [];
    const shown = turnOf({ turn, conversation, agent: author.id as LivePart['agent'] });
    if (isAbout(event, 'turnEnd')) {
      turns.delete(turn);
      return shown.end(event.kind === 'turn.done' ? '' : event.body.partial, reasonOf(event));
    }
    if (event.kind === 'step') return shown.commitStep(event.body);
    if (event.kind === 'tool.result') return shown.commitResult(event.body);
    if (event.kind === 'message') return shown.commitReply(event.body.content);
    return [];
  }

  function shownEvent(event: Event): ChatChange {
    const call =
      event.kind === 'approval.requested' && event.turn !== undefined
        ? turns.get(event.turn)?.noteRequest(event.id, event.body.request)
        : undefined;
    return { type: 'event', event, ...(call !== undefined && { call }) };
  }

  return (part) => {
    switch (part.type) {
      case 'state':
        return [];
      case 'text':
      case 'reasoning':
        return turnOf(part).words(part);
      case 'call':
        return turnOf(part).call(part);
      case 'progress':
        return turnOf(part).progress(part);
      case 'result':
        return turnOf(part).result(part);
      case 'void':
        return turnOf(part).void(part);
      case 'event':
      case 'handoff':
      case 'question':
      case 'approval':
        return [...ofEvent(part.event), shownEvent(part.event)];
    }
  };
}

function reasonOf(event: EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'>): string {
  switch (event.kind) {
    case 'turn.done':
      return 'the turn has ended without it';
    case 'turn.failed':
      return event.body.message;
    case 'turn.aborted':
      return `the turn was stopped by ${event.body.by}`;
  }
}
