import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';
import type { RecordedCall, RecordedProvider, RecordingHeader } from './recording-file.ts';
import { type Redact, redactAll } from './redact.ts';
import {
  alikeParts,
  firstDifference,
  placeOf,
  requestKey,
  requestParts,
  type RequestPart,
} from './request-parts.ts';

/** What one or several recordings answer. Counts which answers were given, for requests that come again and again. */
export interface Replay {
  /** The provider of an agent as it was when it was recorded; `name` for one that was not. */
  provider(agent: string, name: string): Provider;
}

interface Entry extends RecordedCall {
  parts: readonly RequestPart[];
  uses: number;
}

/**
 * Answers as it was answered when recorded. A request is found again by its agent and everything the model is shown,
 * never by something like it: an answer to another question would make a test pass that should not. What is recorded
 * several times over is answered from the same place of a conversation first, else in the order of the recording.
 * An answer that was broken off by a stop is given as far as it came, and then waits to be stopped.
 */
export function createReplay(
  recordings: readonly { headers: readonly RecordingHeader[]; calls: readonly RecordedCall[] }[],
  redact: Redact,
): Replay {
  const agents = new Map<string, RecordedProvider>(
    recordings.flatMap(({ headers }) => headers.flatMap((header) => Object.entries(header.agents))),
  );
  const byAgent = new Map<string, Entry[]>();
  const byKey = new Map<string, Entry[]>();
  for (const call of recordings.flatMap(({ calls }) => calls)) {
    const { agent } = call.request.trace;
    const entry = { ...call, parts: requestParts(call.request), uses: 0 };
    put(byAgent, agent, entry);
    put(byKey, keyOf(agent, entry.parts), entry);
  }

  function find(asked: ModelRequest): Entry | string {
    const request = redactAll(asked, redact);
    const { agent } = request.trace;
    const parts = requestParts(request);
    const found = likeliest(byKey.get(keyOf(agent, parts)) ?? [], request);
    return found ?? unknown(byAgent.get(agent) ?? [], request, parts);
  }

  return {
    provider(agent, name) {
      const recorded = agents.get(agent) ?? { name, capabilities: STATELESS };
      return { ...recorded, stream: (request, { signal }) => answer(find(request), signal) };
    },
  };
}

async function* answer(found: Entry | string, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  yield { type: 'start' };
  if (typeof found !== 'string') found.uses += 1;
  const told = typeof found === 'string' ? [refusal(found)] : found.events;
  for (const event of told.filter(({ type }) => type !== 'start')) {
    if (event.type === 'aborted') await abortOf(signal);
    if (signal.aborted) {
      yield { type: 'aborted' };
      return;
    }
    yield event;
  }
}

function refusal(message: string): ModelEvent {
  return { type: 'failed', error: { code: 'provider_invalid_request', message } };
}

function abortOf(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

function keyOf(agent: string, parts: readonly RequestPart[]): string {
  return `${agent}/${requestKey(parts)}`;
}

function put(map: Map<string, Entry[]>, key: string, entry: Entry): void {
  const entries = map.get(key);
  if (entries) entries.push(entry);
  else map.set(key, [entry]);
}

/** Among equal requests: of the same place, of the same conversation, one that was not broken off, the least used. */
function likeliest(entries: readonly Entry[], { trace }: ModelRequest): Entry | undefined {
  const place = placeOf(trace);
  const rank = ({ request, events, uses }: Entry): number[] => [
    Number(placeOf(request.trace) !== place),
    Number(request.trace.conversation !== trace.conversation),
    Number(events.at(-1)?.type === 'aborted'),
    uses,
  ];
  const compare = (a: readonly number[], b: readonly number[]) =>
    a.map((value, at) => value - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
  return entries.toSorted((a, b) => compare(rank(a), rank(b)))[0];
}

function unknown(entries: readonly Entry[], { trace }: ModelRequest, parts: readonly RequestPart[]): string {
  const asked = `the recording has no answer for this request of @${trace.agent} (${placeOf(trace)})`;
  let nearest: Entry | undefined;
  let most = -1;
  for (const entry of entries) {
    const here = placeOf(entry.request.trace) === placeOf(trace) ? 0.5 : 0;
    const alike = alikeParts(entry.parts, parts) + here;
    if (alike > most) [nearest, most] = [entry, alike];
  }
  if (!nearest) return `${asked}, nor for any other of this agent`;
  const place = placeOf(nearest.request.trace);
  return `${asked}. The nearest is that of ${place}; the first difference: ${firstDifference(nearest.parts, parts)}`;
}
