import type { Clock } from '../../src/base/clock.ts';
import { TroupeError } from '../../src/base/errors.ts';
import type { ConversationId, Event, EventId, TenantId } from '../../src/events/index.ts';
import type { IntegrationTroupe } from '../../src/library/integrations/integration.ts';

/** The log of one tenant, as followers see it. It can lose notices. */
export interface FakeLog {
  troupe: IntegrationTroupe;
  /** `quietly`: without a notice, as if another process had appended and its notice were lost. */
  append(
    conversation: string,
    options?: { quietly?: boolean; at?: number; text?: string; kind?: 'message' | 'todos' },
  ): Event;
  delete(conversation: string): void;
  all(conversation: string): readonly Event[];
  reads: { conversations: number; events: number };
}

export function fakeLog(clock: Pick<Clock, 'now'>, tenant = 'default'): FakeLog {
  const logs = new Map<string, Event[]>();
  const watchers = new Set<Parameters<IntegrationTroupe['watch']>[0]>();
  const reads = { conversations: 0, events: 0 };
  let minted = 0;
  return {
    reads,
    append(conversation, { quietly = false, at = clock.now(), text = 'Hello', kind = 'message' } = {}) {
      const events = logs.get(conversation) ?? [];
      logs.set(conversation, events);
      const author = { kind: 'user' as const, id: 'u1', name: 'Ana' };
      const envelope = {
        id: `e${++minted}` as EventId,
        tenant: tenant as TenantId,
        conversation: conversation as ConversationId,
        seq: events.length + 1,
        at,
        tokens: 1,
        author,
        to: [],
      };
      const event = (
        kind === 'message'
          ? { ...envelope, kind, body: { content: text } }
          : { ...envelope, kind, body: { items: [], later: false } }
      ) as Event;
      events.push(event);
      if (!quietly) for (const watcher of watchers) watcher({ type: 'event', event });
      return event;
    },
    delete: (conversation) => void logs.delete(conversation),
    all: (conversation) => logs.get(conversation) ?? [],
    troupe: {
      agents: [],
      actors: async () => [],
      send: () => Promise.reject(new Error('a follower sends nothing')),
      watch(watcher) {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      async conversations(limit = 200) {
        reads.conversations += 1;
        const rows = [...logs].map(([id, events]) => ({
          id: id as ConversationId,
          head: events.length,
          at: events.at(-1)?.at ?? 0,
        }));
        return rows.toSorted((a, b) => b.at - a.at).slice(0, limit);
      },
      async events(conversation, { after = 0, limit = 500 } = {}) {
        reads.events += 1;
        const events = logs.get(conversation);
        if (!events)
          throw new TroupeError('conversation_unknown', `there is no conversation "${conversation}"`);
        return { events: events.slice(after, after + limit), head: events.length };
      },
    },
  };
}
