import {
  type AgentId,
  type ConversationId,
  type Event,
  type EventOf,
  isAbout,
  type Note,
  type TurnId,
  type TurnNote,
} from '../../events/index.ts';
import type { ChatChange } from './chat-change.ts';
import { ChatTurn } from './chat-turn.ts';

/**
 * The notes of an exchange as changes of a chat. Owns what was shown of the turns that run.
 *  B1  The text deltas of a turn without the void ones, joined, are the texts of its steps and its reply as the log has them:
 *      what a reader has missed is added before the event that has it.
 *  B2  A block or call starts once, and then ends, or has its result, or is void. When its turn has ended, nothing is open.
 *  B3  Notes may be late, doubled, or of a void attempt: no words come twice.
 *  B4  Every event comes once, in the order of its note.
 */
export function chatChanges(): (note: Note) => ChatChange[] {
  const turns = new Map<TurnId, ChatTurn>();
  /** The calls that wait for approval, by the id of the request: it is the id of the call when it runs. */
  const asked = new Map<string, string>();

  function turnOf({ turn, conversation, agent }: Owner): ChatTurn {
    const known = turns.get(turn);
    if (known) return known;
    const added = new ChatTurn({ turn, conversation, agent }, asked);
    turns.set(turn, added);
    return added;
  }

  function ofEvent(event: Event): ChatChange[] {
    const { turn, author, conversation } = event;
    if (turn === undefined || author.kind !== 'agent') return [];
    const shown = turnOf({ turn, conversation, agent: author.id as AgentId });
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

  function ofTurn(note: TurnNote): ChatChange[] {
    const turn = turnOf(note);
    switch (note.type) {
      case 'text':
      case 'reasoning':
        return turn.words(note);
      case 'arguments':
        return turn.write(note);
      case 'dropped':
        return turn.drop(note);
      case 'called':
        return turn.run(note);
      case 'progress':
        return turn.progress(note);
      case 'result':
        return turn.result(note);
      case 'void':
        return turn.void(note);
    }
  }

  return (note) => {
    if (note.type === 'state') return [];
    if (note.type !== 'event') return ofTurn(note);
    return [...ofEvent(note.event), shownEvent(note.event)];
  };
}

/** Whose a turn is, and where. */
interface Owner {
  turn: TurnId;
  conversation: ConversationId;
  agent: AgentId;
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
