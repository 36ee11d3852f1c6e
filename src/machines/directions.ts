import { hasAuthority, isAbout } from '../events/aspects.ts';
import type { Event, EventOf, Mode } from '../events/index.ts';

/**
 * The mode and the phase of a conversation, and whether it is archived. The one fold of these facts: for the views of
 * agents, the task fold, the API and the inspector. Imported events change nothing.
 */
export interface Directions {
  /** Null until it is set; agents then work as in mode `agent`. */
  readonly mode: Mode | null;
  /** The run that the mode names. */
  readonly run: string | null;
  /** The last mode other than `run`: the mode after a run. */
  readonly rest: Exclude<Mode, 'run'>;
  readonly phase: Phase | null;
  readonly archived: boolean;
}

export interface Phase {
  readonly phase: string;
  readonly instructions: string;
  /** Seq of the event that began the phase or changed its instructions. */
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
    case 'command': {
      const { command } = event.body;
      return command === 'archive' || command === 'reopen'
        ? { ...before, archived: command === 'archive' }
        : before;
    }
  }
}

export type Directive = EventOf<'run.directive'>['body'];

/** The last directive of each run, in the order of the directives. */
export type Directives = Map<string, Directive>;

export function foldDirective(directives: Directives, event: Event): void {
  if (event.kind !== 'run.directive' || !hasAuthority(event)) return;
  directives.delete(event.body.run);
  directives.set(event.body.run, event.body);
}

/** The directive in force in mode `run`: of the run that the mode names; without a name, the last one. */
export function directiveOf({ mode, run }: Directions, directives: Directives): Directive | null {
  if (mode !== 'run') return null;
  if (run !== null) return directives.get(run) ?? null;
  return [...directives.values()].at(-1) ?? null;
}
