import type { ChatBlock, ChatChange, Event } from '../troupe.ts';
import type { A2aMessage, Artifact, ArtifactUpdate, TaskStatus, TaskUpdate } from './protocol.ts';
import { taskId } from './task-id.ts';
import { isTerminal, TaskProgress } from './task-progress.ts';

type NameOf = (agent: string) => string;

/** An agent that takes no turns. */
export interface Absence {
  agent: string;
  /** Why: `paused`, `retired` or `failed`. */
  status: string;
}

interface ShownBlock {
  block: ChatBlock;
  text: string;
  isTold: boolean;
}

/**
 * The task that a message began, as the protocol shows it. Owns what its client was told.
 *  V1  The texts of an artifact's updates, joined since the last one that does not append, are the text of the artifact.
 *  V2  What is said in threads, and what models think, is left out; what people are asked there is not.
 */
export class TaskView {
  readonly progress: TaskProgress;
  readonly #sent: Event;
  readonly #nameOf: NameOf;
  readonly #blocks = new Map<string, ShownBlock>();
  readonly #data: Artifact[] = [];
  /** What people have said to it. */
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

  /** Notes who is to work on it and takes no turns. Returns the update, if that is news. */
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

  /** The whole text replaces its pieces: some clients, such as Google's ADK, keep what the last update holds alone. */
  #end(id: string): TaskUpdate[] {
    const shown = this.#blocks.get(id);
    if (!shown?.isTold) return [];
    const artifact = this.#artifact(shown.block, shown.text);
    return [this.#update({ artifact, append: false, lastChunk: true })];
  }

  /** The protocol takes nothing back, but what does not append replaces. It is no last update: nobody is to keep the empty text as a reply. */
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

  /** The reply of an agent that answers in JSON. */
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
