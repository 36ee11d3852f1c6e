import type { AgentView } from '../../../src/projection/model.ts';
import { shownCondition } from '../../../src/projection/needs.ts';
import { Condition } from '../shared/condition.tsx';
import { memo } from '../shared/memo.ts';
import { selectAgent, selectedAgent } from '../state/selection.ts';

/** The names beside the lanes, in the order in which agents joined. */
export function TimelineLanes({
  ids,
  agents,
}: {
  ids: readonly string[];
  agents: Record<string, AgentView>;
}) {
  const chosen = selectedAgent.value?.id;
  return (
    <div class="timeline-lanes">
      <div class="timeline-lane quiet">People</div>
      {ids.map((id) => {
        const agent = agents[id];
        return agent && <Lane key={id} agent={agent} isChosen={id === chosen} />;
      })}
    </div>
  );
}

const Lane = memo(function Lane({ agent, isChosen }: { agent: AgentView; isChosen: boolean }) {
  return (
    <button
      type="button"
      class="timeline-lane"
      tabIndex={-1}
      title={agent.name}
      aria-pressed={isChosen}
      onClick={() => selectAgent(agent)}
    >
      <Condition of={shownCondition(agent)} isTerse />
      <span class="clip">{agent.name}</span>
    </button>
  );
});
