import {
  buildPrompt,
  createView,
  foldAhead,
  foldEvent,
  hashText,
  liveDelta,
  minute,
  statedUnder,
  type TurnInput,
  type View,
} from '../src/context/index.ts';
import {
  type AgentId,
  type BaselineBody,
  type ConversationId,
  type Event,
  type EventDraft,
  type PromptRecord,
  type TurnId,
  isAbout,
} from '../src/events/index.ts';
import { logged, profile, SECRET } from '../test/support/log-player.ts';

/** A request about to be sent; its view can still be compacted. */
export interface ModelCall {
  agent: AgentId;
  view: View;
  turn: TurnInput;
  step: number;
  /** Time of sending: that of the trigger, or of the turn's last output. */
  at: number;
  /** Tokens of the model's answer. */
  output: number;
  /** Output of the turn so far. A compaction appends to it, and is committed with the rest. */
  outputs: EventDraft[];
}

/**
 * A foreign log as a conversation of ours: every exchange is a turn of an agent, pinned, stepped and committed, with
 * the log's own words and times. A person's message is addressed to the agent that answers it; where an agent spoke
 * unasked, a person says "go on".
 */
export class Replay {
  readonly log: Event[] = [];
  readonly views = new Map<string, View>();
  readonly #settled = new Map<string, number>();
  readonly #speaker: (exchange: number) => string;
  #turns = 0;

  /** `speaker` names the agent that answers each exchange. */
  constructor(speaker: (exchange: number) => string) {
    this.#speaker = speaker;
  }

  *play(source: readonly Event[]): Generator<ModelCall> {
    let exchange = 0;
    for (const { heard, own } of exchangesOf(source)) {
      const agent = this.#speaker((exchange += 1)) as AgentId;
      for (const event of heard) {
        this.log.push({ ...event, seq: this.log.length + 1, to: isAsked(event, own) ? [agent] : [] });
      }
      if (own.length > 0) yield* this.#takeTurn(agent, own);
    }
  }

  readonly append = (draft: EventDraft, at = this.log.at(-1)?.at ?? 0): Event => {
    const event = logged(draft, this.log.length + 1, at);
    this.log.push(event);
    return event;
  };

  /** Warm: new events of the log are folded in. */
  view(agent: string): View {
    const view = this.views.get(agent) ?? createView(agent as AgentId, SECRET);
    this.views.set(agent, view);
    for (let at = view.upTo; at < this.log.length; at++) foldEvent(view, this.log[at] as Event);
    return view;
  }

  *#takeTurn(agent: AgentId, own: readonly Event[]): Generator<ModelCall> {
    const turn = this.#pin(agent, own[0] as Event);
    const view = this.view(agent);
    const outputs: EventDraft[] = [];
    const tokens = new Map<string, number>();
    const calls = { agent, view, turn, outputs };
    let at = this.log[turn.upTo - 1]?.at ?? 0;
    let step = -1;
    for (const event of own) {
      if (event.kind !== 'tool.result') yield { ...calls, step: (step += 1), at, output: event.tokens };
      const draft = asOutput(event, turn, Math.max(0, step), outputs.length);
      outputs.push(draft);
      tokens.set(draft.id, event.tokens);
      at = event.at;
      if (!isEnding(draft)) foldAhead(view, draft, () => event.tokens);
    }
    if (!outputs.some(isEnding)) outputs.push(doneDraft(agent, turn, step + 1));
    for (const draft of outputs) {
      const seq = this.log.length + 1;
      const { tenant, conversation } = own[0] as Event;
      this.log.push({ ...draft, tenant, conversation, seq, at, tokens: tokens.get(draft.id) ?? 0 });
    }
  }

  #pin(agent: AgentId, { at }: Event): TurnInput {
    const settled = this.#settled.get(agent) ?? 0;
    const waiting = () =>
      this.view(agent).pending.filter(({ seq, to }) => seq > settled && to.includes(agent));
    if (waiting().length === 0) {
      const id = `go-on-${this.log.length + 1}` as Event['id'];
      this.append({ ...GO_ON, id, to: [agent] }, at);
    }
    const inputs = waiting();
    const view = this.view(agent);
    const baseline = view.baseline?.id ?? 'b';
    const facts = { time: minute(inputs.at(-1)?.at ?? 0), task: 'answer' };
    const body = {
      upTo: this.log.length,
      inputs: inputs.map(({ seq }) => seq),
      live: liveDelta(facts, statedUnder(view.stated, baseline)),
      join: 'full' as const,
      baseline,
    };
    const id = `c:${agent}:${(this.#turns += 1)}` as TurnId;
    this.#settled.set(agent, body.upTo);
    const own = { id: `${id}:started` as Event['id'], author: authorOf(agent), to: [], turn: id };
    this.append({ ...own, kind: 'turn.started', body });
    return { id, ...body };
  }
}

