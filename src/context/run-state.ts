import type { Event, EventOf } from '../events/index.ts';

export type Directive = EventOf<'run.directive'>['body'];

/** What the log says of runs so far: the one that the mode names, and the last directive of each. */
export interface RunState {
  run: string | null;
  directives: Map<string, Directive>;
  /** The run directed last. */
  last: string | null;
}

export function newRunState(): RunState {
  return { run: null, directives: new Map(), last: null };
}

export function foldRun(state: RunState, event: Event): void {
  if (event.kind === 'mode.changed') state.run = event.body.run ?? null;
  if (event.kind !== 'run.directive') return;
  state.directives.set(event.body.run, event.body);
  state.last = event.body.run;
}

/** The directive that holds in run mode: that of the run which the mode names, else the last one given. */
export function directiveOf({ run, directives, last }: RunState): Directive | null {
  const named = run ?? last;
  return named === null ? null : (directives.get(named) ?? null);
}
