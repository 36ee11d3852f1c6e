import type { PromptMessage } from '../events/index.ts';

/**
 * The schema of an answer in words, at the end of the system message, for vendors that take it in no other way: the same
 * in every request of an agent.
 */
export function tellSchema(messages: readonly PromptMessage[], schema: object): PromptMessage[] {
  const words = `Answer with a JSON object and nothing else. It must fit this JSON schema:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: words, seqs: [] }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${words}` }, ...rest];
}
