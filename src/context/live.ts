import type { LiveItems, Mode } from '../events/index.ts';
import type { Directive, Phase } from '../machines/directions.ts';
import { escapeMarks, fence } from './fence.ts';
import { fenceKey } from './hash.ts';

/**
 * The live block: what changed for this agent since the last block. It hangs on the trigger's message, is recorded
 * with the turn and stays there: a reminder that moved after it was sent would cost the cache of everything behind it.
 * To stay small, it restates an item only when it changes. Every `REFRESH_TURNS` turns, and in a new epoch, it
 * restates everything.
 */
const REFRESH_TURNS = 20;

/**
 * The item that holds retrieved events: the only one with words of others, and the only one that may be cleared later.
 */
export const MEMORIES = 'memories';

/** Item names reserved for the runtime, in lower case. No fragment may take one. */
export const RUNTIME_ITEMS: readonly string[] = [
  'time',
  'task',
  'mode',
  'run',
  'phase',
  'roster',
  'memories',
  'todos',
  'delegations',
  'target',
  'nudges',
];

/** Items stated when they begin to hold and when they change. They are restated only in a new epoch. */
const TOLD_ONCE: readonly string[] = ['phase'];

export interface Told {
  items: LiveItems;
  /** The baseline in force when they were stated. */
  baseline: string;
  /** Turns since everything was last stated. */
  turnsSinceFull: number;
}

export const NOTHING_TOLD: Told = { items: {}, baseline: '', turnsSinceFull: REFRESH_TURNS };

/** The statements still in force: none once another baseline is in force. */
export function toldUnder(told: Told, baseline: string): Told {
  return told.baseline === baseline ? told : { ...NOTHING_TOLD, baseline };
}

/** The items to state now. */
export function liveDelta(facts: LiveItems, told: Told): LiveItems {
  const isFull = told.turnsSinceFull >= REFRESH_TURNS;
  const said = Object.entries(facts).filter(
    ([name, value]) => told.items[name] !== value || (isFull && !TOLD_ONCE.includes(name)),
  );
  return Object.fromEntries(said);
}

const NO_MORE = 'nothing any more';

/** The item that states `text`. The end of an item is stated once; an item never stated has no end. */
export function sayItem(name: string, text: string | null, told: Told): LiveItems {
  if (text !== null) return { [name]: text };
  const before = told.items[name];
  return before === undefined || before === NO_MORE ? {} : { [name]: NO_MORE };
}

/** The mode banner. In run mode it includes the run's directive, and its step while one is active. */
export function modeItems(mode: Mode | null, directive: Directive | null): LiveItems {
  if (mode === null) return {};
  const banner = { mode: `MODE active: ${mode}; the history may include other modes` };
  return mode === 'run' && directive ? { ...banner, run: runText(directive) } : banner;
}

function runText({ run, directive, brief, status, step }: Directive): string {
  const what = step ? `step ${step.number} of ${step.of}` : 'the step';
  if (status !== 'active') return `${run}: ${directive} (${what} ${ENDED[status]})`;
  const whose = step ? ` (${step.number} of ${step.of}, of @${step.agent})` : '';
  return brief === '' ? `${run}: ${directive}` : `${run}: ${directive}\nthe present step${whose}: ${brief}`;
}

const ENDED = { completed: 'is completed', failed: 'has failed' } as const;

/** The phase and its instructions. Empty without a phase, and for the agent that coordinates the others. */
export function phaseItem(phase: Omit<Phase, 'seq'> | null, orchestrates: boolean): LiveItems {
  if (!phase || orchestrates) return {};
  const { phase: name, instructions } = phase;
  return { phase: instructions === '' ? name : `${name}\n${instructions}` };
}

/** The statements in force after `said`. */
export function afterTelling(told: Told, said: LiveItems): Told {
  const full = told.turnsSinceFull >= REFRESH_TURNS;
  const known = Object.entries(told.items).filter(([name]) => !full || TOLD_ONCE.includes(name));
  return {
    baseline: told.baseline,
    items: { ...Object.fromEntries(known), ...said },
    turnsSinceFull: full ? 1 : told.turnsSinceFull + 1,
  };
}

/** '' when there is nothing to state. */
export function renderLive(items: LiveItems, secret: string, turn: string): string {
  const lines = Object.entries(items).map(([name, value]) => `${name}: ${escapeMarks(value)}`);
  return lines.length === 0 ? '' : fence('reminder', fenceKey(secret, `live ${turn}`), lines.join('\n'));
}
