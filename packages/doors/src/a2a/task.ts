import {
  ConversationId,
  type Event,
  type IntegrationTroupe,
  type Troupe,
  TroupeError,
  chatChanges,
  storedEvents,
  type ChatBlock,
  type ChatChange,
  type Answers,
  type DelegationOpenedBody,
  type EventOf,
  type Failure,
  awaitAnswers,
} from '../troupe.ts';
import { namesIn } from '../speech.ts';
import {
  unknownTask,
  parseTaskId,
  type TaskPlace,
  type A2aMessage,
  type A2aPart,
  type A2aTask,
  type Artifact,
  type ArtifactUpdate,
  type TaskStatus,
  type TaskUpdate,
  taskId,
  type TaskState,
} from './protocol.ts';
import { type EventFile, filesIn } from '../http.ts';

/** The parts of a troupe from which the state of a task is read. */
export type TaskLog = Pick<IntegrationTroupe, 'agents' | 'events' | 'actors'>;

/** An agent of a troupe, as a server of tasks. */
export interface Desk<T = Troupe> {
  troupe: T;
  agent: string;
}

/** Most levels of threads that are read. */
const MAX_DEPTH = 16;

/** Whether a message began a task of the agent. */
export function isTaskOf({ kind, author, to }: Event, agent: string): boolean {
  return kind === 'message' && author.kind === 'user' && to.some((each) => each === agent);
}

/**
 * The message that began a task. Throws TASK_NOT_FOUND, also if the task belongs to another agent or is beyond the caller's grant.
 */
export async function findTask({ troupe, agent }: Desk<TaskLog>, id: string): Promise<Event> {
  const { conversation, seq } = parseTaskId(id);
  const event = await eventAt(troupe, { conversation, seq });
  if (!event || !isTaskOf(event, agent)) throw unknownTask(id);
  return event;
}

async function eventAt(troupe: TaskLog, { conversation, seq }: TaskPlace): Promise<Event | undefined> {
  try {
    const { events } = await troupe.events(conversation, { after: seq - 1, limit: 1 });
    return events.find((event) => event.seq === seq);
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return undefined;
    throw error;
  }
}

/** The task as the log has it now, without text that is still being written. */
export async function readTask({ troupe }: Pick<Desk<TaskLog>, 'troupe'>, sent: Event): Promise<TaskView> {
  const view = new TaskView(sent, namesIn(troupe));
  const changesOf = chatChanges();
  for await (const event of storedEvents(troupe, sent.conversation, sent.seq)) {
    for (const change of changesOf({ type: 'event', event })) view.take(change);
    if (view.isOver) return view;
  }
  await readThreads(troupe, view.progress);
  view.hold(await absentWorkers(troupe, view.progress));
  return view;
}

/** Adds the questions to people in the threads of open delegations. */
export async function readThreads(
  troupe: TaskLog,
  progress: Pick<TaskProgress, 'threads' | 'note'>,
): Promise<void> {
  const read = new Set<string>();
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const next = progress.threads.filter((thread) => !read.has(thread));
    if (next.length === 0) return;
    for (const thread of next) {
      read.add(thread);
      for await (const event of storedEvents(troupe, ConversationId.parse(thread), 0)) progress.note(event);
    }
  }
}

const ABSENT = new Set(['paused', 'retired', 'failed']);

/** The agents that should work on a task but take no turns. Empty if another agent works on it. */
export async function absentWorkers(
  troupe: TaskLog,
  { workers, state }: Pick<TaskProgress, 'workers' | 'state'>,
): Promise<Absence[]> {
  if (state !== 'TASK_STATE_WORKING') return [];
  const statuses = new Map<string, Awaited<ReturnType<TaskLog['actors']>>>();
  const absent = new Map<string, Absence>();
  for (const { agent, conversation } of workers) {
    const actors = statuses.get(conversation) ?? (await troupe.actors(conversation));
    statuses.set(conversation, actors);
    const status = actors.find((actor) => actor.agent === agent)?.status;
    // It waits for another of these agents.
    if (status === 'waiting') continue;
    if (status === undefined || !ABSENT.has(status)) return [];
    absent.set(agent, { agent, status });
  }
  return [...absent.values()];
}

interface Shown {
  /** Most messages of the history, the newest ones. Default: all. */
  historyLength?: number | undefined;
  /** Default true. */
  hasArtifacts?: boolean;
}

