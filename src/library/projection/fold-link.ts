import type { AgentId, Event } from '../../events/index.ts';
import { agentOf, type Draft, isAgentId, own, ownTotals } from './draft.ts';
import { type Link, MAX_LINKS } from './model.ts';

/** Counts what was addressed to agents. A task is counted where it was given, in whichever conversation it is worked on. */
export function foldLink(draft: Draft, event: Event): void {
  const { seq, author, kind } = event;
  const count = countOf(kind);
  const from = author.kind === 'agent' ? author.id : author.name;
  for (const to of addressees(draft, event)) {
    const pair = { from, by: author.kind, to };
    const index = placeOf(draft, pair);
    const { links } = draft.next;
    if (index >= MAX_LINKS) {
      ownTotals(draft).unlinked += 1;
      continue;
    }
    const link = links[index] ?? { ...pair, messages: 0, tasks: 0, handoffs: 0, seq };
    own(draft, 'links')[index] = { ...link, [count]: link[count] + 1, seq };
  }
}

type Pair = Pick<Link, 'from' | 'by' | 'to'>;

/** More searches in one draft are worth a table. */
const FEW = 20;

/** Index of the link of a pair; the next free one for a new pair. */
function placeOf(draft: Draft, { from, by, to }: Pair): number {
  const { links } = draft.next;
  draft.searches += 1;
  if (draft.searches > FEW) {
    draft.linkAt ??= new Map(links.map((link, index) => [keyOf(link), index]));
    const key = keyOf({ from, by, to });
    const index = draft.linkAt.get(key) ?? links.length;
    if (index < MAX_LINKS) draft.linkAt.set(key, index);
    return index;
  }
  const index = links.findIndex((link) => link.to === to && link.from === from && link.by === by);
  return index < 0 ? links.length : index;
}

/** An id has no space. */
function keyOf({ from, by, to }: Pair): string {
  return `${by} ${to} ${from}`;
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
