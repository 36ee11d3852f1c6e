import { Go } from '../../shared/go.tsx';
import type { Original } from '../../state/copied.ts';
import { route } from '../../state/route.ts';
import { partsOf, turnLabel } from './chosen.ts';

/** Prompts are kept only in the conversation that sent them, because a fork copies only the events. */
export function CopiedTurn({ of: { conversation, turn, seq } }: { of: Original }) {
  const { tab } = route.value;
  return (
    <p class="detail-note">
      This turn was copied from{' '}
      <Go to={{ conversation, turn, agent: partsOf(turn)?.agent ?? null, tab }}>
        {turnLabel(turn)} of {conversation}
      </Go>{' '}
      with all up to event {seq}. What was sent to the model is kept there.
    </p>
  );
}