/** The task with its history, including the files of those messages. */
export async function showTask(
  troupe: Troupe,
  view: TaskView,
  { historyLength, hasArtifacts = true }: Shown = {},
): Promise<A2aTask> {
  const { id, status, artifacts, said } = view;
  const contextId = said[0]!.conversation;
  const told = historyLength === undefined ? said : historyLength === 0 ? [] : said.slice(-historyLength);
  const files = filesIn(troupe);
  const history: A2aMessage[] = [];
  for (const event of told)
    history.push({
      messageId: event.id,
      contextId,
      taskId: id,
      role: 'ROLE_USER',
      parts: [...wordsIn(event), ...(await files(event)).map(partOf)],
      metadata: { author: { id: event.author.id, name: event.author.name } },
    });
  return {
    id,
    contextId,
    status,
    ...(hasArtifacts && { artifacts }),
    ...(history.length > 0 && { history }),
  };
}

function wordsIn({ kind, body }: Event): A2aPart[] {
  if (kind === 'approval.decided') {
    const { request, outcome, note } = body;
    return [{ data: { request, approved: outcome === 'approved', note } }];
  }
  if (kind !== 'message' && kind !== 'question.answered') return [];
  return body.content === '' ? [] : [{ text: body.content }];
}

function partOf({ mediaType, name, bytes, base64 }: EventFile): A2aPart {
  if (base64 === null) return { data: { file: { mediaType, name, bytes } } };
  return { raw: base64, mediaType, ...(name !== undefined && { filename: name }) };
}

type NameOf = (agent: string) => string;

/** An agent that takes no turns. */
interface Absence {
  agent: string;
  /** Why the agent takes no turns: `paused`, `retired` or `failed`. */
  status: string;
}

interface ShownBlock {
  block: ChatBlock;
  text: string;
  isTold: boolean;
}

/**
 * The task that a message began, in the protocol's form. Owns what its client was told.
 *  V1  The text of an artifact is the text of its updates, joined since the last update that does not append.
 *  V2  Text in threads and the reasoning of models are left out; questions to people in threads are not.
 */
export class TaskView {
  readonly progress: TaskProgress;
  readonly #sent: Event;
  readonly #nameOf: NameOf;
  readonly #blocks = new Map<string, ShownBlock>();
  readonly #data: Artifact[] = [];
  /** Messages and answers of people in this task. */
  readonly said: Event[];
  #absent: readonly Absence[] = [];

  constructor(sent: Event, nameOf: NameOf) {
    this.#sent = sent;
    this.#nameOf = nameOf;
    this.progress = new TaskProgress(sent);
    this.said = [sent];
  }

