import type {
  AgentId,
  ConversationId,
  Event,
  EventDraft,
  EventId,
  TenantId,
} from '../../src/events/index.ts';

export const ADDRESS = {
  tenant: 'default' as TenantId,
  conversation: 'c' as ConversationId,
  agent: 'planner' as AgentId,
};

function logged(draft: Omit<EventDraft, 'id'>, seq: number, at = seq * 60_000): Event {
  const { tenant, conversation } = ADDRESS;
  return { ...draft, id: `e${seq}` as EventId, tenant, conversation, seq, at, tokens: 1 } as Event;
}

/** A message, by default a minute after the previous one. */
export function said(seq: number, content: string, { by = 'Ana', at = seq * 60_000 } = {}): Event {
  const author = { kind: 'user' as const, id: by.toLowerCase(), name: by };
  return logged({ author, to: [], kind: 'message', body: { content } }, seq, at);
}

export function dialogue(...texts: readonly string[]): Event[] {
  return texts.map((text, index) => said(index + 1, text));
}

/** A step of an agent that calls a tool, and its result. */
export function called(seq: number, agent: string, args: string, result: string): [Event, Event] {
  const author = { kind: 'agent' as const, id: agent, name: agent };
  const call = { id: `call-${seq}`, name: 'read_file', args };
  const step = { index: 0, content: '', calls: [call] };
  const body = { call: call.id, name: call.name, outcome: 'done', content: result } as const;
  return [
    logged({ author, to: [], kind: 'step', body: step }, seq),
    logged({ author, to: [], kind: 'tool.result', body }, seq + 1),
  ];
}
