import { Fragment } from 'preact';
import { duration, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { queues, stuck } from '../state/inbox.ts';

/** The queue of agent wakes: how many wait, and for how long. */
export function QueuesPanel() {
  const depth = queues.value;
  if (!depth) return null;
  const { wait } = depth;
  return (
    <section aria-label="Queues" id="queues">
      <h2>Queues</h2>
      <dl class="who-queues">
        {(['waiting', 'active', 'delayed', 'failed'] as const).map((name) => {
          const count = depth[name];
          return (
            // Hides what the server's queue does not report.
            count !== undefined && (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd class={name === 'failed' && count > 0 ? 'problem' : ''}>{whole(count)}</dd>
              </Fragment>
            )
          );
        })}
        {wait && (
          <>
            <dt>wait p50</dt>
            <dd>{duration(wait.p50Ms)}</dd>
            <dt>wait p95</dt>
            <dd>{duration(wait.p95Ms)}</dd>
          </>
        )}
      </dl>
      <Stuck />
    </section>
  );
}

/** What does not go on, in the server's words; each line leads to its turn. */
function Stuck() {
  const report = stuck.value;
  if (!report || report.total === 0) return null;
  const more = report.total - report.stuck.length;
  return (
    <ul class="who-stuck" aria-label="Stuck work">
      {report.stuck.map(({ conversation, agent, turn, words }) => (
        <li key={`${conversation} ${agent}`}>
          <Go to={{ conversation, agent, turn }}>
            @{agent} in {conversation}
          </Go>{' '}
          <span class="problem">{words}</span>
        </li>
      ))}
      {more > 0 && <li class="quiet">and {whole(more)} more</li>}
    </ul>
  );
}
