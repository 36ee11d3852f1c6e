import { TroupeError } from '../../base/errors.ts';
import {
  type AgentId,
  canonicalJson,
  type Event,
  type EventOf,
  isAbout,
  parseExact,
  parseTurnId,
  runtimeId,
  type TenantId,
  type ToolCall,
  type ToolOutcome,
} from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { eventsAt } from '../calls/asked-by.ts';
import { readPages } from './read-pages.ts';

/** A turn as it is in the log. */
export interface LoggedTurn {
  log: ConversationKey;
  agent: AgentId;
  number: number;
  started: EventOf<'turn.started'>;
  inputs: Event[];
  /** The events of the turn itself, in order. */
  own: Event[];
  /** Its ending. Null: it runs. */
  end: Event | null;
}

/** Throws `turn_unknown`. */
export async function readTurn(store: Store, tenant: TenantId, turn: string): Promise<LoggedTurn> {
  const parts = parseTurnId(turn);
  const log = parts && { tenant, conversation: parts.conversation };
  const started = log && (await store.readById(log, runtimeId(turn, 'started')));
  if (!parts || !log || started?.kind !== 'turn.started')
    throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  const inputs = await eventsAt({ store }, log, started.body.inputs);
  const own = await ownEvents(store, log, started);
  const last = own.at(-1);
  const end = last && isAbout(last, 'turnEnd') ? last : null;
  return { log, agent: parts.agent, number: parts.number, started, inputs, own, end };
}

async function ownEvents(store: Store, log: ConversationKey, started: Event): Promise<Event[]> {
  const own: Event[] = [];
  for await (const page of readPages(store, log, { after: started.seq - 1 })) {
    for (const event of page) {
      if (event.turn !== started.turn) continue;
      own.push(event);
      if (isAbout(event, 'turnEnd')) return own;
    }
  }
  return own;
}

/** A call of a turn with its result. */
export interface LoggedCall {
  /** Index of its step, from 0. */
  step: number;
  call: ToolCall;
  /** Null: none is in the log. */
  result: { outcome: ToolOutcome; content: string; artifact?: string | undefined } | null;
}

/** The calls of a turn in their order. The ids of calls may repeat, so results are told apart by their places. */
export function callsOf({ own }: Pick<LoggedTurn, 'own'>): LoggedCall[] {
  const calls: LoggedCall[] = [];
  let waiting: LoggedCall[] = [];
  for (const event of own) {
    if (!isAbout(event, 'turn')) continue;
    if (event.kind === 'step') {
      const { index: step, calls: asked } = event.body;
      waiting = asked.map((call): LoggedCall => ({ step, call, result: null }));
      calls.push(...waiting);
    } else if (event.kind === 'tool.result') {
      const { call: id, outcome, content, artifact } = event.body;
      const call = waiting.find((each) => each.call.id === id && each.result === null);
      if (call) call.result = { outcome, content, ...(artifact !== undefined && { artifact }) };
    }
  }
  return calls;
}

/** The same tool with the same arguments, however they are written. */
export function isSameCall(a: ToolCall, b: ToolCall): boolean {
  return a.name === b.name && (a.args === b.args || comparable(a.args) === comparable(b.args));
}

function comparable(args: string): string {
  try {
    return canonicalJson(parseExact(args.trim() || '{}'));
  } catch {
    return args;
  }
}
