import {
  agentAuthor,
  type Told,
  type ToolCall,
  type ToolOutcome,
  type ToolProgress,
} from '../../events/index.ts';
import type { TurnRun } from './turn-run.ts';

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
export interface CallShow {
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
