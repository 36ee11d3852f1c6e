import { AnswerCleaner, agentLabel } from '../../context/index.ts';
import {
  agentAuthor,
  type Reasoning,
  type ToolCall,
  type Told,
  type ToolOutcome,
  type ToolProgress,
} from '../../events/index.ts';
import type { ModelEvent } from '../../providers/provider.ts';
import { ArgumentsRedactor } from './step-journal.ts';
import type { ModelAnswer, TurnRun } from '../attempt/turn-run.ts';
import { type AgentEvent, nextAgent, pathOf } from '../../machines/agent-lifecycle.ts';
import { publish } from '../actor/at-rest.ts';

/** Events before which held-back words are reported, so that watchers see both in order. */
const ENDS_WORDS: ReadonlySet<ModelEvent['type']> = new Set([
  'reasoning',
  'calling',
  'call',
  'done',
  'failed',
  'aborted',
]);

/** Maximum characters of reasoning, and of the arguments of a call, that are reported as they grow. */
const MAX_GROWING = 65_536;

/**
 * Receives an answer as the model writes it: removes copied marks of the prompt, and reports the words to watchers. The
 * reported pieces are exactly what is stored. Positions count from the beginning of the round. With a redaction, reasoning is
 * reported when it is complete.
 */
export function hearAnswer(run: TurnRun) {
  const { deps, runtime } = run;
  const { redaction } = deps;
  const cleaner = new AnswerCleaner(agentLabel(runtime.profile.id), runtime.profile.framing);
  let text = '';
  let original = '';
  let thought = 0;
  /** Reasoning that is held back until it is known whether it belongs to a step or to a message. */
  let untold: string | null = null;
  let calls: ReturnType<typeof hearCalls> | null = null;

  function say(piece: string): void {
    if (piece === '') return;
    const index = text.length;
    text += piece;
    tell(run, { type: 'text', index, text: piece });
  }

  function think(words: string): void {
    const piece = words.slice(0, MAX_GROWING - thought);
    if (piece === '') return;
    tell(run, { type: 'reasoning', index: thought, text: piece });
    thought += piece.length;
  }

  function thinkUntold(kind: 'step' | 'message'): void {
    const where = { kind, author: agentAuthor(runtime.profile) };
    if (untold !== null) think(redaction?.text(untold, where) ?? untold);
    untold = null;
  }

  return {
    /** To be called for every event, before it is handled. */
    before(type: ModelEvent['type']): void {
      if (ENDS_WORDS.has(type)) say(cleaner.end());
    },
    text(delta: string): void {
      original += delta;
      say(cleaner.push(delta));
    },
    think(delta: string): void {
      if (!redaction) think(delta);
    },
    /** The whole reasoning. Ignored if it was reported piece by piece. */
    reasoning(whole: Reasoning): void {
      if (thought > 0) return;
      if (redaction) untold = whole.text;
      else think(whole.text);
    },
    write(id: string, name: string, delta: string): void {
      calls ??= hearCalls(run);
      calls.write(id, name, delta);
    },
    call(call: ToolCall): void {
      thinkUntold('step');
      calls ??= hearCalls(run);
      calls.call(call);
    },
    end(): void {
      if (untold !== null) thinkUntold('message');
      calls?.end();
    },
    said: (): Pick<ModelAnswer, 'text' | 'original'> => (original === text ? { text } : { text, original }),
  };
}

interface Written {
  name: string;
  told: string;
  /** Null: there is no redaction. */
  redactor: ArgumentsRedactor | null;
  isWhole: boolean;
}

/**
 * Reports the calls of an answer as the model writes them.
 *  A1  With a redaction, arguments are reported value by value, as they are stored.
 *  A2  Parts of a call that were held back, or did not come in pieces, are reported when the call is complete.
 *  A3  Calls that never become complete are reported as dropped at the end.
 */
function hearCalls(run: TurnRun) {
  const { redaction } = run.deps;
  const where = { kind: 'step' as const, author: agentAuthor(run.runtime.profile) };
  const calls = new Map<string, Written>();

  function begun(id: string, name: string): Written {
    const known = calls.get(id);
    if (known) return known;
    const redactor = redaction
      ? new ArgumentsRedactor((text) => redaction.text(text, where), MAX_GROWING)
      : null;
    const written = { name, told: '', redactor, isWhole: false };
    calls.set(id, written);
    return written;
  }

  function grow(call: string, written: Written, text: string): void {
    const index = written.told.length;
    const piece = text.slice(0, MAX_GROWING - index);
    written.told += piece;
    tell(run, { type: 'arguments', call, name: written.name, index, text: piece });
  }

  return {
    write(id: string, name: string, text: string): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole || written.told.length >= MAX_GROWING) return;
      const clean = written.redactor ? written.redactor.push(text) : text;
      if (isNew || clean !== '') grow(id, written, clean);
    },
    call({ id, name, args }: ToolCall): void {
      const isNew = !calls.has(id);
      const written = begun(id, name);
      if (written.isWhole) return;
      written.isWhole = true;
      const { told } = written;
      if (told.length >= MAX_GROWING) return;
      const clean = redaction ? redaction.json(args, where) : args;
      if (isNew || (clean.length > told.length && clean.startsWith(told)))
        grow(id, written, clean.slice(told.length));
    },
    end(): void {
      for (const [call, { name, isWhole }] of calls) if (!isWhole) tell(run, { type: 'dropped', call, name });
    },
  };
}

