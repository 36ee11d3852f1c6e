import { Go } from '../shared/go.tsx';
import { subjectOf } from '../state/inbox.ts';
import { nameOf } from '../state/selection.ts';

/** Leads to the turn of an agent in any conversation: both by the names that people know. */
export function TurnLink({ of }: { of: { conversation: string; agent: string; turn: string | null } }) {
  const { conversation, agent, turn } = of;
  return (
    <Go class="turn-link" to={{ conversation, agent, turn }} title={`@${agent} in ${conversation}`}>
      {nameOf(agent)} in <bdi>{subjectOf(conversation)}</bdi>
    </Go>
  );
}
