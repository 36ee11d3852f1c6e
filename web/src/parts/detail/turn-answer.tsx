import type { Event } from '../../../../src/events/index.ts';
import type { TurnView } from '../../../../src/library/projection/model.ts';
import { plural } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { streams } from '../../state/live.ts';
import { isPast } from '../../state/past.ts';
import { nameOf } from '../../state/selection.ts';
import { Markdown } from '../reading/markdown.tsx';
import { EventLink } from './event-link.tsx';
import { threadsOf } from '../../state/threads.ts';
import { useTrace } from './turn-answers.ts';

/** What a turn was asked, and its answer: these come before everything that explains them. */
export function TurnAnswer({ turn }: { turn: TurnView }) {
  const { id, trigger, inputs, status, handoff } = turn;
  const trace = useTrace(id);
  const events = trace.state === 'there' ? trace.value.events : [];
  const streamed = isPast.value ? '' : (streams.value.get(id) ?? '');
  const text = (status === 'running' && streamed) || saidIn(events, turn) || turn.said;
  return (
    <section class="answer" aria-label="Answer" aria-busy={status === 'running'}>
      {trigger !== null && (
        <p class="answer-to clip" dir="auto">
          to {trigger.name}: {trigger.text} {inputs[0] !== undefined && <EventLink seq={inputs[0]} />}
        </p>
      )}
      {text.trim() !== '' && (
        <div class="answer-text" dir="auto">
          <Markdown text={text} />
        </div>
      )}
      {handoff !== null && (
        <p>
          Handed over to <b>{handoff.to.map(nameOf).join(', ')}</b> <EventLink seq={handoff.seq} />
        </p>
      )}
      <Calls turn={turn} />
      {text.trim() === '' && handoff === null && turn.callCount === 0 && (
        <p class="quiet">{status === 'running' ? 'Nothing said yet.' : 'Ended without words.'}</p>
      )}
    </section>
  );
}

/** The calls of the turn, with links to its tools and to the threads of its tasks. */
function Calls({ turn: { id, agent, from, to, calls, callCount } }: { turn: TurnView }) {
  if (callCount === 0) return null;
  const names = [...new Set(calls.map(({ name }) => name))];
  return (
    <p class="answer-calls">
      <Go to={{ turn: id, tab: 'tools', step: null, vs: null }}>{plural(callCount, 'tool call')}</Go>
      <span class="quiet">: {names.join(', ')}</span>
      {threadsOf({ agent, from, to }).map(({ assignee, thread }) => (
        <Go key={thread} class="thread-link" to={{ conversation: thread }}>
          thread of {nameOf(assignee ?? '')}
        </Go>
      ))}
    </p>
  );
}

function saidIn(events: readonly Event[], { id }: TurnView): string {
  const said = events.flatMap((event) =>
    event.kind === 'message' && event.turn === id ? [event.body.content] : [],
  );
  return said.join('\n\n');
}