const GO_ON = {
  author: { kind: 'user', id: 'user', name: 'User' },
  kind: 'message',
  body: { content: 'go on' },
} as const;

export const BASELINE: BaselineBody = {
  epoch: 1,
  provider: 'scripted',
  model: 'm',
  layers: [],
  reason: '',
};
const SYSTEM = { name: 'rules', text: 'rules', hash: hashText('rules'), tokens: () => 1 } as const;

export function promptFor({ view, agent, step }: Pick<ModelCall, 'view' | 'agent' | 'step'>): PromptRecord {
  return buildPrompt({
    view,
    conversation: 'c' as ConversationId,
    agent: profile(agent),
    baseline: { body: BASELINE, texts: [SYSTEM], tools: [], source: 'b' },
    step,
  });
}

/** A dialogue of two people has no assistant: the second one becomes the assistant. */
export function withAssistant(log: readonly Event[]): Event[] {
  if (log.some(({ author }) => author.kind === 'agent')) return [...log];
  const people = [...new Set(log.map(({ author }) => author.id))];
  return log.map((event) =>
    event.author.id === people[1] ? { ...event, author: authorOf('assistant' as AgentId) } : event,
  );
}

interface Exchange {
  heard: Event[];
  /** Events of one turn; they end with a reply, a failure or an abort. */
  own: Event[];
}

function exchangesOf(source: readonly Event[]): Exchange[] {
  const exchanges: Exchange[] = [];
  let current: Exchange = { heard: [], own: [] };
  for (const event of source) {
    const isOwn = event.author.kind === 'agent';
    const last = current.own.at(-1);
    if (last && (!isOwn || isEnding(last) || last.kind === 'message')) {
      exchanges.push(current);
      current = { heard: [], own: [] };
    }
    (isOwn ? current.own : current.heard).push(event);
  }
  return [...exchanges, current];
}

function isAsked({ author, kind }: Event, own: readonly Event[]): boolean {
  return own.length > 0 && author.kind === 'user' && kind === 'message';
}

function isEnding({ kind }: Pick<EventDraft, 'kind'>): boolean {
  return kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted';
}

function authorOf(agent: AgentId) {
  return { kind: 'agent' as const, id: agent, name: agent };
}

function asOutput(event: Event, turn: TurnInput, step: number, at: number): EventDraft {
  const own = { author: authorOf(turn.id.split(':')[1] as AgentId), to: [], turn: turn.id };
  const id = (part: string) => `${turn.id}:${part}` as Event['id'];
  const covers = [...turn.inputs];
  if (!isAbout(event, 'own') || event.kind === 'handoff')
    throw new Error(`an agent of an imported log wrote ${event.kind}`);
  switch (event.kind) {
    case 'step':
      return { ...own, id: id(`step:${step}`), kind: 'step', body: { ...event.body, index: step } };
    case 'tool.result':
      return { ...own, id: id(`result:${step}.${at}`), kind: 'tool.result', body: event.body };
    case 'turn.failed':
      return { ...own, id: id('end'), kind: 'turn.failed', body: { ...event.body, covers } };
    case 'turn.aborted':
      return { ...own, id: id('end'), kind: 'turn.aborted', body: { ...event.body, covers } };
    case 'message':
      return { ...own, id: id('reply'), kind: 'message', body: event.body };
  }
}

function doneDraft(agent: AgentId, { id, inputs }: TurnInput, steps: number): EventDraft {
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  return {
    author: authorOf(agent),
    to: [],
    turn: id,
    id: `${id}:end` as Event['id'],
    kind: 'turn.done',
    body: { covers: [...inputs], steps, usage },
  };
}
