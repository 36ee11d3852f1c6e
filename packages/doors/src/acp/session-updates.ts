import type { ChatCall, ChatChange, Event } from '../troupe.ts';
import { createSpeech } from '../speech.ts';

type Content = { type: 'text'; text: string };

/** The session updates of the Agent Client Protocol, version 1, that Troupe sends. */
export type SessionUpdate =
  | { sessionUpdate: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk'; content: Content }
  | {
      sessionUpdate: 'tool_call';
      toolCallId: string;
      title: string;
      kind: 'other';
      status: 'pending';
    }
  | {
      sessionUpdate: 'tool_call_update';
      toolCallId: string;
      status?: 'in_progress' | 'completed' | 'failed';
      rawInput?: unknown;
      content?: { type: 'content'; content: Content }[];
    }
  | { sessionUpdate: 'plan'; entries: PlanEntry[] };

interface PlanEntry {
  content: string;
  priority: 'medium';
  status: 'pending' | 'in_progress' | 'completed';
}

/**
 * The changes of a conversation as updates of a session. Tool calls of threads are shown, but not their text: the agent that
 * gave the task reports the result.
 */
export function sessionUpdates(
  conversation: string,
  nameOf: (agent: string) => string,
): (change: ChatChange) => SessionUpdate[] {
  const textOf = createSpeech(conversation, nameOf);
  const thoughts = new Set<string>();
  const calls = new Set<string>();

  function title({ name, agent }: ChatCall): string {
    return `${nameOf(agent)}: ${name}`;
  }

  function ofCall(change: ChatChange): SessionUpdate[] {
    switch (change.type) {
      case 'call.start': {
        const { call } = change;
        calls.add(call.id);
        return [
          {
            sessionUpdate: 'tool_call',
            toolCallId: call.id,
            title: title(call),
            kind: 'other',
            status: 'pending',
          },
        ];
      }
      case 'call.ready':
        return [update(change.id, { status: 'in_progress', rawInput: parsed(change.args) })];
      case 'call.progress':
        return change.text === undefined ? [] : [update(change.id, { content: contentOf(change.text) })];
      case 'call.result':
        if (change.outcome === 'waiting') return [];
        return [
          update(change.id, {
            status: change.outcome === 'done' ? 'completed' : 'failed',
            content: contentOf(change.text),
          }),
        ];
      case 'void':
        return change.ids.flatMap((id) =>
          calls.has(id) ? [update(id, { status: 'failed', content: contentOf(change.reason) })] : [],
        );
      case 'block.start':
      case 'block.delta':
      case 'block.end':
      case 'call.delta':
      case 'event':
        return [];
    }
  }

  function thoughtIn(change: ChatChange): string {
    if (change.type === 'block.start' && change.block.kind === 'reasoning') thoughts.add(change.block.id);
    return change.type === 'block.delta' && thoughts.has(change.id) ? change.text : '';
  }

  return (change) => {
    const text = textOf(change);
    const thought = thoughtIn(change);
    return [
      ...(thought === '' ? [] : [{ sessionUpdate: 'agent_thought_chunk' as const, content: plain(thought) }]),
      ...(text === '' ? [] : [{ sessionUpdate: 'agent_message_chunk' as const, content: plain(text) }]),
      ...ofCall(change),
      ...(change.type === 'event' && change.event.conversation === conversation ? planOf(change.event) : []),
    ];
  };
}

/** A message of the log, for a session that is being loaded. */
export function messageUpdate(event: Event, nameOf: (agent: string) => string): SessionUpdate[] {
  if (event.kind !== 'message' || event.author.kind === 'system') return [];
  const { content } = event.body;
  const isUser = event.author.kind === 'user';
  const text = isUser ? content : `**${nameOf(event.author.id)}:** ${content}`;
  return [{ sessionUpdate: isUser ? 'user_message_chunk' : 'agent_message_chunk', content: plain(text) }];
}

function planOf(event: Event): SessionUpdate[] {
  if (event.kind !== 'todos') return [];
  const entries = event.body.items.map(({ text, status }): PlanEntry => ({
    content: text,
    priority: 'medium',
    status: status === 'done' ? 'completed' : status === 'active' ? 'in_progress' : 'pending',
  }));
  return [{ sessionUpdate: 'plan', entries }];
}

function update(
  toolCallId: string,
  fields: Omit<Extract<SessionUpdate, { sessionUpdate: 'tool_call_update' }>, 'sessionUpdate' | 'toolCallId'>,
): SessionUpdate {
  return { sessionUpdate: 'tool_call_update', toolCallId, ...fields };
}

function contentOf(text: string): { type: 'content'; content: Content }[] {
  return [{ type: 'content', content: plain(text) }];
}

function plain(text: string): Content {
  return { type: 'text', text };
}

function parsed(args: string): unknown {
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}
