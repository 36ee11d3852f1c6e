import { computed, effect, signal } from '@preact/signals';
import { overviewFigures } from '../../../src/projection/needs.ts';
import type { StuckReport } from '../../../src/troupe.ts';
import { api, ApiError, type OverviewLine, type Queues } from './api.ts';
import { connection, live, onEvents } from './live.ts';
import { conversation } from './route.ts';

/** All conversations and the queue, polled every few seconds while the page is visible. */
export const overview = signal<{ conversations: OverviewLine[]; more: boolean } | null>(null);
export const queues = signal<Queues | null>(null);
export const stuck = signal<StuckReport | null>(null);

/** The server's last answer, with the open conversation brought up to date; null before the first answer. */
export const conversations = computed<readonly OverviewLine[] | null>(() => {
  const lines = overview.value?.conversations;
  const open = live.value;
  if (!lines || !open) return lines ?? null;
  return lines.map((line) =>
    line.id !== open.conversation || line.head > open.seq
      ? line
      : { id: line.id, head: open.seq, at: open.at, ...overviewFigures(open) },
  );
});

const REFRESH_MS = 5_000;
/** Delay after the last of a burst of events. */
const SETTLE_MS = 500;

async function refresh(): Promise<void> {
  const [list, depth, report] = await Promise.allSettled([api.overview(), api.queues(), api.stuck()]);
  if (list.status === 'fulfilled') overview.value = list.value;
  else if (conversation.peek() === null) fail(list.reason);
  if (depth.status === 'fulfilled') queues.value = depth.value;
  if (report.status === 'fulfilled') stuck.value = report.value;
}

/** Without an open conversation, only this request shows whether the server responds. */
function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  connection.value =
    error instanceof ApiError && error.status === 401
      ? { state: 'token', message }
      : { state: 'lost', since: Date.now(), message };
}

let timer: ReturnType<typeof setTimeout> | undefined;

async function watchOverview(): Promise<void> {
  clearTimeout(timer);
  if (document.visibilityState === 'visible') {
    await refresh();
    if (overview.value && conversation.peek() === null) connection.value = { state: 'live' };
  }
  clearTimeout(timer);
  timer = setTimeout(() => void watchOverview(), REFRESH_MS);
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') void watchOverview();
});
let settling: ReturnType<typeof setTimeout> | undefined;
// An event of the open conversation often starts work in other conversations.
onEvents(() => {
  clearTimeout(settling);
  settling = setTimeout(() => void watchOverview(), SETTLE_MS);
});

/** The list may take a while, so the open conversation is loaded first. */
const isOpening = computed(() => conversation.value !== null && connection.value.state === 'opening');
effect(() => {
  // Navigation refreshes the list.
  void conversation.value;
  if (!isOpening.value) void watchOverview();
});
