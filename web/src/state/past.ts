import { computed, effect, signal } from '@preact/signals';
import { live, past, showPast } from './live.ts';
import { go, route } from './route.ts';
import { head } from './selection.ts';

/**
 * Time travel: `route.at` names the moment, and this module fetches its state. One request at a time; the last choice
 * wins.
 */
export const isPast = computed(() => route.value.at !== null);
/** The seq of the last event shown. An address may name a later one than there is. */
export const shownSeq = computed(() => Math.min(route.value.at ?? Infinity, head.value));
export const isPlaying = signal(false);

let busy = false;
/** Why the requested moment cannot be shown. */
export const pastProblem = signal<string | null>(null);

effect(() => {
  const { conversation, at } = route.value;
  if (conversation === null || at === null) {
    past.value = null;
    isPlaying.value = false;
  } else void fetchPast();
});

async function fetchPast(): Promise<void> {
  if (busy) return;
  busy = true;
  try {
    for (;;) {
      const { conversation, at } = route.peek();
      if (conversation === null || at === null || past.peek()?.seq === at) break;
      await showPast(conversation, at);
      pastProblem.value = null;
      if (route.peek().at === at) break;
    }
  } catch (error) {
    pastProblem.value = error instanceof Error ? error.message : String(error);
  } finally {
    busy = false;
  }
}

/** At or beyond the last event the page becomes live again. */
export function goTo(seq: number): void {
  const head = live.peek()?.seq ?? 0;
  go({ at: seq >= head ? null : Math.max(1, Math.round(seq)) }, { replace: true });
}

export function step(by: number): void {
  const head = live.peek()?.seq ?? 0;
  goTo((route.peek().at ?? head) + by);
}

export function goLive(): void {
  isPlaying.value = false;
  go({ at: null });
}

const PLAY_MS = 350;
let timer: ReturnType<typeof setInterval> | undefined;
effect(() => {
  clearInterval(timer);
  if (isPlaying.value) timer = setInterval(() => step(1), PLAY_MS);
});

/** Live: stops here. In the past: plays on from that moment, or stops. */
export function togglePlay(): void {
  const head = live.peek()?.seq ?? 0;
  if (route.peek().at === null) {
    if (head > 0) go({ at: head });
  } else isPlaying.value = !isPlaying.value;
}
