import type { AgentView } from '../../../src/library/projection/model.ts';
import { shownCondition } from '../../../src/library/projection/needs.ts';
import type { PromptTokens } from '../../../src/events/index.ts';
import { Condition, CONDITION_WORDS } from '../shared/condition.tsx';
import { plural, short } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { memo } from '../shared/memo.ts';
import { UsageBar } from '../shared/usage-bar.tsx';
import { agentPath } from '../state/agent-path.ts';
import { waitOf } from '../state/inbox.ts';
import { conversation, route } from '../state/route.ts';
import { agentsByNeed, selectedAgent } from '../state/selection.ts';
import { usageOf } from '../state/usage.ts';

const MANY = 60;

/** The agents; those that need attention come first. */
export function Agents() {
  if (conversation.value === null) return null;
  const agents = agentsByNeed.value;
  const chosen = selectedAgent.value?.id;
  const { by } = route.value;
  const seen = agents.slice(0, MANY);
  return (
    <section aria-label="Agents">
      <h2>
        Agents <span class="quiet">{agents.length > 0 && agents.length}</span>
      </h2>
      <ul class="who-list">
        {seen.map((agent) => (
          <AgentLine
            key={agent.id}
            agent={agent}
            isChosen={agent.id === chosen}
            path={waitOf(agent) ?? agentPath(agent)}
            usage={usageOf(agent)}
          />
        ))}
      </ul>
      {agents.length > MANY && (
        <p class="who-more quiet">{plural(agents.length - MANY, 'more agent')}: ⌘K finds them</p>
      )}
      {by !== '' && (
        <p class="who-more">
          <Go to={{ by: '', problems: false }}>List the events of all agents</Go>
        </p>
      )}
    </section>
  );
}

interface AgentLineProps {
  agent: AgentView;
  isChosen: boolean;
  /** What it waits for, else the state path of its machine and the tools that it is calling. */
  path: string;
  usage: PromptTokens | null;
}

const AgentLine = memo(function AgentLine({ agent, isChosen, path, usage }: AgentLineProps) {
  const { id, name, pending, problem, turn, lastTurn } = agent;
  const condition = shownCondition(agent);
  const word = CONDITION_WORDS[condition];
  const why = condition === 'failed' && problem ? problem.code : path;
  // A queued agent's machine is idle, but the agent itself is not.
  const label = condition === 'queued' && path === 'idle' ? word : word === why ? word : `${word} · ${why}`;
  return (
    <li>
      <Go
        class="who-agent"
        to={{ agent: id, turn: turn ?? lastTurn, event: null, step: null, vs: null }}
        isCurrent={isChosen}
        title={problem ? `${problem.code}: ${problem.message}` : condition === 'queued' ? path : name}
      >
        <Condition of={condition} isTerse />
        <span class="who-name clip">{name}</span>
        <span class="who-state clip">{label}</span>
        {pending.length > 0 && (
          <span class="who-pending" title={`${plural(pending.length, 'event')} not answered yet`}>
            {short(pending.length)}
          </span>
        )}
        {usage && <UsageBar percent={usage.percent} level={usage.level} isSmall />}
      </Go>
    </li>
  );
});
