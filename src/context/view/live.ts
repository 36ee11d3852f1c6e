import type { AgentId, LiveItems, Mode } from '../../events/index.ts';
import type { Directive, Phase } from '../../machines/directions.ts';
import { TEXTS } from '../../events/model-texts.ts';
import { markKey } from '../text/hash.ts';
import { escapeWords, mark, escapeHeads, plainNote } from '../text/marks.ts';

/**
 * The live block says what changed for this agent since the last block. It is part of the trigger's message, is recorded
 * with the turn and stays there, because moving it after it was sent would invalidate the cache of everything after it.
 * To stay small, it states an item again only when it changes. Every `REFRESH_TURNS` turns, and in a new epoch, it
 * states everything again.
 */
const REFRESH_TURNS = 20;

/**
 * The item with retrieved events. It is the only item with words of others, and the only one that may be removed later.
 */
export const MEMORIES = 'memories';

/** Item names reserved for the runtime, in lower case. No fragment may have one of them. */
export const RUNTIME_ITEMS: readonly string[] = [
  'time',
  'task',
  'person',
  'channel',
  'mode',
  'run',
  'phase',
  'roster',
  'memories',
  'todos',
  'delegations',
  'open',
  'target',
  'unavailable',
  'nudges',
];

/** Items that are stated when they begin to hold and when they change, and stated again only in a new epoch. */
const STATED_ONCE: readonly string[] = ['phase'];

export interface StatedItems {
  items: LiveItems;
  /** The baseline in force when the items were stated. */
  baseline: string;
  /** Turns since everything was last stated. */
  turnsSinceFull: number;
}

export const NOTHING_STATED: StatedItems = { items: {}, baseline: '', turnsSinceFull: REFRESH_TURNS };

/** The stated items that are still in force; none under another baseline. */
export function statedUnder(stated: StatedItems, baseline: string): StatedItems {
  return stated.baseline === baseline ? stated : { ...NOTHING_STATED, baseline };
}

export function liveDelta(facts: LiveItems, stated: StatedItems): LiveItems {
  const isFull = stated.turnsSinceFull >= REFRESH_TURNS;
  const said: LiveItems = {};
  for (const [name, value] of Object.entries(facts))
    if (stated.items[name] !== value || (isFull && !STATED_ONCE.includes(name))) said[name] = value;
  return said;
}

const NO_MORE = TEXTS.live.noMore;

/** The item that states `text`. Null states once that the item has ended, if it was stated before. */
export function stateItem(name: string, text: string | null, stated: StatedItems): LiveItems {
  if (text !== null) return { [name]: text };
  const before = stated.items[name];
  return before === undefined || before === NO_MORE ? {} : { [name]: NO_MORE };
}

/** The mode. In run mode also the run's directive and its active step, except the agent's own step, which is in its message. */
export function modeItems(mode: Mode | null, directive: Directive | null, agent: AgentId | null): LiveItems {
  if (mode === null) return {};
  const told = { mode: TEXTS.live.mode[mode] };
  return mode === 'run' && directive ? { ...told, run: runText(directive, agent) } : told;
}

function runText({ run, directive, brief, status, step }: Directive, agent: AgentId | null): string {
  const place = step ? `step ${step.number} of ${step.of}` : 'the step';
  if (status !== 'active') return `${run}: ${directive} (${place} ${ENDED[status]})`;
  if (step && step.agent === agent) return `${run}: ${directive} (${place} is yours)`;
  const whose = step ? `${place}, of @${step.agent}` : place;
  return brief === '' ? `${run}: ${directive}` : `${run}: ${directive}\n${whose}: ${brief}`;
}

const ENDED = {
  completed: 'is completed: answer what is asked about it, and do no more of it unless told to',
  failed: 'has failed',
} as const;

/** The phase and its instructions. No item without a phase, or for the agent that coordinates the others. */
export function phaseItem(phase: Omit<Phase, 'seq'> | null, orchestrates: boolean): LiveItems {
  if (!phase || orchestrates) return {};
  const { phase: name, instructions } = phase;
  return { phase: instructions === '' ? name : `${name}\n${instructions}` };
}

export function withStated(stated: StatedItems, said: LiveItems): StatedItems {
  const full = stated.turnsSinceFull >= REFRESH_TURNS;
  const { baseline, items } = stated;
  if (!full) return { baseline, items: { ...items, ...said }, turnsSinceFull: stated.turnsSinceFull + 1 };
  const once = Object.entries(items).filter(([name]) => STATED_ONCE.includes(name));
  return { baseline, items: { ...Object.fromEntries(once), ...said }, turnsSinceFull: 1 };
}

/** A time without a person's local time. Authors' lines of this form are escaped. */
const PLAIN_TIME = /^[\d :-]+$/;

/** The live block with marks. If it has only a time, it is one line. `time` '': no time is shown. */
export function markedLive(
  time: string,
  items: LiveItems,
  { secret, turn }: { secret: string; turn: string },
): string {
  const lines: string[] = [];
  for (const name in items) lines.push(`${name}: ${escapeWords(items[name]!)}`);
  if (lines.length === 0 && (time === '' || PLAIN_TIME.test(time))) return time === '' ? '' : `[${time}]`;
  const key = markKey(secret, `live ${turn}`);
  if (lines.length === 0) return `[${escapeWords(time)} #${key}]`;
  return mark('reminder', key, [...(time === '' ? [] : [`time: ${escapeWords(time)}`]), ...lines].join('\n'));
}

export function plainLive(time: string, items: LiveItems): string {
  const clean = (text: string) => escapeHeads(escapeWords(text));
  const lines = Object.entries(items).map(([name, value]) => `${name}: ${clean(value)}`);
  if (lines.length === 0) return time === '' ? '' : `[${clean(time)}]`;
  return plainNote([...(time === '' ? [] : [`time: ${clean(time)}`]), ...lines].join('\n'));
}
