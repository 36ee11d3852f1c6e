import assert from 'node:assert/strict';
import { turnId, type ConversationId, type PromptMessage } from '../events/index.ts';
import type { ModelEvent, ModelRequest, Provider } from '../providers/provider.ts';

const ADDRESS = { tenant: 'default', conversation: 'conf' as ConversationId, agent: 'ana' } as const;

/** A small valid request; tests spread what they need over it. */
export function sampleRequest(over: Partial<ModelRequest> = {}): ModelRequest {
  const messages: PromptMessage[] = [
    { role: 'system', content: 'You are Ana.', seqs: [] },
    { role: 'user', content: 'Hello', seqs: [1] },
  ];
  const trace = { ...ADDRESS, turn: turnId(ADDRESS as Parameters<typeof turnId>[0], 1), step: 1, call: 1 };
  return {
    model: 'm',
    messages,
    tools: [],
    breakpoints: [],
    maxOutputTokens: 100,
    cacheKey: 'default/conf/ana',
    ...over,
    trace: over.trace ?? trace,
  };
}

/** All events of one call, checked for legal order; `onEvent` sees each as it comes. */
export async function collectEvents(
  provider: Provider,
  request: ModelRequest = sampleRequest(),
  { signal = new AbortController().signal, onEvent }: CollectOptions = {},
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, { signal })) {
    events.push(event);
    onEvent?.(event);
  }
  assertLegal(events);
  return events;
}

export interface CollectOptions {
  signal?: AbortSignal;
  onEvent?: (event: ModelEvent) => void;
}

function assertLegal(events: readonly ModelEvent[]): void {
  const order = events.map(({ type }) => type).join(' ');
  assert.match(order, /^start( session)?( (text|reasoning|call|compacted))* (done|failed|aborted)$/);
}

export function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
}
