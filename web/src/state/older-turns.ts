import { effect, signal, untracked } from '@preact/signals';
import type { TurnView } from '../../../src/library/projection/model.ts';
import { api } from './api.ts';
import { shown } from './live.ts';
import { conversation, route } from './route.ts';

/**
 * Turns that the projection keeps no longer. The log folded up to an event has the turns before it, so what was before is
 * read from the past.
 */
interface Read {
  /** The view that they belong to: another conversation or moment begins anew. */
  of: string;
  /** Without a gap up to those that the projection keeps. Ascending. */
  pages: readonly TurnView[];
  /** Single ones that were gone to. */
  found: ReadonlyMap<string, TurnView>;
}

const read = signal<Read>({ of: '', pages: [], found: new Map() });

const viewOf = () => JSON.stringify([route.value.conversation, route.value.at]);
const now = (): Read => {
  const of = viewOf();
  return read.value.of === of ? read.value : { of, pages: [], found: new Map() };
};

/** Those before what the projection keeps that were read. Ascending. */
export const olderTurns = (): readonly TurnView[] => now().pages;
export const foundTurn = (id: string): TurnView | null => now().found.get(id) ?? null;

/** Reads the turns before the first that is shown. Throws `ApiError`. */
export async function readOlder(first: TurnView): Promise<void> {
  const id = conversation.peek();
  const of = viewOf();
  if (id === null || first.from <= 1) return;
  const { projection } = await api.snapshot(id, first.from - 1);
  const before = untracked(now);
  const known = before.pages[0]?.from ?? first.from;
  if (before.of === of)
    read.value = {
      ...before,
      pages: [...projection.turns.filter(({ from }) => from < known), ...before.pages],
    };
}

const asked = new Set<string>();

/** Looks for the turn in the address, if it is older than what is shown. One that does not exist stays unknown. */
effect(() => {
  const { turn, conversation: id } = route.value;
  const { turns, totals } = shown.value ?? {};
  if (turn === null || id === null || !turns || !totals || turns.length >= totals.turns) return;
  if (turns.some((each) => each.id === turn) || asked.has(`${viewOf()} ${turn}`)) return;
  asked.add(`${viewOf()} ${turn}`);
  untracked(() => void find(id, turn));
});

async function find(id: string, turn: string): Promise<void> {
  const of = viewOf();
  try {
    const last = (await api.trace(turn)).events.at(-1);
    if (!last) return;
    const { projection } = await api.snapshot(id, last.seq);
    const there = projection.turns.find((each) => each.id === turn);
    const before = untracked(now);
    if (there && before.of === of) read.value = { ...before, found: new Map(before.found).set(turn, there) };
  } catch {
    // The tabs ask for the same turn, and show why it cannot be read.
  }
}
