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

/** What follows words that still wait: watchers see both in their order. */
const ENDS_WORDS: ReadonlySet<ModelEvent['type']> = new Set([
  'reasoning',
  'calling',
  'call',
  'done',
  'failed',
  'aborted',
]);

/** Longest reasoning, and longest arguments of a call, that are told as they grow, in characters. */
const MAX_GROWING = 65_536;

/**
 * Hears an answer as the model writes it: keeps its words without copied marks of the prompt, and tells watchers. What they
 * are told, piece by piece, is what is stored. Positions count from the beginning of the round. With a redaction, reasoning
 * is told when it is whole, as it is stored.
 */
export function hearAnswer(run: TurnRun) {
  const { deps, runtime } = run;
  const { redaction } = deps;
  const cleaner = new AnswerCleaner(agentLabel(runtime.profile.id), runtime.profile.framing);
  let text = '';
  let original = '';
  let thought = 0;
  /** Reasoning that waits until it is known whether it is of a step or of a message. */
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
    /** Of every event, before it counts. */
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
    /** The whole reasoning. Nothing if it was told piece by piece. */
    reasoning(whole: Reasoning): void {
      if (thought > 0) return;
      if (redaction) untold = whole.text;
      else think(whole.text);
    },
    /** A piece of the arguments of a call. */
    write(id: string, name: string, delta: string): void {
      calls ??= hearCalls(run);
      calls.write(id, name, delta);
    },
    /** A whole call. */
    call(call: ToolCall): void {
      thinkUntold('step');
      calls ??= hearCalls(run);
      calls.call(call);
    },
    /** The model has finished its answer. */
    end(): void {
      if (untold !== null) thinkUntold('message');
      calls?.end();
    },
    said: (): Pick<ModelAnswer, 'text' | 'original'> => (original === text ? { text } : { text, original }),
  };
}

/** A call of which watchers were told. */
interface Written {
  name: string;
  told: string;
  /** Null: nothing is hidden. */
  redactor: ArgumentsRedactor | null;
  isWhole: boolean;
}

/**
 * Tells the calls of an answer as the model writes them.
 *  A1  With a redaction, arguments are told value by value, as they are stored.
 *  A2  Of a call, what was held back or never came in pieces is told when it is whole.
 *  A3  Calls that never become whole are dropped at the end.
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
    /** What of its arguments was not told yet. */
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

/** Longest arguments, progress and results that watchers are shown, in characters. The log has them whole. */
const MAX_ARGS = 4_096;
const MAX_PROGRESS = 1_000;
const MAX_RESULT = 4_096;
/** Pause between two reports of progress of one call, ms. */
const PROGRESS_MS = 100;

type Teller = Pick<TurnRun, 'deps' | 'live' | 'turn' | 'step' | 'meanwhile'>;

/** Tells watchers what happens in the turn. They are not awaited, and their errors are only logged. */
export function tell({ deps, live, turn, step, meanwhile }: Teller, told: Told): void {
  const { tenant, conversation, agent } = live.address;
  const place = { tenant, conversation, agent, turn: turn.id, attempt: turn.attempt };
  try {
    deps.onLive?.({ ...place, step: step + 1, round: meanwhile.rounds, ...told });
  } catch (error) {
    deps.onWarning(error, 'stream watcher');
  }
}

/** What watchers see of one call while it runs. */
interface CallShow {
  progress(report: string | ToolProgress): void;
  /** Shows the last progress that waits. Later progress is ignored. */
  end(): void;
}

/** The first report is shown at once, later ones after a pause, and of those only the last. */
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

/** Tells the result of a call. It is redacted already. */
export function showResult(
  run: Teller,
  { id, name }: ToolCall,
  { outcome, text }: { outcome: ToolOutcome; text: string },
): void {
  tell(run, { type: 'result', call: id, name, outcome, text: cut(text, MAX_RESULT) });
}

/** Tools may be plain JavaScript, so what they report is not trusted. */
function progressOf(report: unknown): ToolProgress {
  if (typeof report === 'string') return { text: report };
  const { text, done, total } = Object(report) as Record<string, unknown>;
  return {
    ...(typeof text === 'string' && { text }),
    ...(Number.isFinite(done) && { done: done as number }),
    ...(Number.isFinite(total) && { total: total as number }),
  };
}

/** Redacted before it is cut: of a secret at the cut a part would stay. */
function shownProgress({ deps, runtime }: TurnRun, progress: ToolProgress): ToolProgress {
  if (progress.text === undefined) return progress;
  const where = { kind: 'tool.result' as const, author: agentAuthor(runtime.profile) };
  const text = deps.redaction?.text(progress.text, where) ?? progress.text;
  return { ...progress, text: cut(text, MAX_PROGRESS) };
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`;
}

/** Drives the machine of a turn and publishes its new state. Watchers are not awaited, and their errors are only logged. */
export function advance(run: TurnRun, event: AgentEvent): void {
  const { deps, lease, live, turn, answer } = run;
  live.state = nextAgent(live.state, event);
  const at = deps.clock.now();
  live.last = { event: event.type, at };
  if (!deps.onLive) return;
  const path = pathOf(live.state.value);
  // An agent that was paused or retired during its turn is so from its commit on.
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
