import { type ModelEvent, type ModelFailure, NO_USAGE, type SessionChange } from '../troupe.ts';
import { type Artifact, type Status, type StreamAnswer, type Task, textOfParts } from './wire.ts';

/** States in which a task stays without a new message, with the failure that they are. */
const FAILED: Readonly<Record<string, ModelFailure['code']>> = {
  TASK_STATE_FAILED: 'provider_failed',
  TASK_STATE_REJECTED: 'provider_refused',
  TASK_STATE_CANCELED: 'provider_refused',
  TASK_STATE_AUTH_REQUIRED: 'provider_auth',
};

/** Makes the events of one answer of the updates of its task, of which some may come twice. */
export class TaskReader {
  /** The task of the answer, once it is known. */
  task: string | null;
  isOver = false;
  /** The remote agent gave the task up: another try needs a new message. */
  isBroken = false;
  readonly #said = new Map<string, string>();
  readonly #change: SessionChange;
  #context: string | null = null;
  #hasSpoken = false;

  constructor(change: SessionChange, task: string | null) {
    this.#change = change;
    this.task = task;
  }

  *read({ task, message, statusUpdate, artifactUpdate }: StreamAnswer): Generator<ModelEvent> {
    if (task) yield* this.snapshot(task);
    else if (message) {
      yield* this.#began(message.contextId);
      yield* this.#say('message', textOfParts(message.parts));
      yield this.#done('');
    } else if (artifactUpdate) {
      this.task = artifactUpdate.taskId;
      yield* this.#began(artifactUpdate.contextId);
      yield* this.#artifact(artifactUpdate.artifact, artifactUpdate.append);
    } else if (statusUpdate) {
      this.task = statusUpdate.taskId;
      yield* this.#began(statusUpdate.contextId);
      yield* this.#status(statusUpdate.status);
    }
  }

  /** The task as it is now: what was said before is not said again. */
  *snapshot({ id, contextId, artifacts, status }: Task): Generator<ModelEvent> {
    this.task = id;
    yield* this.#began(contextId);
    for (const artifact of artifacts) yield* this.#artifact(artifact, false);
    yield* this.#status(status);
  }

  /** Artifacts of a task that waits for an answer were said with its question. */
  skip({ artifacts, status }: Task): void {
    if (status.state !== 'TASK_STATE_INPUT_REQUIRED') return;
    for (const { artifactId, parts } of artifacts) this.#said.set(artifactId, textOfParts(parts));
  }

  *#began(context: string | undefined): Generator<ModelEvent> {
    if (this.#context !== null || context === undefined || context === '') return;
    this.#context = context;
    yield { type: 'session', change: this.#change, id: context };
  }

  *#artifact({ artifactId, parts }: Artifact, append: boolean): Generator<ModelEvent> {
    const before = this.#said.get(artifactId) ?? '';
    const text = textOfParts(parts);
    if (append) yield* this.#say(artifactId, text);
    // Said words cannot be taken back: a replacement that is not a continuation follows in full.
    else if (text.startsWith(before)) yield* this.#say(artifactId, text.slice(before.length));
    else if (!before.startsWith(text)) yield* this.#say(artifactId, `\n\n${text}`);
  }

  *#say(id: string, delta: string): Generator<ModelEvent> {
    if (delta === '') return;
    // Artifacts are documents of their own.
    const isNext = this.#hasSpoken && !this.#said.has(id);
    this.#hasSpoken = true;
    this.#said.set(id, (this.#said.get(id) ?? '') + delta);
    yield { type: 'text', delta: isNext ? `\n\n${delta}` : delta };
  }

  *#status({ state, message }: Status): Generator<ModelEvent> {
    if (this.isOver) return;
    const text = message ? textOfParts(message.parts) : '';
    const code = Object.hasOwn(FAILED, state) ? FAILED[state] : undefined;
    if (code) {
      this.isOver = true;
      this.isBroken = true;
      const word = state.slice('TASK_STATE_'.length).toLowerCase().replaceAll('_', ' ');
      const why = text === '' ? '' : `: ${text}`;
      yield { type: 'failed', error: { code, message: `the task of the remote agent is ${word}${why}` } };
    } else if (state === 'TASK_STATE_INPUT_REQUIRED') {
      yield* this.#say('question', text);
      yield this.#done(this.task ?? '');
    } else if (state === 'TASK_STATE_COMPLETED') {
      // Beside artifacts, the last message is a remark about them.
      if (!this.#hasSpoken) yield* this.#say('message', text);
      yield this.#done('');
    } else if (text !== '') yield { type: 'thinking', delta: `${text}\n` };
  }

  /** `open`: the task that waits for the next message. */
  #done(open: string): ModelEvent {
    this.isOver = true;
    const session = this.#context === null ? null : { id: this.#context, checkpoint: `task:${open}` };
    return { type: 'done', stop: 'end', usage: NO_USAGE, ...(session && { session }) };
  }
}
