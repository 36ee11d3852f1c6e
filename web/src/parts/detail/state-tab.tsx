import { states } from '../../state/live.ts';
import { api } from '../../state/api.ts';
import { useFetched } from '../../state/fetched.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { FailedTurn } from './failed-turn.tsx';
import { Loaded } from './loaded.tsx';
import { FailedAgent } from './failed-agent.tsx';
import { StateChart } from './state-chart.tsx';
import { StateFacts } from './state-facts.tsx';
import { StateLegal } from './state-legal.tsx';
import { StateNow, type Moment } from './state-now.tsx';

/** The state of the agent's machine, how it got there, and what may come next. */
export function StateTab() {
  const charts = useFetched('charts', null, api.charts);
  const { agent, agentId, turn } = chosen.value;
  if (!agent)
    return (
      <p class="detail-note">
        {agentId === null ? 'Choose an agent or a turn.' : 'This agent has not done anything yet.'}
      </p>
    );
  const moment = momentOf();
  return (
    <>
      <FailedAgent />
      {turn?.status === 'failed' && <FailedTurn />}
      <StateNow moment={moment} />
      <Loaded of={charts}>
        {({ charts: { agent: turns, availability } }) => (
          <>
            {turns && <StateChart chart={turns} moment={moment} />}
            {availability && (
              <StateChart
                chart={availability}
                moment={isAway(moment) ? moment : { ...moment, state: 'available' }}
              />
            )}
          </>
        )}
      </Loaded>
      <Loaded of={charts}>
        {({ charts: { agent: turns, availability } }) => (
          <StateLegal chart={(isAway(moment) ? availability : turns) ?? null} moment={moment} />
        )}
      </Loaded>
      <StateFacts />
    </>
  );
}

/** True when something keeps the agent from its turns. */
function isAway({ state }: Moment): boolean {
  return state === 'paused' || state === 'failed' || state === 'retired';
}

/** The live state if it is newer, else the actor's status from the server, else the state from the log. */
function momentOf(): Moment {
  const { agent } = chosen.value;
  const since = agent?.since.at ?? 0;
  const now = route.value.at === null ? presentMoment(since) : null;
  return now ?? { state: agent?.state ?? 'idle', event: null, since, doing: [] };
}

function presentMoment(since: number): Moment | null {
  const { agentId, actor } = chosen.value;
  const newest = agentId === null ? undefined : states.value.get(agentId);
  const last = actor?.last ?? null;
  if (newest && newest.at >= (last?.at ?? 0)) {
    return { state: newest.state, event: newest.event, since: newest.at, doing: newest.doing };
  }
  return actor && { state: actor.state, event: last?.event ?? null, since: last?.at ?? since, doing: [] };
}
