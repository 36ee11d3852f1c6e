import type { AgentId, ConversationId, Event, ToolOutcome, TurnId } from '../../events/index.ts';

/** Where in a turn something of a chat belongs. */
interface ChatPlace {
  /** The conversation that was asked about, or a thread of it. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Id of its turn. */
  turn: TurnId;
  /** Steps of the turn, from 1. */
  step: number;
}

/** Words of an agent in one step of its turn. */
export interface ChatBlock extends ChatPlace {
  /** Unique in the reader's chat. */
  id: string;
  /** `text`: what the agent says; `reasoning`: what its model thinks. */
  kind: 'text' | 'reasoning';
}

/** A tool call of an agent. */
export interface ChatCall extends ChatPlace {
  /** Unique in the reader's chat, unlike the ids of some model servers. An approved call keeps the id of its request. */
  id: string;
  /** Name of the tool. */
  name: string;
}

/**
 * One change of a chat. What was shown is never changed but by `void`, so that protocols whose messages only grow can
 * follow it.
 */
export type ChatChange =
  | { type: 'block.start'; block: ChatBlock }
  | { type: 'block.delta'; id: string; text: string }
  | { type: 'block.end'; id: string }
  | { type: 'call.start'; call: ChatCall }
  /** The next piece of its arguments. */
  | { type: 'call.delta'; id: string; text: string }
  /** The arguments are whole. If they were changed before the call, `args` differs from the deltas, and counts. */
  | { type: 'call.ready'; id: string; args: string }
  | {
      type: 'call.progress';
      id: string;
      text?: string | undefined;
      done?: number | undefined;
      total?: number | undefined;
    }
  /** `waiting`: people have to approve it first; the result comes later. */
  | { type: 'call.result'; id: string; outcome: ToolOutcome; text: string }
  /** These blocks and calls do not count: the model call failed, or the turn ended without them. */
  | { type: 'void'; ids: string[]; reason: string }
  /** An event of the log, after the changes that show its words whole. */
  | {
      type: 'event';
      event: Event;
      /** Of `approval.requested`: id of the call that waits, if it was shown. */
      call?: string | undefined;
    };
