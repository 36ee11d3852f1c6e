import type { ChatBlock, ChatCall, ChatChange, Event, EventOf } from '../troupe.ts';
import { askedKey, type UiChunk } from './ui-message.ts';

interface ShownCall extends Pick<ChatCall, 'id' | 'name'> {
  /** Calls of threads are shown only when people should approve them. */
  isShown: boolean;
  isEnded: boolean;
  approval: 'none' | 'requested' | 'decided';
}

interface WriterOptions {
  conversation: string;
  /** The name of an agent by its id. */
  nameOf: (agent: string) => string;
}

const OF_AGENT = { dynamic: true, providerExecuted: true } as const;

/**
 * One exchange as the chunks of one message of a UI message stream. Owns its open parts.
 *  U1  A `data-author` comes before an agent's text, unless the same turn spoke last.
 *  U2  No chunk refers to a text or call that was not begun.
 *  U3  After `end` every call has an end or waits for approval. Clients that send decisions automatically look for calls
 *      without an end, and would send them forever.
 *  U4  Of threads, only questions to people are shown.
 */
export class UiWriter {
  readonly #options: WriterOptions;
  readonly #blocks = new Map<string, ChatBlock>();
  /** Ids of all texts that were begun. */
  readonly #words = new Set<string>();
  readonly #calls = new Map<string, ShownCall>();
  /** The calls that need approval, by the id for clients. */
  readonly #approvals = new Map<string, ShownCall>();
  readonly #questions = new Set<string>();
  #speaker = '';
  #replies = 0;
  #failure: string | null = null;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  write(change: ChatChange): UiChunk[] {
    switch (change.type) {
      case 'block.start':
        return this.#begin(change.block);
      case 'block.delta': {
        const kind = this.#blocks.get(change.id)?.kind;
        return kind ? [{ type: `${kind}-delta`, id: change.id, delta: change.text }] : [];
      }
      case 'block.end':
        return this.#endBlock(change.id);
      case 'call.start':
        return this.#beginCall(change.call);
      case 'call.delta':
      case 'call.ready':
      case 'call.progress':
        return this.#growCall(change);
      case 'call.result':
        return this.#endCall(change);
      case 'void':
        return this.#void(change.ids, change.reason);
      case 'event':
        return this.#event(change.event, change.call);
    }
  }

  end(): UiChunk[] {
    const open = [...this.#calls.values()].filter(
      ({ isShown, isEnded, approval }) => isShown && !isEnded && approval !== 'requested',
    );
    const chunks = open.map(({ id }): UiChunk => failed(id, 'it has no result yet'));
    if (this.#failure !== null && this.#replies === 0)
      return [...chunks, { type: 'error', errorText: this.#failure }];
    const waits = [...this.#approvals.values()].some(({ approval }) => approval === 'requested');
    return [...chunks, { type: 'finish', finishReason: waits ? 'tool-calls' : 'stop' }];
  }

  #begin(block: ChatBlock): UiChunk[] {
    const { id, kind, conversation, agent, turn } = block;
    if (conversation !== this.#options.conversation) return [];
    this.#blocks.set(id, block);
    this.#words.add(id);
    const troupe = { id, agent, turn };
    return [
      ...this.#author(agent, turn),
      { type: `${kind}-start`, id, providerMetadata: { troupe } } as const,
    ];
  }

  #endBlock(id: string): UiChunk[] {
    const kind = this.#blocks.get(id)?.kind;
    this.#blocks.delete(id);
    return kind ? [{ type: `${kind}-end`, id }] : [];
  }

  #beginCall(call: ChatCall): UiChunk[] {
    const { id, name, agent, turn } = call;
    const isShown = call.conversation === this.#options.conversation;
    this.#calls.set(id, { id, name, isShown, isEnded: false, approval: 'none' });
    if (!isShown) return [];
    return [
      ...this.#author(agent, turn),
      { type: 'tool-input-start', toolCallId: id, toolName: name, ...OF_AGENT },
    ];
  }

  #growCall(change: Extract<ChatChange, { type: 'call.delta' | 'call.ready' | 'call.progress' }>): UiChunk[] {
    const { id: toolCallId } = change;
    const call = this.#openCall(toolCallId);
    if (!call) return [];
    if (change.type === 'call.ready') return [inputOf(call, change.args)];
    if (change.type === 'call.delta')
      return [{ type: 'tool-input-delta', toolCallId, inputTextDelta: change.text }];
    const { text, done, total } = change;
    return [{ type: 'data-progress', transient: true, data: { toolCallId, text, done, total } }];
  }

  #openCall(id: string): ShownCall | null {
    const call = this.#calls.get(id);
    return call?.isShown && !call.isEnded ? call : null;
  }

  #endCall({ id, outcome, text }: ChatChange & { type: 'call.result' }): UiChunk[] {
    const call = this.#openCall(id);
    if (!call || outcome === 'waiting') return [];
    call.isEnded = true;
    return [
      outcome === 'done' ? { type: 'tool-output-available', toolCallId: id, output: text } : failed(id, text),
    ];
  }

  #void(ids: readonly string[], reason: string): UiChunk[] {
    const chunks: UiChunk[] = [];
    const shown: string[] = [];
    for (const id of ids) {
      const call = this.#calls.get(id);
      if (call && !call.isShown) continue;
      if (!call && !this.#words.has(id)) continue;
      shown.push(id);
      chunks.push(...this.#endBlock(id));
      if (call && !call.isEnded) {
        call.isEnded = true;
        chunks.push(failed(id, `void: ${reason}`));
      }
    }
    return shown.length > 0 ? [...chunks, { type: 'data-void', data: { ids: shown, reason } }] : [];
  }

  #event(event: Event, call?: string): UiChunk[] {
    const isHere = event.conversation === this.#options.conversation;
    if (event.kind === 'approval.requested') return this.#ask(event, call);
    if (event.kind === 'approval.decided') return this.#decide(event);
    if (event.kind === 'question') return this.#question(event);
    if (event.kind === 'question.answered') return this.#answered(event);
    if (!isHere) return [];
    if (event.kind === 'handoff') return [handoffOf(event)];
    if (event.kind === 'turn.failed' || event.kind === 'turn.aborted') return this.#fail(event);
    if (event.kind === 'message' && event.author.kind === 'agent') this.#replies += 1;
    return [];
  }

  #ask(event: EventOf<'approval.requested'>, id?: string): UiChunk[] {
    const { author, body, conversation } = event;
    const turn = event.turn ?? '';
    const { request, tool, args, by, deadline } = body;
    const key = this.#keyOf(request, conversation);
    const known = this.#calls.get(id ?? '') ?? { id: id ?? key, name: tool };
    const wasShown = this.#calls.get(known.id)?.isShown === true;
    const call: ShownCall = { ...known, isShown: true, isEnded: false, approval: 'requested' };
    this.#calls.set(call.id, call);
    this.#approvals.set(key, call);
    const approvalDescriptor = { agent: author.id, name: author.name, by, ...(deadline && { deadline }) };
    return [
      ...this.#author(author.id, turn),
      ...(wasShown ? [] : [inputOf(call, args)]),
      { type: 'tool-approval-request', approvalId: key, toolCallId: call.id, approvalDescriptor },
    ];
  }

  #decide({ body, conversation }: EventOf<'approval.decided'>): UiChunk[] {
    const { request, outcome, note, args } = body;
    const approvalId = this.#keyOf(request, conversation);
    const call = this.#approvals.get(approvalId);
    if (!call || call.approval !== 'requested') return [];
    call.approval = 'decided';
    const approved = outcome === 'approved';
    const reason = note || (approved || outcome === 'denied' ? '' : outcome);
    const response: UiChunk = {
      type: 'tool-approval-response',
      approvalId,
      approved,
      ...(reason !== '' && { reason }),
    };
    if (approved) return [...(args === undefined ? [] : [inputOf(call, args)]), response];
    call.isEnded = true;
    return [response, { type: 'tool-output-denied', toolCallId: call.id }];
  }

  #question({ author, body, conversation, turn }: EventOf<'question'>): UiChunk[] {
    const { question, text, choices, by, deadline } = body;
    const id = this.#keyOf(question, conversation);
    this.#questions.add(id);
    const data = { question: id, agent: author.id, name: author.name, text, by };
    return [
      ...this.#author(author.id, turn ?? ''),
      {
        type: 'data-question',
        id,
        data: { ...data, ...(choices && { choices }), ...(deadline && { deadline }) },
      },
    ];
  }

  /** A person's answer is a message of its own, the next one. A question that ended without an answer is reported here. */
  #answered({ author, body, conversation }: EventOf<'question.answered'>): UiChunk[] {
    const id = this.#keyOf(body.question, conversation);
    if (author.kind === 'user' || !this.#questions.has(id)) return [];
    return [{ type: 'data-question', id, data: { question: id, outcome: body.outcome } }];
  }

  #fail({ author, turn, body, kind }: EventOf<'turn.failed' | 'turn.aborted'>): UiChunk[] {
    const code = kind === 'turn.failed' ? body.code : 'aborted';
    const message = kind === 'turn.failed' ? body.message : `the turn was stopped by ${body.by}`;
    this.#failure = `@${author.id}: ${message}`;
    return [{ type: 'data-failure', data: { agent: author.id, name: author.name, turn, code, message } }];
  }

  #author(agent: string, turn: string): UiChunk[] {
    if (this.#speaker === turn) return [];
    this.#speaker = turn;
    return [{ type: 'data-author', data: { id: agent, name: this.#options.nameOf(agent), turn } }];
  }

  #keyOf(task: string, at: string): string {
    return askedKey(task, at, this.#options.conversation);
  }
}

function inputOf({ id, name }: ShownCall, args: string): UiChunk {
  return { type: 'tool-input-available', toolCallId: id, toolName: name, input: dataIn(args), ...OF_AGENT };
}

function failed(toolCallId: string, errorText: string): UiChunk {
  return { type: 'tool-output-error', toolCallId, errorText };
}

function handoffOf({ author, to, body }: EventOf<'handoff'>): UiChunk {
  const { goal, why } = body.summary;
  return { type: 'data-handoff', data: { from: author.id, to, goal, ...(why !== '' && { why }) } };
}

function dataIn(args: string): unknown {
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}
