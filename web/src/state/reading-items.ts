import type {
  AgentId,
  ApprovalRequestedBody,
  Attachment,
  Author,
  ConversationId,
  Event,
  EventKind,
  EventOf,
  HandoffSummary,
  ToolOutcome,
  TurnId,
} from '../../../src/events/index.ts';
import { rowOf } from '../../../src/library/projection/row.ts';

interface Piece {
  /** Seq of its first event. `at`: the event's time, ms since the epoch. */
  seq: number;
  at: number;
  /** Some of its text is erased. */
  isErased?: boolean;
}

/** A tool call as a card. `text` and `endedAt` are null until its result is in the log. */
export interface ReadCall {
  id: string;
  name: string;
  args: string;
  outcome: ToolOutcome | null;
  text: string | null;
  startedAt: number;
  endedAt: number | null;
}

/** What one agent did between two of its messages: the text and calls of its steps. */
export interface WorkItem extends Piece {
  kind: 'work';
  author: Author;
  turn: TurnId | null;
  steps: { seq: number; words: string; thoughts: string; calls: ReadCall[] }[];
}

export interface WordsItem extends Piece {
  kind: 'words';
  author: Author;
  to: AgentId[];
  text: string;
  attachments: readonly Attachment[];
  /** For people only: no agent sees it. */
  isNotice: boolean;
  /** The running turns that it was given to: by whom, and before which of the turn's steps. */
  steered: { agent: AgentId; step: number }[];
  turn: TurnId | null;
}

/** A question or an approval. `end` is null while it waits for a person. */
export interface AskItem extends Piece {
  kind: 'ask';
  author: Author;
  task: string;
  asks:
    | { what: 'question'; text: string }
    | ({ what: 'approval' } & Pick<ApprovalRequestedBody, 'tool' | 'args'>);
  end: { seq: number; at: number; by: string; outcome: string; text: string } | null;
}

export interface DelegationItem extends Piece {
  kind: 'delegation';
  task: string;
  from: AgentId;
  to: AgentId;
  text: string;
  /** The attachments that the assignee got with the task, from the event `seq` of `conversation`. */
  attachments: readonly Attachment[];
  conversation: ConversationId;
  thread: ConversationId;
  end: { seq: number; at: number; outcome: string; text: string } | null;
}

export interface HandoffItem extends Piece {
  kind: 'handoff';
  author: Author;
  to: AgentId[];
  summary: HandoffSummary;
}

/** Something that happened besides messages, in one line. */
export interface NoteItem extends Piece {
  kind: 'note';
  level: 'quiet' | 'problem';
  text: string;
  /** The agent that the text names as `@` with its id. */
  about: string | null;
  /** The turn that ended here without an answer. */
  failed: TurnId | null;
}

/** A piece of a conversation as people read it. `seq` is the seq of its first event. */
export type ReadingItem = WordsItem | WorkItem | AskItem | DelegationItem | HandoffItem | NoteItem;

/** The items of these events, which are a gapless part of one conversation, oldest first. */
export function readingItems(events: readonly Event[]): ReadingItem[] {
  const reading = new Reading();
  for (const event of events) reading.take(event);
  return reading.items;
}

/** The item that shows this event: the last one that begins with it or before it. */
export function itemAt(items: readonly ReadingItem[], seq: number): ReadingItem | null {
  return items.findLast((item) => item.seq <= seq) ?? null;
}

class Reading {
  readonly items: ReadingItem[] = [];
  readonly #asks = new Map<string, AskItem>();
  readonly #delegations = new Map<string, DelegationItem>();
  readonly #calls = new Map<string, ReadCall>();

