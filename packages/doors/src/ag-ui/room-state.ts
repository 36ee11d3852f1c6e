import { type Event, type KindAbout, type TaskInfo, forKind, type EventOf } from '../troupe.ts';
import type { PatchOperation } from './protocol.ts';

type Status = 'idle' | 'queued' | 'running' | 'waiting' | 'paused' | 'failed' | 'retired';

interface AgentState {
  name: string;
  role: string;
  status: Status;
}

interface TaskState {
  kind: TaskInfo['kind'];
  owner: string;
  assignee?: string;
  text: string;
}

/** The state that clients see: the agents of the conversation and its open tasks. Owns both, and returns the changes. */
export class RoomState {
  readonly #agents: Map<string, AgentState>;
  readonly #tasks = new Map<string, TaskState>();

  constructor(agents: readonly { id: string; name: string; role: string; status: Status }[]) {
    this.#agents = new Map(agents.map(({ id, name, role, status }) => [id, { name, role, status }]));
  }

  get snapshot(): object {
    return structuredClone({
      agents: Object.fromEntries(this.#agents),
      tasks: Object.fromEntries(this.#tasks),
    });
  }

  addTasks(tasks: readonly TaskInfo[]): void {
    for (const { id, kind, owner, assignee, text, tool, args } of tasks)
      this.#tasks.set(id, {
        kind,
        owner,
        ...(assignee !== undefined && { assignee }),
        text: text ?? `${tool ?? ''} ${args ?? ''}`,
      });
  }

  begins(agent: string): PatchOperation[] {
    return this.#set(agent, 'running');
  }

  rests(agent: string): PatchOperation[] {
    const isWaiting = [...this.#tasks.values()].some(({ owner }) => owner === agent);
    return this.#set(agent, isWaiting ? 'waiting' : 'idle');
  }

  /** Returns what an event of the conversation changes. */
  note(event: Event): PatchOperation[] {
    const owner = event.author.id;
    const patch = forKind<KindAbout<'taskOpening' | 'taskEnd'>, PatchOperation[]>(
      {
        'delegation.opened': ({ body: { delegation, delegator, assignee, task } }) =>
          this.#open(delegation, { kind: 'delegation', owner: delegator, assignee, text: task }),
        question: ({ body: { question, text } }) => this.#open(question, { kind: 'question', owner, text }),
        'approval.requested': ({ body: { request, tool, args } }) =>
          this.#open(request, { kind: 'approval', owner, text: `${tool} ${args}` }),
        'delegation.ended': ({ body }) => this.#close(body.delegation),
        'question.answered': ({ body }) => this.#close(body.question),
        'approval.decided': ({ body }) => this.#close(body.request),
      },
      event,
    );
    return patch ?? [];
  }

  #set(agent: string, status: Status): PatchOperation[] {
    const known = this.#agents.get(agent);
    if (!known || known.status === status) return [];
    known.status = status;
    return [{ op: 'replace', path: `/agents/${escaped(agent)}/status`, value: status }];
  }

  #open(id: string, task: TaskState): PatchOperation[] {
    if (this.#tasks.has(id)) return [];
    this.#tasks.set(id, task);
    return [{ op: 'add', path: `/tasks/${escaped(id)}`, value: task }];
  }

  #close(id: string): PatchOperation[] {
    if (!this.#tasks.delete(id)) return [];
    return [{ op: 'remove', path: `/tasks/${escaped(id)}` }];
  }
}

/** Escapes a key for a JSON pointer. */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** The questions to people in a conversation. Owns which of them are open, and which call a request for approval is about. */
export class Asked {
  /** Ids of the questions and requests whose end was not reported yet. */
  readonly open = new Set<string>();
  readonly #calls = new Map<string, string>();
  readonly #questions = new Map<string, string>();
  readonly #repliedTo = new Set<string>();

  callOf(request: string): string | undefined {
    return this.#calls.get(request);
  }

  /** Whether people were asked to approve this call. */
  isAbout(call: string): boolean {
    return [...this.#calls.values()].includes(call);
  }

  /** Whether the answer is itself a message, as a reply to the question. */
  isReply({ body }: EventOf<'question.answered'>): boolean {
    return this.#repliedTo.has(this.#questions.get(body.question) ?? '');
  }

  /** `isHere`: the event is in the conversation itself. `call`: the call for which it requests approval. */
  note(event: Event, { isHere, call }: { isHere: boolean; call: string | undefined }): void {
    if (event.kind === 'message' && event.replyTo !== undefined) this.#repliedTo.add(event.replyTo);
    if (event.kind === 'question') {
      this.#questions.set(event.body.question, event.id);
      if (isHere) this.open.add(event.body.question);
    }
    if (event.kind === 'approval.requested') {
      if (call !== undefined) this.#calls.set(event.body.request, call);
      if (isHere) this.open.add(event.body.request);
    }
    this.open.delete(endedBy(event) ?? '');
  }
}

/** Id of the question or request that an event ends. */
export function endedBy(event: Event): string | null {
  if (event.kind === 'question.answered') return event.body.question;
  return event.kind === 'approval.decided' ? event.body.request : null;
}
