import { computed, effect, signal } from '@preact/signals';
import { overviewFigures } from '../../../src/projection/needs.ts';
import { api, ApiError, type OverviewLine, type Queues } from './api.ts';
import { connection, live, onEvents } from './live.ts';
import { conversation } from './route.ts';

/** All conversations and the queue: asked for again every few seconds while somebody looks. */
export const overview = signal<{ conversations: OverviewLine[]; more: boolean } | null>(null);
export const queues = signal<Queues | null>(null);

/** As the server last told, the open one as it is now; null before the first answer. */
export const conversations = computed<readonly OverviewLine[] | null>(() => {
  const told = overview.value?.conversations;
  const open = live.value;
  if (!told || !open) return told ?? null;
  return told.map((line) =>
    line.id !== open.conversation || line.head > open.seq
      ? line
      : { id: line.id, head: open.seq, at: open.at, ...overviewFigures(open) },
  );
});

const REFRESH_MS = 5_000;
/** After the last of the events that came together. */
const SETTLE_MS = 500;

async function refresh(): Promise<void> {
  const [list, depth] = await Promise.allSettled([api.overview(), api.queues()]);
  if (list.status === 'fulfilled') overview.value = list.value;
  else if (conversation.peek() === null) fail(list.reason);
  if (depth.status === 'fulfilled') queues.value = depth.value;
}

/** Where no conversation is open nobody else tells whether the server is there. */
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
// What begins in one conversation often goes on in another.
onEvents(() => {
  clearTimeout(settling);
  settling = setTimeout(() => void watchOverview(), SETTLE_MS);
});

/** All conversations may take a while: the open one comes first. */
const isOpening = computed(() => conversation.value !== null && connection.value.state === 'opening');
effect(() => {
  // Whoever goes to another place wants it as it is now.
  void conversation.value;
  if (!isOpening.value) void watchOverview();
});
