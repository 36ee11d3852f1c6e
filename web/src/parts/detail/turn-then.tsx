import '../../style/detail-state.css';
import type { AgentView, TaskView, TurnView } from '../../../../src/library/projection/model.ts';
import { CONDITION_WORDS } from '../../shared/condition.tsx';
import { clock, duration, plural, short } from '../../shared/format.ts';
import { api } from '../../state/api.ts';
import { type Fetched, useFetched } from '../../state/fetched.ts';
import { route } from '../../state/route.ts';
import { EventLink } from './event-link.tsx';
import { Loaded } from './loaded.tsx';
import { StateFacts } from './state-facts.tsx';

interface Then {
  agent: AgentView | null;
  tasks: TaskView[];
}

/** A turn that has ended, with its agent as it was at that time, because what the agent does now is not about that turn. */
export function TurnThen({ turn, to }: { turn: TurnView; to: number }) {
  const { status, startedAt, endedAt, callCount, retries, tokens, agent } = turn;
  const then = useThen(agent, to);
  const used = tokens.input + tokens.output;
  return (
    <>
      <ol class="strip strip-then" aria-label="State">
        <li class="strip-now">
          <strong>{status}</strong> {endedAt !== null && <>at {clock(endedAt)}</>} <EventLink seq={to} />
        </li>
        <li class="strip-next">
          {[
            ...(endedAt === null ? [] : [`took ${duration(endedAt - startedAt)}`]),
            ...(callCount > 0 ? [plural(callCount, 'tool call')] : []),
            ...(retries > 0 ? [`${retries} retried`] : []),
            ...(used > 0 ? [`${short(used)} tokens`] : []),
          ].map((each) => (
            <span key={each}>{each}</span>
          ))}
        </li>
      </ol>
      <Loaded of={then}>
        {({ agent: was, tasks }) =>
          was && (
            <>
              <p class="then-was">
                After it, <b>{was.name}</b> was{' '}
                <b class={`then-${was.condition}`}>{CONDITION_WORDS[was.condition]}</b>
                {was.state !== was.condition && <> ({was.state.split('.').join(' › ')})</>}.
              </p>
              <StateFacts agent={was} tasks={tasks} actor={null} turnId={turn.id} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

/** The log after the end of the turn, folded by the server. It never changes. */
function useThen(agent: string, to: number): Fetched<Then> {
  const { conversation } = route.value;
  return useFetched(conversation && `then ${conversation} ${agent} ${to}`, null, async () => {
    const { projection } = await api.snapshot(conversation ?? '', to);
    return {
      agent: projection.agents[agent] ?? null,
      tasks: projection.tasks.filter(({ owner, endedAt }) => owner === agent && endedAt === null),
    };
  });
}
