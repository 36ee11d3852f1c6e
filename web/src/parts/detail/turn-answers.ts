import type { Event } from '../../../../src/events/index.ts';
import type { InspectedPrompt, PromptDiff, SentPrompt, TurnTrace } from '../../../../src/library/troupe.ts';
import { api } from '../../state/api.ts';
import { live } from '../../state/live.ts';
import { ANY, type Fetched, useFetched } from '../../state/fetched.ts';
import { route } from '../../state/route.ts';
import { NEXT } from './chosen.ts';

/** The server's answers about turns, keyed by name. */
export function useTrace(turn: string | null): Fetched<TurnTrace> {
  return useFetched(turn && `trace ${turn}`, turn, () => api.trace(turn ?? ''));
}

export function usePrompt(turn: string | null, step: number | null): Fetched<SentPrompt> {
  const load = () => api.prompt(turn ?? '', step ?? undefined);
  return useFetched(turn && `prompt ${turn} ${step}`, turn, load, () => isRunning(turn));
}

/** Whether the turn is running: its prompt may then still come, without an event that reports it. */
export function isRunning(turn: string | null): boolean {
  return live.value?.turns.find(({ id }) => id === turn)?.status === 'running';
}

export function useNextPrompt(agent: string | null): Fetched<InspectedPrompt> {
  const { conversation } = route.value;
  return useFetched(conversation && agent && `next ${conversation} ${agent}`, ANY, () =>
    api.nextPrompt(conversation ?? '', agent ?? ''),
  );
}

export function useDiff(
  a: string | null,
  b: string | null,
  stepB: number | null = null,
): Fetched<PromptDiff> {
  const key = a !== null && b !== null ? `diff ${a} ${b} ${stepB}` : null;
  return useFetched(key, b === NEXT ? ANY : b, () => api.diff(a ?? '', b ?? '', stepB ?? undefined));
}

/** Null when no event has this seq. */
export function useEvent(seq: number | null): Fetched<Event | null> {
  const { conversation } = route.value;
  return useFetched(seq === null || conversation === null ? null : `event ${seq}`, null, async () => {
    const { events } = await api.events(conversation ?? '', { after: (seq ?? 1) - 1, limit: 1 });
    return events.find((event) => event.seq === seq) ?? null;
  });
}
