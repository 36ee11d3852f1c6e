import { REPLY } from './fake-model.mjs';

export function textOf(index) {
  return `Message ${index}: the deploy of service-${index % 17} took ${index % 90} s, please note it for the report.`;
}

/** Earlier messages of a conversation: of a person and of the agent by turns. */
export function messagesOf(count) {
  return Array.from({ length: count }, (_, index) =>
    index % 2 === 0 ? { role: 'user', content: textOf(index) } : { role: 'assistant', content: REPLY },
  );
}
