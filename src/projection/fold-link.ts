import type { AgentId, Event } from '../events/index.ts';
import { agentOf, type Draft, isAgentId, ownLinks, ownTotals } from './draft.ts';
import { type Link, MAX_LINKS } from './model.ts';

/** Counts what was addressed to agents. A task is counted where it was given, in whichever conversation it is worked on. */
export function foldLink(draft: Draft, event: Event): void {
  const { seq, author, kind } = event;
  const count = countOf(kind);
  for (const to of addressees(draft, event)) {
    const from = author.kind === 'agent' ? author.id : author.name;
    const key = `${author.kind} ${from} ${to}`;
    const known = draft.next.links[key];
    if (!known && !hasRoom(draft)) {
      ownTotals(draft).unlinked += 1;
      continue;
    }
    const link = known ?? { from, by: author.kind, to, messages: 0, tasks: 0, handoffs: 0, seq };
    ownLinks(draft)[key] = { ...link, [count]: link[count] + 1, seq };
  }
}

/** Whether one more link may be kept; it is counted as kept then. */
function hasRoom(draft: Draft): boolean {
  draft.links ??= Object.keys(draft.next.links).length;
  if (draft.links >= MAX_LINKS) return false;
  draft.links += 1;
  return true;
}

/** The log of whoever gives a task has it without addressees. */
function addressees(draft: Draft, { kind, body, author, to }: Event): readonly AgentId[] {
  if (kind === 'delegation.opened') return isAgentId(body.assignee) ? [body.assignee] : [];
  if (kind === 'command' || (kind === 'injection' && author.kind === 'system')) return [];
  return to.filter((id) => agentOf(draft, id) !== null);
}

function countOf(kind: Event['kind']): keyof Pick<Link, 'messages' | 'tasks' | 'handoffs'> {
  if (kind === 'delegation.opened') return 'tasks';
  return kind === 'handoff' ? 'handoffs' : 'messages';
}
