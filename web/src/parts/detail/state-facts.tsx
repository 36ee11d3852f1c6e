import type { AgentView, TaskView } from '../../../../src/library/projection/model.ts';
import type { ActorStatus } from '../../../../src/library/troupe.ts';
import { Copy } from '../../shared/copy.tsx';
import { Due } from '../../shared/due.tsx';
import { clock, dollars, plural, short, whole } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { nameOf } from '../../state/selection.ts';
import { priceOf } from '../../state/turn-figures.ts';
import { EventLink } from './event-link.tsx';

interface StateFactsProps {
  agent: AgentView;
  /** The tasks that the agent waits for. */
  tasks: readonly TaskView[];
  /** Null in the past. */
  actor: ActorStatus | null;
  turnId: string | null;
}

/** Facts from the log and from the actor's record. */
export function StateFacts({ agent, tasks, actor, turnId }: StateFactsProps) {
  const { input, output, cacheRead } = agent.tokens;
  const usd = input + output === 0 ? null : priceOf(agent.id, agent.tokens);
  return (
    <section class="state-facts" aria-label="Facts">
      <h3>Facts</h3>
      <dl>
        <dt>In this state since</dt>
        <dd>
          <EventLink seq={agent.since.seq} /> at {clock(agent.since.at)}
        </dd>
        {turnId !== null && (
          <>
            <dt>Turn</dt>
            <dd>
              <Copy text={turnId} />
              {actor?.attempt !== null && actor?.attempt !== undefined && actor.attempt > 1 && (
                <span> attempt {actor.attempt}</span>
              )}
            </dd>
          </>
        )}
        <dt>Pending</dt>
        <dd>
          {agent.pending.length === 0
            ? 'nothing'
            : agent.pending.map((seq) => <EventLink key={seq} seq={seq} />)}
        </dd>
        <dt>Seen</dt>
        <dd>up to event {whole(Math.max(agent.seen, 0))}</dd>
        {actor && <ActorFacts actor={actor} />}
        <dt>Total</dt>
        <dd>
          {usd !== null && `${dollars(usd)}, `}
          {plural(agent.turns, 'turn')}, {whole(agent.failed)} failed; {short(input)} tokens in,{' '}
          {short(output)} out, {short(cacheRead)} from cache
        </dd>
      </dl>
      {tasks.length > 0 && (
        <>
          <h3>Waiting for</h3>
          <ul class="state-tasks">
            {tasks.map((task) => (
              <li key={task.id}>
                <Task task={task} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function ActorFacts({ actor: { lastProcessedIndex, cursor, session, problem } }: { actor: ActorStatus }) {
  return (
    <>
      <dt>Last processed</dt>
      <dd>
        event {whole(lastProcessedIndex)}
        {cursor !== null && <>, cursor {whole(cursor)}</>}
      </dd>
      {session && (
        <>
          <dt>Session</dt>
          <dd>
            <Copy text={session.id} /> {session.provider}, {session.state}
          </dd>
        </>
      )}
      {problem !== undefined && (
        <>
          <dt>Problem</dt>
          <dd class="detail-failed">{problem}</dd>
        </>
      )}
    </>
  );
}

function Task({ task: { kind, seq, text, assignee, thread, deadline } }: { task: TaskView }) {
  return (
    <>
      <EventLink seq={seq} /> {kind}
      {assignee !== null && <> by {nameOf(assignee)}</>} <Due at={deadline} />
      <span class="state-asked" title={text} dir="auto">
        {text}
      </span>
      {thread !== null && <Go to={{ conversation: thread }}>its thread</Go>}
    </>
  );
}
