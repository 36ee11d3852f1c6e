import { isAbout } from './aspects.ts';
import type { Event, EventDraft } from './event.ts';
import { type ActorAddress, type AgentId, type EventId, runtimeId } from './ids.ts';

/** The present ids of renamed agents, by their former ids. */
export type FormerIds = ReadonlyMap<AgentId, AgentId>;

/** Id of the command that wakes a renamed agent for messages to one of its ids that its turns under the other passed over. */
export function renamedId(former: AgentId, fence: number): EventId {
  return runtimeId('renamed', former, fence);
}

/** The inputs that such a command asks for; null for every other event. */
export function passedOverIn({ id, kind, body }: Event): readonly number[] | null {
  if (kind !== 'command' || !id.startsWith('renamed:')) return null;
  return body.inputs ?? null;
}

/** The address of an agent under its present id. */
export function presentAddress<A extends ActorAddress>(former: FormerIds, address: A): A {
  const agent = former.get(address.agent);
  return agent === undefined ? address : { ...address, agent };
}

/** An event with the present ids of its agents. `formerly` keeps those that prompts have shown. */
export function withPresentIds(former: FormerIds, event: Event): Event {
  const renamed = withAgentIds(event, (id) => former.get(id) ?? id);
  if (renamed === event) return event;
  const { author, to } = event;
  const isAuthor = renamed.author.id !== author.id;
  const isAddressed = renamed.to.some((id, index) => id !== to[index]);
  const formerly = { ...(isAuthor && { author: author.id as AgentId }), ...(isAddressed && { to }) };
  return isAuthor || isAddressed ? { ...renamed, formerly } : renamed;
}

/** An event with the ids of its agents replaced; the same object if none changes. `idOf` is called in the same order each time. */
export function withAgentIds<E extends Event | EventDraft>(event: E, idOf: (id: AgentId) => AgentId): E {
  let isChanged = false;
  const renamed = (id: AgentId): AgentId => {
    const other = idOf(id);
    isChanged ||= other !== id;
    return other;
  };
  const { author, context } = event;
  const changed = {
    ...event,
    ...(author.kind === 'agent' && { author: { ...author, id: renamed(author.id as AgentId) } }),
    to: event.to.map(renamed),
    ...(context && { context: inContext(context, renamed) }),
    ...inBody(event, renamed),
  };
  return isChanged ? changed : event;
}

type Rename = (id: AgentId) => AgentId;

function inContext(context: NonNullable<Event['context']>, renamed: Rename): NonNullable<Event['context']> {
  const { held, session } = context;
  return {
    ...context,
    ...(held && { held: held.map(renamed) }),
    ...(session && { session: { ...session, agent: renamed(session.agent) } }),
  };
}

function inBody(event: Event | EventDraft, renamed: Rename): { body?: unknown } {
  if (!isAbout(event, 'agents')) return {};
  switch (event.kind) {
    case 'delegation.opened': {
      const { delegator, assignee, chain } = event.body;
      const ids = { delegator: renamed(delegator), assignee: renamed(assignee), chain: chain.map(renamed) };
      return { body: { ...event.body, ...ids } };
    }
    case 'membership.changed':
    case 'compaction.progress':
      return { body: { ...event.body, agent: renamed(event.body.agent) } };
    case 'command': {
      const { agent } = event.body;
      return agent === undefined ? {} : { body: { ...event.body, agent: renamed(agent) } };
    }
    case 'compaction':
      return { body: { ...event.body, by: renamed(event.body.by) } };
    case 'run.directive': {
      const { step, steps } = event.body;
      const doneBy = <S extends { agent: AgentId }>(each: S): S => ({ ...each, agent: renamed(each.agent) });
      return {
        body: {
          ...event.body,
          ...(step && { step: doneBy(step) }),
          ...(steps && { steps: steps.map(doneBy) }),
        },
      };
    }
  }
}
