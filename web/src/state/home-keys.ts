/**
 * Keys on the list of conversations. The row that has the focus is the one that they act on, so the browser shows it,
 * Enter opens it, and Tab goes on from it.
 */
const ROWS = '.home-groups .inbox-row, .home-groups .cause-open';

/** Where the focus was last: when its row has gone, the keys go on from there. */
let last = -1;

/** The focus goes to the row below (1) or above (-1). */
export function moveInHome(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(ROWS)];
  const now = rows.indexOf(focused() as HTMLElement);
  // The row that has come to the place of one that is gone.
  const next = now >= 0 ? now + by : by > 0 ? Math.max(last, 0) : last - 1;
  last = Math.max(0, Math.min(rows.length - 1, next));
  const row = rows[last];
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: 'nearest' });
}

/** Whether the key belongs to the row with the focus: `a` approves, `d` denies, `r` retries what is below one cause. */
export function decideInHome({ key, repeat }: KeyboardEvent): boolean {
  const row = focused();
  if (!row || !/^[adr]$/.test(key)) return false;
  const place = row.closest('.cause-head') ?? row.closest('li');
  const button = place?.querySelector<HTMLButtonElement>(`[aria-keyshortcuts="${key}"]`);
  // A key that is held down decides once, and what has just moved there is not decided at all.
  if (!repeat && button?.getAttribute('aria-disabled') !== 'true') button?.click();
  return true;
}

/** The row that has the focus, or that holds what has it. */
function focused(): HTMLElement | null {
  const line = document.activeElement?.closest('.home-groups li');
  return line?.querySelector<HTMLElement>('.cause-open, .inbox-row') ?? null;
}
