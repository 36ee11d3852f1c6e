import { isAbout } from '../events/aspects.ts';
import { hasAuthority } from '../events/import-rule.ts';
import type { Event, EventOf, Mode } from '../events/index.ts';

/**
 * What holds for a conversation as a whole: its mode, its phase, and whether it is open. The one fold of it, for the
 * views of agents, the book of tasks, the API and the inspector. What a file brought directs nothing.
 */
export interface Directions {
  /** Null until it was set; agents then work as in mode `agent`. */
  readonly mode: Mode | null;
  /** The run that the mode names. */
  readonly run: string | null;
  /** The mode to go back to after a run: the last other one. */
  readonly rest: Exclude<Mode, 'run'>;
  readonly phase: Phase | null;
  readonly archived: boolean;
}

export interface Phase {
  readonly phase: string;
  readonly instructions: string;
  /** Of the event that began it, or changed its instructions. */
  readonly seq: number;
}

export const NO_DIRECTIONS: Directions = {
  mode: null,
  run: null,
  rest: 'agent',
  phase: null,
  archived: false,
};

export function foldDirections(before: Directions, event: Event): Directions {
  if (!isAbout(event, 'conversation') || !hasAuthority(event)) return before;
  switch (event.kind) {
    case 'mode.changed': {
      const { mode, run = null } = event.body;
      return { ...before, mode, run, rest: mode === 'run' ? before.rest : mode };
    }
    case 'phase.changed': {
      const { phase, instructions } = event.body;
      return { ...before, phase: { phase, instructions, seq: event.seq } };
    }
    case 'archived':
    case 'reopened':
      return { ...before, archived: event.kind === 'archived' };
    case 'command':
      return before;
  }
}

export type Directive = EventOf<'run.directive'>['body'];

/** The last directive of each run, the run directed last at the end. */
export type Directives = Map<string, Directive>;

export function foldDirective(directives: Directives, event: Event): void {
  if (event.kind !== 'run.directive' || !hasAuthority(event)) return;
  directives.delete(event.body.run);
  directives.set(event.body.run, event.body);
}

/** The directive that holds in run mode: that of the run which the mode names, else the last one given. */
export function directiveOf({ mode, run }: Directions, directives: Directives): Directive | null {
  if (mode !== 'run') return null;
  if (run !== null) return directives.get(run) ?? null;
  return [...directives.values()].at(-1) ?? null;
}
