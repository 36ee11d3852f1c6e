import { hash } from 'node:crypto';
import type { AgentId, BaselineBody, Event, EventId, PromptMessage, TurnId } from '../events/index.ts';
import { FRAME_TOKENS } from './estimate-tokens.ts';
import { NOTHING_TOLD, type Told } from './live.ts';
import type { People } from './people.ts';

/**
 * A view: the log as one agent sees it, as a fold that only ever grows at the end.
 *
 * Owns the rendered messages and what is needed to render the next ones. Does not own budgets, layers or baselines.
 *  V1  Messages once rendered never change: request n+1 begins with all bytes of request n.
 *  V2  Every visible event is in exactly one place: rendered or `pending`.
 *  V3  Only the events of the running turn are rendered as they come. Everything else (others' words, own words outside
 *      a turn, as in imported history) is `pending` until a turn begins that reaches it.
 *  V4  So what is rendered depends on the log and on the `upTo` of its turns alone, not on when it was read: a cold
 *      rebuild gives the same bytes as a warm extension, whatever was appended while a turn was being started.
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
  people: People;
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

/** A step whose results are still coming. `written` is the id as the author wrote it, `id` the one in the prompt. */
export interface CallGroup {
  waiting: { written: string; id: string; name: string }[];
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
    people: new Map(),
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

/** A copy to look ahead with; the original is not touched, nor are its messages that still wait for their seq. */
export function forkView(view: View): View {
  const ahead = new Map([...(view.turn?.ahead ?? [])].map(([id, m]) => [id, { ...m, seqs: m.seqs.slice() }]));
  const copies = new Map([...ahead].map(([id, copy]) => [view.turn?.ahead.get(id), copy]));
  return {
    ...view,
    messages: view.messages.map((message) => copies.get(message) ?? message),
    pending: view.pending.slice(),
    people: new Map([...view.people].map(([name, namesakes]) => [name, namesakes.slice()])),
    group: view.group && { waiting: view.group.waiting.slice() },
    calls: new Set(view.calls),
    lost: new Set(view.lost),
    turn: view.turn && { ...view.turn, ahead },
  };
}

/** Providers want the first message from somebody else, and a conversation may begin with the agent's own words. */
const OPENER: PromptMessage = { role: 'user', content: '[the conversation begins]', seqs: [] };
const OPENER_TOKENS = 6 + FRAME_TOKENS;

/** Appends a message. The chain covers what is sent, never the seqs: those are known later for an agent's own words. */
export function pushMessage(view: View, message: PromptMessage, tokens: number): void {
  if (view.messages.length === 0 && message.role === 'assistant') pushMessage(view, OPENER, OPENER_TOKENS);
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
