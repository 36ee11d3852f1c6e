import type { AgentId, ConversationId, TenantId, TurnId, ToolContext } from './troupe.ts';

/** A tool's context in a test: a call of the agent `bo` for Ana in the conversation `c`. Given fields replace these. */
export function createToolContext<App = unknown, ForTools = unknown>(
  over: Partial<ToolContext<App, ForTools>> = {},
): ToolContext<App, ForTools> {
  const tenant = 'default' as TenantId;
  const conversation = 'c' as ConversationId;
  const agent = 'bo' as AgentId;
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  return {
    address: { tenant, conversation, agent },
    tenant,
    conversation,
    agent,
    turn: 'c:bo:1' as TurnId,
    author,
    authors: [author],
    app: undefined as App,
    forTools: null,
    answers: [],
    effect: 'c:bo:1/0.0',
    signal: new AbortController().signal,
    artifacts: { read: () => Promise.resolve(null) },
    progress: () => undefined,
    ...over,
  };
}
