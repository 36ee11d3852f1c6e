import {
  beginTurn,
  buildPrompt,
  type AgentProfile,
  createView,
  eventText,
  foldAhead,
  foldEvent,
  hashText,
  liveDelta,
  minute,
  type CompactionPolicy,
  type Room,
  type TurnInput,
  type View,
} from '../../src/context/index.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type {
  AgentId,
  BaselineBody,
  ConversationId,
  Event,
  EventDraft,
  PromptRecord,
  TenantId,
  TurnId,
} from '../../src/events/index.ts';

import { compactView } from './compact-view.ts';

export const SECRET = 'secret';
const T0 = Date.UTC(2026, 0, 1);

/** The event as the log would return it. */
export function logged(draft: EventDraft, seq: number, at = T0 + seq * 20_000): Event {
  const envelope = { tenant: 'default' as TenantId, conversation: 'c' as ConversationId, seq, at };
  return { ...draft, ...envelope, tokens: countTokens(eventText(draft)) };
}

export function profile(id: string): AgentProfile {
  return {
    id: id as AgentId,
    name: id,
    role: 'peer',
    description: '',
    instructions: '',
    provider: 'scripted',
    model: 'm',
    contextWindow: 1_000_000,
    maxOutputTokens: 1_000,
    join: 'full',
    tools: [],
  };
}

const BASELINE: BaselineBody = { epoch: 1, provider: 'scripted', model: 'm', layers: [], reason: '' };
const SYSTEM = { name: 'rules', text: 'rules', hash: hashText('rules'), tokens: () => 1 } as const;

export function promptOf(view: View, step = 0): PromptRecord {
  return buildPrompt({
    view,
    conversation: 'c' as ConversationId,
    agent: profile(view.agent),
    baseline: { body: BASELINE, texts: [SYSTEM], tools: [], source: 'b' },
    step,
  });
}

export function viewOf(agent: string, log: readonly Event[]): View {
  const view = createView(agent as AgentId, SECRET);
  for (const event of log) foldEvent(view, event);
  return view;
}

/** A sent request, with everything needed to rebuild it. */
export interface Sent {
  agent: string;
  prompt: PromptRecord;
  turn: TurnInput;
  /** The log at the pin, and the output of the turn by then. */
  log: readonly Event[];
  outputs: readonly EventDraft[];
  /** The compactions in the log by then, of any agent. */
  compactions: readonly Event[];
}

/** Rebuilds the same request from only the log and the output of the turn. */
export function rebuilt({ agent, prompt, turn, log, outputs, compactions }: Sent): PromptRecord {
  const view = viewOf(agent, log);
  for (const event of compactions)
    if (event.kind === 'compaction') view.compactions.set(event.id, event.body);
  beginTurn(view, turn);
  for (const draft of outputs) foldAhead(view, draft, countTokens);
  return promptOf(view, prompt.step);
}

/**
 * A conversation whose agents take turns as in the engine: pinned, begun, stepped, committed. Views are kept warm.
 */
export class LogPlayer {
  /** The agent whose prompts are in the plain framing. */
  readonly #plain: string | null;
  readonly log: Event[] = [];
  readonly sent: Sent[] = [];
  readonly views = new Map<string, View>();
  readonly #settled = new Map<string, number>();
  #turns = 0;
  #ids = 0;

  constructor(plain: string | null = null) {
    this.#plain = plain;
  }

  append(draft: Omit<EventDraft, 'id'> & { id?: string }): Event {
    const id = draft.id ?? `e${(this.#ids += 1)}`;
    const event = logged({ ...draft, id } as EventDraft, this.log.length + 1);
    this.log.push(event);
    return event;
  }

  view(agent: string): View {
    const view = this.views.get(agent) ?? createView(agent as AgentId, SECRET);
    this.views.set(agent, view);
    for (const event of this.log.slice(view.upTo)) foldEvent(view, event);
    return view;
  }

  /** Pins a turn if the agent has been addressed; `meanwhile` appends to the log before the pin. */
  pin(agent: string, meanwhile: () => void = () => undefined): OpenTurn | null {
    const view = this.view(agent);
    const settled = this.#settled.get(agent) ?? 0;
    const inputs = view.pending.filter(
      (event) => event.seq > settled && (event.to as string[]).includes(agent),
    );
    const last = inputs.at(-1);
    if (!last) return null;
    const id = `c:${agent}:${(this.#turns += 1)}` as TurnId;
    const turn: TurnInput = {
      id,
      upTo: this.log.length,
      inputs: inputs.map(({ seq }) => seq),
      live: liveDelta({ time: minute(last.at), task: 'answer' }, view.stated),
      join: 'full',
      baseline: 'b',
      ...(agent === this.#plain && { framing: 'plain' as const }),
    };
    const log = this.log.slice();
    this.#settled.set(agent, turn.upTo);
    meanwhile();
    const { id: _, ...body } = turn;
    this.append({ ...own(agent, id), id: `${id}:started`, kind: 'turn.started', body });
    return { agent, turn, log, outputs: [] };
  }

  /** The request of the next step. A crash before it loses the view. */
  request(
    open: OpenTurn,
    {
      crashed = false,
      compaction = null,
    }: { crashed?: boolean; compaction?: { policy: CompactionPolicy; room: Room } | null } = {},
  ): Sent {
    const { agent, turn, log } = open;
    if (crashed) {
      const view = viewOf(agent, log);
      // The compactions that a resumed turn replays.
      for (const event of this.log)
        if (event.kind === 'compaction') view.compactions.set(event.id, event.body);
      this.views.set(agent, view);
    }
    const view = this.views.get(agent) as View;
    if (view.turn?.id !== turn.id) beginTurn(view, turn);
    for (const draft of open.outputs) foldAhead(view, draft, countTokens);
    if (compaction) {
      const append = (draft: EventDraft) => this.append(draft);
      compactView({ view, log: this.log, append, outputs: open.outputs, baseline: BASELINE, ...compaction });
    }
    const sent: Sent = {
      compactions: this.log.filter((event) => event.kind === 'compaction'),
      agent,
      prompt: promptOf(view, open.outputs.length),
      turn,
      log,
      outputs: open.outputs.slice(),
    };
    this.sent.push(sent);
    return sent;
  }

  commit(open: OpenTurn, ending: readonly EventDraft[]): void {
    for (const draft of [...open.outputs, ...ending]) this.append(draft);
  }
}

export interface OpenTurn {
  agent: string;
  turn: TurnInput;
  log: readonly Event[];
  outputs: EventDraft[];
}

export function own(agent: string, turn?: TurnId) {
  const author = { kind: 'agent' as const, id: agent, name: agent };
  return { author, to: [] as AgentId[], ...(turn !== undefined && { turn }) };
}
