import { shownCondition } from '../../../../src/library/projection/needs.ts';
import { Condition } from '../../shared/condition.tsx';
import { Icon } from '../../shared/icon.tsx';
import { shown } from '../../state/live.ts';
import { selectAgent, selectedAgent } from '../../state/selection.ts';
import { toggleLane } from '../../state/timeline/cursor.ts';
import type { Placed } from '../../state/timeline/rows.ts';

/** The names beside the lanes, in the order in which the agents joined. */
export function TimelineLanes({ lanes }: { lanes: readonly Placed[] }) {
  const chosen = selectedAgent.value?.id;
  const agents = shown.value?.agents ?? {};
  return (
    <div class="timeline-lanes">
      <div class="timeline-corner" />
      {lanes.map(({ lane: { agent: id, name }, height, rows }) => {
        const agent = id === null ? undefined : agents[id];
        if (!agent || id === null)
          return (
            <div key="" class="timeline-lane quiet" style={{ height: `${height}px` }}>
              <span class="timeline-name clip">{name}</span>
            </div>
          );
        return (
          <div key={id} class="timeline-lane" style={{ height: `${height}px` }} data-chosen={id === chosen}>
            <button
              type="button"
              class="timeline-open"
              tabIndex={-1}
              aria-expanded={rows.parts}
              aria-label={`Parts of the turns of ${name}`}
              onClick={() => toggleLane(id)}
            >
              <Icon name={rows.parts ? 'down' : 'right'} />
            </button>
            <button
              type="button"
              class="timeline-name"
              tabIndex={-1}
              title={name}
              aria-pressed={id === chosen}
              onClick={() => selectAgent(agent)}
            >
              <Condition of={shownCondition(agent)} isTerse />
              <span class="clip">{name}</span>
            </button>
          </div>
        );
      })}
    </div>
  );
}
