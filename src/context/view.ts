import { hash } from 'node:crypto';
import type { AgentId, BaselineBody, Event, EventId, PromptMessage, TurnId } from '../events/index.ts';
import { NOTHING_TOLD, type Told } from './live.ts';

/**
 * A view: the log as one agent sees it, as a fold that only ever grows at the end.
 *
 * Owns the rendered messages and what is needed to render the next ones. Does not own budgets, layers or baselines.
 *  V1  Messages once rendered never change: request n+1 begins with all bytes of request n.
 *  V2  Every visible event is in exactly one place: rendered, `pending`, or the call group that is still open.
 *  V3  `pending` holds others' events not yet shown; they are shown when a turn begins that reaches them, or when the
 *      agent itself speaks outside a turn (imported history).
 *  V4  The fold depends on the order of events alone, so a cold rebuild gives the same bytes as a warm extension.
 */
export interface View {
  readonly agent: AgentId;
  readonly secret: string;
  /** Last seq folded. */
  upTo: number;
  messages: PromptMessage[];
  /** Sum over `messages`. */
  tokens: number;
  /** Chained hash over `messages`. */
  chain: string;
  pending: Event[];
  /** Display names of people seen. */
  people: Set<string>;
  group: CallGroup | null;
  /** Every call id in `messages`, to keep them unique. */
  calls: Set<string>;
  /** Calls answered synthetically; a result that comes later is news, not an answer. */
  lost: Set<string>;
  turn: OpenTurn | null;
  told: Told;
  mode: 'chat' | 'agent' | 'run' | null;
  /** The baseline in force: the last one this agent has logged. */
  baseline: { id: EventId; body: BaselineBody } | null;
  /** Whether the agent has said anything or been given a turn. */
  present: boolean;
}

/** A step whose results are still coming. Keys are the ids as the author wrote them. */
export interface CallGroup {
  waiting: Map<string, { id: string; name: string }>;
}

/** The agent's own turn, from its first message to its ending. */
export interface OpenTurn {
  id: TurnId;
  /** Messages rendered ahead of the log (drafts of this turn), waiting for their seq. */
  ahead: Map<EventId, PromptMessage>;
  /** Where this turn's input begins in `messages`, and what it costs. */
  begins: number;
  chainBefore: string;
  tokens: { missed: number; trigger: number; live: number };
  hashes: { missed: string; trigger: string; live: string };
}

export function createView(agent: AgentId, secret: string): View {
  return {
    agent,
    secret,
    upTo: 0,
    messages: [],
    tokens: 0,
    chain: '',
    pending: [],
    people: new Set(),
    group: null,
    calls: new Set(),
    lost: new Set(),
    turn: null,
    told: NOTHING_TOLD,
    mode: null,
    baseline: null,
    present: false,
  };
}

/** A copy to look ahead with; the original is not touched. */
export function forkView(view: View): View {
  return {
    ...view,
    messages: view.messages.slice(),
    pending: view.pending.slice(),
    people: new Set(view.people),
    group: view.group && { waiting: new Map(view.group.waiting) },
    calls: new Set(view.calls),
    lost: new Set(view.lost),
    turn: view.turn && { ...view.turn, ahead: new Map(view.turn.ahead), tokens: { ...view.turn.tokens } },
  };
}

/** Appends a message. The chain covers what is sent, never the seqs: those are known later for an agent's own words. */
export function pushMessage(view: View, message: PromptMessage, tokens: number): void {
  view.messages.push(message);
  view.tokens += tokens;
  view.chain = chainMessage(view.chain, message);
}

export function chainMessage(chain: string, message: PromptMessage): string {
  const { role, content } = message;
  const rest =
    message.role === 'assistant'
      ? JSON.stringify([message.calls ?? null, message.reasoning ?? null])
      : message.role === 'tool'
        ? JSON.stringify([message.call, message.name, message.failed])
        : '';
  return hash('sha256', `${chain}\n${role}\n${content.length}\n${content}${rest}`, 'hex').slice(0, 32);
}

export function isOwn(view: View, event: { author: Event['author']; to: readonly string[] }): boolean {
  const mine = event.author.kind === 'agent' && event.author.id === view.agent;
  return mine && !event.to.includes(view.agent);
}
