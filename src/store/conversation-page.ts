import type { ConversationPage, ConversationPlace, ConversationRow } from './driver.ts';

/** The order of the list: newest first, then by id, descending. */
export function byPlace(a: ConversationPlace, b: ConversationPlace): number {
  if (a.at !== b.at) return b.at - a.at;
  if (a.id === b.id) return 0;
  return a.id < b.id ? 1 : -1;
}

/** The page behind a place of all the rows there are, which cost nothing to have. */
export function pageOf(
  rows: readonly ConversationRow[],
  { limit, before }: { limit: number; before?: ConversationPlace | undefined },
): ConversationPage {
  const behind = before ? rows.filter((row) => byPlace(before, row) < 0) : rows;
  const page = behind.toSorted(byPlace).slice(0, limit);
  return { rows: page, next: behind.length > limit ? placeOf(page.at(-1)) : null, looked: page.length };
}

export function placeOf(row: ConversationRow | undefined): ConversationPlace | null {
  return row ? { at: row.at, id: row.id } : null;
}
