import { computed, effect, signal } from '@preact/signals';
import { api } from './api.ts';
import { live, past, showPast } from './live.ts';
import { createPlayer, type Speed, SPEEDS } from './player.ts';
import { remember, remembered } from './remember.ts';
import { conversation, go, route } from './route.ts';
import { head } from './selection.ts';
import { messageOf } from '../shared/format.ts';

/** Time travel: `route.at` names the moment, and this module fetches its state. One request at a time; the last choice wins. */
export const isPast = computed(() => route.value.at !== null);
/** The seq of the last event shown. An address may name a later seq than the log has. */
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
    pastProblem.value = messageOf(error);
  } finally {
    busy = false;
  }
}

/** At or beyond the last event, the page becomes live again. */
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

/** The speed of a replay, remembered in this browser. */
export const speed = signal<Speed>(SPEEDS.find((each) => each === remembered('speed')) ?? '1');
/** Length of the silence that a replay is shortening, ms; null if there is none. */
export const silence = signal<number | null>(null);

const player = createPlayer({
  clock: {
    setTimeout: (run, ms) => setTimeout(run, ms),
    clearTimeout: (timer) => clearTimeout(timer as number),
  },
  at: () => route.peek().at ?? head.peek(),
  goTo,
  isShown: () => !busy,
  async timesFrom(seq) {
    const { page } = await api.times(conversation.peek() ?? '', { after: seq - 1, limit: TIMES });
    let time = page.at;
    return { first: page.first, at: page.ms.map((ms) => (time += ms)) };
  },
  silence: (ms) => (silence.value = ms),
});
const TIMES = 1_000;

effect(() => {
  if (isPlaying.value) player.play(speed.value);
  else player.stop();
});

/** Plays the conversation from its first event. */
export function replay(): void {
  go({ at: 1 });
  isPlaying.value = true;
}

export function changeSpeed(to: Speed | undefined): void {
  if (to === undefined) return;
  speed.value = to;
  remember('speed', to);
}

/** Switches to the next faster or slower speed. */
export function shiftSpeed(by: number): void {
  changeSpeed(SPEEDS[SPEEDS.indexOf(speed.peek()) + by]);
}

/** When live, stops at this moment. In the past, plays on or stops. */
export function togglePlay(): void {
  const head = live.peek()?.seq ?? 0;
  if (route.peek().at === null) {
    if (head > 0) go({ at: head });
  } else isPlaying.value = !isPlaying.value;
}
