import type { Event } from '../events/index.ts';
import { MAX_ARROWS } from './bounds.ts';
import { agentOf, type Draft, keepNewest, own } from './draft.ts';

/** What somebody said or gave to agents; what the runtime tells them is none of it. */
export function foldArrow(draft: Draft, { seq, at, kind, author, to }: Event): void {
  const known = to.filter((id) => agentOf(draft, id) !== null);
  if (known.length === 0 || (kind === 'injection' && author.kind === 'system')) return;
  const isAgent = author.kind === 'agent';
  const arrows = own(draft, 'arrows');
  arrows.push({ seq, at, kind, from: isAgent ? author.id : author.name, isAgent, to: known });
  keepNewest(arrows, MAX_ARROWS);
}
