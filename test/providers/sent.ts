import type { ModelRequest, Provider } from '../../src/providers/provider.ts';
import type { PromptMessage } from '../../src/events/index.ts';
import type { FakeServer } from '../../packages/testing/src/fake-vendors.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';

/** The body that a provider sends for a request. */
export async function sentBody(
  server: FakeServer,
  provider: Provider,
  over: Partial<ModelRequest>,
): Promise<Record<string, unknown>> {
  await collectEvents(provider, sampleRequest(over));
  return server.requests.at(-1)?.body as Record<string, unknown>;
}

export const system = (content: string): PromptMessage => ({ role: 'system', content, seqs: [] });
export const user = (content: string): PromptMessage => ({ role: 'user', content, seqs: [1] });
export const result = (call: string, content: string, failed = false): PromptMessage => ({
  role: 'tool',
  call,
  name: 'add',
  content,
  failed,
  seqs: [3],
});
export function assistant(content: string, calls: readonly [id: string, args: string][] = []): PromptMessage {
  const made = calls.map(([id, args]) => ({ id, name: 'add', args }));
  return { role: 'assistant', content, ...(made.length > 0 ? { calls: made } : {}), seqs: [2] };
}

export const ADD_TOOL = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
};
