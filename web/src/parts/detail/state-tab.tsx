import { api } from '../../state/api.ts';
import { useFetched } from '../../state/fetched.ts';
import { shown } from '../../state/live.ts';
import { chosen, isTurnOver } from './chosen.ts';
import { FailedTurn } from './failed-turn.tsx';
import { Loaded } from './loaded.tsx';
import { FailedAgent } from './failed-agent.tsx';
import { isAway, momentOf } from './moment.ts';
import { StateCharts } from './state-charts.tsx';
import { StateFacts } from './state-facts.tsx';
import { StateLegal } from './state-legal.tsx';
import { StateNow } from './state-now.tsx';
import { TurnAnswer } from './turn-answer.tsx';
import { TurnThen } from './turn-then.tsx';

/** The turn's answer, the state of the agent's machine, how it got there, and what may come next. */
export function StateTab() {
  const { agent, agentId, turn } = chosen.value;
  if (!agent)
    return (
      <p class="detail-note">
        {agentId === null ? 'Choose an agent or a turn.' : 'This agent has not done anything yet.'}
      </p>
    );
  if (turn?.to && isTurnOver.value)
    return (
      <>
        {turn.status === 'failed' && <FailedTurn />}
        <TurnAnswer turn={turn} />
        <TurnThen turn={turn} to={turn.to} />
      </>
    );
  return <Present />;
}

function Present() {
  const charts = useFetched('transitions', null, api.transitions);
  const { agent, actor, turn, turnId } = chosen.value;
  const moment = momentOf();
  const { agent: turns = null, availability = null } = charts.state === 'there' ? charts.value.charts : {};
  const chart = isAway(moment) ? availability : turns;
  const waiting = (shown.value?.tasks ?? []).filter(
    ({ owner, endedAt }) => owner === agent?.id && endedAt === null,
  );
  return (
    <>
      <FailedAgent />
      {turn?.status === 'failed' && <FailedTurn />}
      <StateNow chart={chart} moment={moment} />
      {turn && turn.status !== 'failed' && <TurnAnswer turn={turn} />}
      <Loaded of={charts}>{() => <StateLegal chart={chart} moment={moment} />}</Loaded>
      {agent && <StateFacts agent={agent} tasks={waiting} actor={actor} turnId={turnId} />}
      <StateCharts moment={moment} />
    </>
  );
}