  get id(): string {
    return taskId(this.#sent);
  }

  get isOver(): boolean {
    return isTerminal(this.progress.state);
  }

  get artifacts(): Artifact[] {
    const told = [...this.#blocks.values()].filter(({ isTold }) => isTold);
    return [...told.map(({ block, text }) => this.#artifact(block, text)), ...this.#data];
  }

  get status(): TaskStatus {
    const { at, isBegun } = this.progress;
    const message = this.#statusMessage();
    const isHeld = this.#absent.length > 0 && !isBegun;
    const state = isHeld ? 'TASK_STATE_SUBMITTED' : this.progress.state;
    return { state, timestamp: new Date(at).toISOString(), ...(message && { message }) };
  }

  take(change: ChatChange): TaskUpdate[] {
    if (this.isOver) return [];
    switch (change.type) {
      case 'block.start':
        if (change.block.kind === 'text' && change.block.conversation === this.#sent.conversation)
          this.#blocks.set(change.block.id, { block: change.block, text: '', isTold: false });
        return [];
      case 'block.delta':
        return this.#grow(change);
      case 'block.end':
        return this.#end(change.id);
      case 'void':
        return change.ids.flatMap((id) => this.#void(id, change.reason));
      case 'event':
        return this.#event(change.event);
      case 'call.start':
      case 'call.delta':
      case 'call.ready':
      case 'call.progress':
      case 'call.result':
        return [];
    }
  }

  /** Notes which agents should work on it but take no turns. Returns the update if this has changed. */
  hold(absent: readonly Absence[]): TaskUpdate[] {
    const before = JSON.stringify(this.#absent);
    this.#absent = this.progress.state === 'TASK_STATE_WORKING' ? absent : [];
    if (JSON.stringify(this.#absent) === before) return [];
    return [{ statusUpdate: { ...this.#about(), status: this.status } }];
  }

  #grow({ id, text }: { id: string; text: string }): TaskUpdate[] {
    const shown = this.#blocks.get(id);
    if (!shown || text === '') return [];
    shown.text += text;
    const append = shown.isTold;
    shown.isTold = true;
    return [this.#update({ artifact: this.#artifact(shown.block, text), append, lastChunk: false })];
  }

  /** The last update has the whole text and replaces the pieces, because some clients, such as Google's ADK, keep only its text. */
  #end(id: string): TaskUpdate[] {
    const shown = this.#blocks.get(id);
    if (!shown?.isTold) return [];
    const artifact = this.#artifact(shown.block, shown.text);
    return [this.#update({ artifact, append: false, lastChunk: true })];
  }

  /**
   * The protocol cannot take text back, but an update that does not append replaces it. It is not marked as the last, so that
   * nobody keeps the empty text as a reply.
   */
  #void(id: string, reason: string): TaskUpdate[] {
    const shown = this.#blocks.get(id);
    if (!this.#blocks.delete(id) || !shown?.isTold) return [];
    const artifact = this.#artifact(shown.block, '', { void: reason });
    return [this.#update({ artifact, append: false, lastChunk: false })];
  }

  #event(event: Event): TaskUpdate[] {
    const isHere = event.conversation === this.#sent.conversation;
    const updates = isHere ? this.#dataIn(event) : [];
    const isAnswer = event.kind === 'question.answered' || event.kind === 'approval.decided';
    if (isAnswer && event.author.kind === 'user') this.said.push(event);
    if (this.progress.note(event)) {
      this.#absent = [];
      const statusUpdate = { ...this.#about(), status: this.status };
      updates.push({ statusUpdate });
    }
    if (event.kind === 'turn.started') updates.push(...this.hold([]));
    return updates;
  }

  /** The JSON reply of an agent that answers in JSON. */
  #dataIn({ kind, body, author, turn, id }: Event): TaskUpdate[] {
    if (kind !== 'message' || author.kind !== 'agent' || body.data === undefined) return [];
    const metadata = { author: { id: author.id, name: author.name }, turn };
    const artifact = { artifactId: `${id}/data`, name: author.name, parts: [{ data: body.data }], metadata };
    this.#data.push(artifact);
    return [this.#update({ artifact, append: false, lastChunk: true })];
  }

  #artifact({ id, agent, turn }: ChatBlock, text: string, more: object = {}): Artifact {
    const name = this.#nameOf(agent);
    return {
      artifactId: id,
      name,
      parts: [{ text }],
      metadata: { author: { id: agent, name }, turn, ...more },
    };
  }

  #update(update: Omit<ArtifactUpdate, 'taskId' | 'contextId'>): TaskUpdate {
    return { artifactUpdate: { ...this.#about(), ...update } };
  }

  #about(): { taskId: string; contextId: string } {
    return { taskId: this.id, contextId: this.#sent.conversation };
  }

  #statusMessage(): A2aMessage | null {
    const { state, failure } = this.progress;
    const base = { ...this.#about(), role: 'ROLE_AGENT' } as const;
    if (state === 'TASK_STATE_FAILED' && failure) {
      const { agent, code, message } = failure;
      const metadata = { code, author: { id: agent, name: this.#nameOf(agent) } };
      return {
        ...base,
        messageId: `${this.id}~failure`,
        parts: [{ text: `@${agent}: ${message}` }],
        metadata,
      };
    }
    if (state === 'TASK_STATE_WORKING') return this.#absenceMessage();
    const [asked] = this.progress.asked;
    if (state !== 'TASK_STATE_INPUT_REQUIRED' || !asked) return null;
    const { id, author } = asked;
    const parts = this.progress.asked.flatMap((each) => this.#askedParts(each));
    return {
      ...base,
      messageId: id,
      parts,
      metadata: { author: { id: author.id, name: author.name } },
    };
  }

  #absenceMessage(): A2aMessage | null {
    const [first] = this.#absent;
    if (!first) return null;
    const names = this.#absent.map(({ agent, status }) => `@${agent} is ${status}`);
    return {
      ...this.#about(),
      role: 'ROLE_AGENT',
      messageId: `${this.id}~waits`,
      parts: [{ text: `${names.join(', ')}: the task goes on when a person of the company lets it` }],
      metadata: { waitsFor: this.#absent },
    };
  }

  #askedParts(asked: TaskProgress['asked'][number]): A2aMessage['parts'] {
    const agent = asked.author.id;
    if (asked.kind === 'question') {
      const { question, text, choices, by } = asked.body;
      return [{ text }, { data: { question, agent, by, ...(choices && { choices }) } }];
    }
    const { request, tool, args, by } = asked.body;
    const text = `${this.#nameOf(agent)} waits for approval to call ${tool} ${args}`;
    return [{ text }, { data: { request, agent, tool, args, by } }];
  }
}

/** An open question or request for approval. */
type Asked = EventOf<'question' | 'approval.requested'>;

type Thread = Pick<DelegationOpenedBody, 'thread' | 'assignee'>;

/** An agent, and the conversation in which it has something to do. */
interface Worker {
  agent: string;
  conversation: string;
}

const TERMINAL: ReadonlySet<TaskState> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
]);

/** States in which clients expect nothing more unless they act. */
export function isAtRest(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';
}

export function isTerminal(state: TaskState): boolean {
  return TERMINAL.has(state);
}

/**
 * The progress of the task that a message began. Owns the open questions and delegations.
 *  P1  An ended task never changes again, whatever happens in the conversation.
 *  P2  Questions and requests from turns that answer other messages do not belong to the task.
 */
export class TaskProgress {
  readonly #sent: Event;
  readonly #answers: Answers;
  readonly #asked = new Map<string, Asked>();
  /** Open delegations, by id. */
  readonly #threads = new Map<string, Thread>();
  #isBegun = false;
  #state: TaskState = 'TASK_STATE_WORKING';
  #at: number;

  constructor(sent: Event) {
    this.#sent = sent;
    this.#answers = awaitAnswers(sent);
    this.#at = sent.at;
  }

  get state(): TaskState {
    return this.#state;
  }

  /** Time of the last change of the state, ms since the epoch. */
  get at(): number {
    return this.#at;
  }

  get threads(): readonly string[] {
    return [...this.#threads.values()].map(({ thread }) => thread);
  }

  /** The agents that have something to do for the task, and in which conversation. */
  get workers(): readonly Worker[] {
    const { conversation } = this.#sent;
    const here = this.#answers.missing.map((agent) => ({ agent, conversation }));
    return [
      ...here,
      ...[...this.#threads.values()].map(({ thread, assignee }) => ({
        agent: assignee,
        conversation: thread,
      })),
    ];
  }

  /** Whether a turn has begun for it. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  get failure(): Failure | undefined {
    return this.#answers.failures[0];
  }

  /** The open questions and requests to people, oldest first. */
  get asked(): readonly Asked[] {
    const own = new Set(this.#answers.ends.map(({ turn }) => turn));
    const { conversation } = this.#sent;
    return [...this.#asked.values()].filter(
      (each) => each.conversation !== conversation || own.has(each.turn),
    );
  }

  /** Takes an event of the conversation, or of the thread of one of the delegations. Returns whether the state has changed. */
  note(event: Event): boolean {
    if (isTerminal(this.#state)) return false;
    this.#noteTasks(event);
    const isHere = event.conversation === this.#sent.conversation;
    if (isHere) this.#answers.note(event);
    if (isHere && event.kind === 'turn.started') this.#isBegun ||= event.body.inputs.includes(this.#sent.seq);
    const isCancelled = isHere && event.kind === 'command' && event.body.command === 'cancelTask';
    const state = isCancelled ? 'TASK_STATE_CANCELED' : this.#found();
    if (state === this.#state) return false;
    this.#state = state;
    this.#at = event.at;
    return true;
  }

  #noteTasks(event: Event): void {
    const { kind, body } = event;
    if (kind === 'question') this.#asked.set(body.question, event);
    if (kind === 'approval.requested') this.#asked.set(body.request, event);
    if (kind === 'question.answered') this.#asked.delete(body.question);
    if (kind === 'approval.decided') this.#asked.delete(body.request);
    if (kind === 'delegation.opened') this.#threads.set(body.delegation, body);
    if (kind === 'delegation.ended') this.#threads.delete(body.delegation);
  }

  #found(): TaskState {
    const { areComplete, missing, failures, replies, ends } = this.#answers;
    const isAsked = this.asked.length > 0;
    if (!areComplete)
      return missing.length === 0 && isAsked ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_WORKING';
    if (isAsked) return 'TASK_STATE_INPUT_REQUIRED';
    const turns = new Set(ends.map(({ turn }) => turn));
    if (failures.length === 0 || replies.some(({ turn }) => turns.has(turn))) return 'TASK_STATE_COMPLETED';
    return failures.every(({ code }) => code === 'aborted') ? 'TASK_STATE_CANCELED' : 'TASK_STATE_FAILED';
  }
}
