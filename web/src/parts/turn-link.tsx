import type { StuckLine } from '../../../src/library/troupe.ts';
import { Go } from '../shared/go.tsx';
import { placeOf } from '../state/inbox.ts';

/** Leads to the turn of an agent in any conversation. */
export function TurnLink({ of }: { of: Pick<StuckLine, 'agent' | 'conversation' | 'turn'> }) {
  const { conversation, agent, turn } = of;
  return (
    <Go to={{ conversation, agent, turn }} title={`@${agent} in ${conversation}`}>
      <bdi>{placeOf(of)}</bdi>
    </Go>
  );
}
