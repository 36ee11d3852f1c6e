import { Go } from '../../shared/go.tsx';
import { shown } from '../../state/live.ts';

/** The agents whose turns answer this event or may have seen it, from the projection alone. */
export function SeenBy({ seq }: { seq: number }) {
  const turns = shown.value?.turns ?? [];
  const answered = turns.filter(({ inputs }) => inputs.includes(seq));
  if (answered.length === 0) return null;
  return (
    <>
      <dt>Answered in</dt>
      <dd>
        {answered.map(({ id, agent, number }) => (
          <Go key={id} to={{ turn: id, agent, event: null, step: null, vs: null }}>
            {agent} {number}
          </Go>
        ))}
      </dd>
    </>
  );
}