  readonly #readers: { [K in EventKind]?: (event: EventOf<K>) => void } = {
    message: (event) => this.#words(event),
    notice: (event) => this.#words(event),
    'turn.steered': (event) => this.#steered(event),
    step: (event) => this.#step(event),
    'tool.result': (event) => this.#result(event),
    handoff: (event) => this.#handoff(event),
    'delegation.opened': (event) => this.#opened(event),
    'delegation.ended': (event) => this.#delegationEnd(event),
    question: (event) => this.#ask(event),
    'approval.requested': (event) => this.#ask(event),
    'question.answered': (event) => this.#askEnd(event),
    'approval.decided': (event) => this.#askEnd(event),
  };

  take(event: Event): void {
    // A row that cannot be read as an event, or that was changed after its append, is described in words of its own.
    if (event.altered) return this.#note(event);
    const read = this.#readers[event.kind] as ((event: Event) => void) | undefined;
    const before = this.items.length;
    if (read) read(event);
    else if (isTold(event)) this.#note(event);
    if (event.erased === undefined) return;
    const item = this.items.length > before ? this.items.at(-1) : this.#goneOn(event);
    if (item) item.isErased = true;
  }

  /** The item that an event continues. */
  #goneOn(event: Event): ReadingItem | undefined {
    const { kind, body } = event;
    const turn = event.turn ?? null;
    if (kind === 'step' || kind === 'tool.result')
      return this.items.findLast((item) => item.kind === 'work' && item.turn === turn);
    if (kind === 'question.answered') return this.#asks.get(body.question);
    if (kind === 'approval.decided') return this.#asks.get(body.request);
    return kind === 'delegation.ended' ? this.#delegations.get(body.delegation) : undefined;
  }

  #words(event: EventOf<'message' | 'notice'>): void {
    const { seq, at, author, to, body, kind } = event;
    const turn = event.turn ?? null;
    const attachments = body.attachments ?? [];
    // An agent that has nothing to say ends its turn without text.
    if (body.content.trim() === '' && attachments.length === 0) return;
    this.items.push({
      kind: 'words',
      seq,
      at,
      author,
      to,
      text: body.content,
      attachments,
      isNotice: kind === 'notice',
      steered: [],
      turn,
    });
  }

  #steered({ author, body: { inputs, step } }: EventOf<'turn.steered'>): void {
    for (const item of this.items)
      if (item.kind === 'words' && inputs.includes(item.seq))
        item.steered.push({ agent: author.id as AgentId, step: step + 1 });
  }

  #step({ seq, at, author, turn: of, body }: EventOf<'step'>): void {
    const turn = of ?? null;
    const calls = body.calls.map(({ id, name, args }) => {
      const call: ReadCall = { id, name, args, outcome: null, text: null, startedAt: at, endedAt: null };
      this.#calls.set(`${turn} ${id}`, call);
      return call;
    });
    const step = { seq, words: body.content, thoughts: body.reasoning?.text ?? '', calls };
    const last = this.items.at(-1);
    if (last?.kind === 'work' && last.turn === turn) last.steps.push(step);
    else this.items.push({ kind: 'work', seq, at, author, turn, steps: [step] });
  }

  #result({ at, turn, body }: EventOf<'tool.result'>): void {
    const call = this.#calls.get(`${turn ?? null} ${body.call}`);
    // Its step is in an earlier part of the log.
    if (!call) return;
    call.outcome = body.outcome;
    call.text = body.content;
    call.endedAt = at;
  }

  #handoff({ seq, at, author, to, body }: EventOf<'handoff'>): void {
    this.items.push({ kind: 'handoff', seq, at, author, to, summary: body.summary });
  }

  #opened(event: EventOf<'delegation.opened'>): void {
    const { seq, at, author, body } = event;
    if (body.thread === event.conversation) {
      // The thread itself begins with the task, as a message from the delegator.
      const from: Author = { ...author, id: body.delegator, name: author.name };
      const rest = {
        to: [body.assignee],
        attachments: body.attachments ?? [],
        isNotice: false,
        steered: [],
        turn: null,
      };
      this.items.push({ kind: 'words', seq, at, author: from, text: body.task, ...rest });
      return;
    }
    const { delegation: task, delegator: from, assignee: to, thread } = body;
    const item: DelegationItem = {
      kind: 'delegation',
      seq,
      at,
      task,
      from,
      to,
      text: body.task,
      attachments: body.attachments ?? [],
      conversation: event.conversation,
      thread,
      end: null,
    };
    this.#delegations.set(task, item);
    this.items.push(item);
  }

  #delegationEnd(event: EventOf<'delegation.ended'>): void {
    const { seq, at, body } = event;
    const item = this.#delegations.get(body.delegation);
    if (item) item.end = { seq, at, outcome: body.outcome, text: body.result };
    else this.#note(event);
  }

  #ask(event: EventOf<'question' | 'approval.requested'>): void {
    const { seq, at, author } = event;
    const item: AskItem =
      event.kind === 'question'
        ? {
            kind: 'ask',
            seq,
            at,
            author,
            task: event.body.question,
            asks: { what: 'question', text: event.body.text },
            end: null,
          }
        : {
            kind: 'ask',
            seq,
            at,
            author,
            task: event.body.request,
            asks: { what: 'approval', tool: event.body.tool, args: event.body.args },
            end: null,
          };
    this.#asks.set(item.task, item);
    this.items.push(item);
  }

  #askEnd(event: EventOf<'question.answered' | 'approval.decided'>): void {
    const { seq, at, author, body } = event;
    const [task, text] = 'question' in body ? [body.question, body.content] : [body.request, body.note];
    const item = this.#asks.get(task);
    if (item) item.end = { seq, at, by: author.name, outcome: body.outcome, text };
    else this.#note(event);
  }

  #note(event: Event): void {
    const { seq, at, level, summary, author, agent: about } = rowOf(event);
    const isNamed = event.author.kind === 'system' || summary.startsWith(`@${event.author.id} `);
    const text = isNamed ? summary : `${author}: ${summary}`;
    // A failed call and the end of its turn report the same.
    const last = this.items.at(-1);
    if (last?.kind === 'note' && last.text === text) this.items.pop();
    this.items.push({
      kind: 'note',
      seq,
      at,
      level: level === 'problem' ? 'problem' : 'quiet',
      text,
      about,
      failed: event.kind === 'turn.failed' ? (event.turn ?? null) : null,
    });
  }
}

/** Kinds of events that a reader of the conversation wants to see. */
const TOLD: ReadonlySet<string> = new Set<Event['kind']>([
  'membership.changed',
  'injection',
  'mode.changed',
  'phase.changed',
  'run.directive',
  'guard.stopped',
  'error',
  'turn.failed',
  'turn.aborted',
  'command',
]);

function isTold(event: Event): boolean {
  if (event.kind === 'compaction.progress')
    return event.body.phase === 'done' || event.body.phase === 'failed';
  if (event.kind === 'session.changed')
    return event.body.change === 'lost' || event.body.change === 'refused';
  return TOLD.has(event.kind);
}
