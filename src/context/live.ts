import type { LiveItems } from '../events/index.ts';
import { escapeMarks, fence } from './fence.ts';
import { fenceKey } from './hash.ts';

/**
 * The live block: what changed for this agent since it was last told. It hangs on the trigger's message, is recorded
 * with the turn and rendered there for ever: a reminder that moved after it was sent would cost the cache of all that
 * follows. So it stays small: an item is restated when it changed, and everything every `REFRESH_TURNS` and in a new
 * epoch.
 */
export const REFRESH_TURNS = 20;

export interface Told {
  items: LiveItems;
  /** The baseline under which they were told. */
  baseline: string;
  /** Turns since everything was last said. */
  turnsSinceFull: number;
}

export const NOTHING_TOLD: Told = { items: {}, baseline: '', turnsSinceFull: REFRESH_TURNS };

/** What still holds of what was told: nothing, once another baseline is in force. */
export function toldUnder(told: Told, baseline: string): Told {
  return told.baseline === baseline ? told : { ...NOTHING_TOLD, baseline };
}

/** The items to say now. */
export function liveDelta(facts: LiveItems, told: Told): LiveItems {
  if (told.turnsSinceFull >= REFRESH_TURNS) return facts;
  const changed = Object.entries(facts).filter(([name, value]) => told.items[name] !== value);
  return Object.fromEntries(changed);
}

/** What the agent knows after being told `said`. */
export function afterTelling(told: Told, said: LiveItems): Told {
  const full = told.turnsSinceFull >= REFRESH_TURNS;
  return {
    baseline: told.baseline,
    items: full ? said : { ...told.items, ...said },
    turnsSinceFull: full ? 1 : told.turnsSinceFull + 1,
  };
}

/** '' when there is nothing to say. */
export function renderLive(items: LiveItems, secret: string, turn: string): string {
  const lines = Object.entries(items).map(([name, value]) => `${name}: ${escapeMarks(value)}`);
  return lines.length === 0 ? '' : fence('reminder', fenceKey(secret, `live ${turn}`), lines.join('\n'));
}