/** Maximum characters of arguments, progress and results that watchers see. The log has them whole. */
const MAX_ARGS = 4_096;
const MAX_PROGRESS = 1_000;
const MAX_RESULT = 4_096;
const PROGRESS_MS = 100;

type Teller = Pick<TurnRun, 'deps' | 'live' | 'turn' | 'step' | 'meanwhile'>;

/** Reports to watchers what happens in the turn. Does not wait for them; their errors become warnings. */
export function tell({ deps, live, turn, step, meanwhile }: Teller, told: Told): void {
  const { tenant, conversation, agent } = live.address;
  const place = { tenant, conversation, agent, turn: turn.id, attempt: turn.attempt };
  try {
    deps.onLive?.({ ...place, step: step + 1, round: meanwhile.rounds, ...told });
  } catch (error) {
    deps.onWarning(error, 'stream watcher');
  }
}

interface CallShow {
  progress(report: string | ToolProgress): void;
  /** Reports the waiting progress. Later progress is ignored. */
  end(): void;
}

/** The first progress is reported immediately. Later progress is reported after a pause, and only the last. */
export function showCall(run: TurnRun, { id, name, args }: ToolCall): CallShow {
  const { deps } = run;
  const over = new AbortController();
  let waiting: ToolProgress | null = null;
  let isPausing = false;
  tell(run, { type: 'called', call: id, name, args: cut(args, MAX_ARGS) });

  function flush(): void {
    if (waiting === null) return;
    const progress = waiting;
    waiting = null;
    isPausing = true;
    tell(run, { type: 'progress', call: id, name, ...shownProgress(run, progress) });
    void deps.clock.sleep(PROGRESS_MS, over.signal).then(() => {
      isPausing = false;
      if (!over.signal.aborted) flush();
    });
  }

  return {
    progress(report) {
      if (over.signal.aborted) return;
      waiting = progressOf(report);
      if (!isPausing) flush();
    },
    end() {
      flush();
      over.abort();
    },
  };
}

export function showResult(
  run: Teller,
  { id, name }: ToolCall,
  { outcome, text }: { outcome: ToolOutcome; text: string },
): void {
  tell(run, { type: 'result', call: id, name, outcome, text: cut(text, MAX_RESULT) });
}

/** The progress in a report. Tools may be plain JavaScript, so its type is checked. */
function progressOf(report: unknown): ToolProgress {
  if (typeof report === 'string') return { text: report };
  const { text, done, total } = Object(report) as Record<string, unknown>;
  return {
    ...(typeof text === 'string' && { text }),
    ...(Number.isFinite(done) && { done: done as number }),
    ...(Number.isFinite(total) && { total: total as number }),
  };
}

/** Redacts progress before cutting it, because a part of a secret at the cut would stay. */
function shownProgress({ deps, runtime }: TurnRun, progress: ToolProgress): ToolProgress {
  if (progress.text === undefined) return progress;
  const where = { kind: 'tool.result' as const, author: agentAuthor(runtime.profile) };
  const text = deps.redaction?.text(progress.text, where) ?? progress.text;
  return { ...progress, text: cut(text, MAX_PROGRESS) };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

/** Sends an event to the machine of a turn and publishes its new state. */
export function advance(run: TurnRun, event: AgentEvent): void {
  const { deps, lease, live, turn, answer } = run;
  live.state = nextAgent(live.state, event);
  const at = deps.clock.now();
  live.last = { event: event.type, at };
  if (!deps.onLive) return;
  const path = pathOf(live.state.value);
  // An agent that was paused or retired during its turn has that state from its commit on.
  const state = event.type === 'COMMITTED' ? (lease.record.parked ?? path) : path;
  const doing = state === 'working.acting' ? (answer?.calls.map(({ name }) => name) ?? []) : [];
  const { tenant, conversation, agent } = live.address;
  const place = { type: 'state' as const, tenant, conversation, agent, turn: turn.id };
  const note = { ...place, state, event: event.type, at, doing };
  const { failure } = run;
  if (state !== 'backoff' || !failure?.wait) return publish(deps, note);
  const { code, since, wait } = failure;
  publish(deps, { ...note, waits: { code, since, next: wait.next } });
}
