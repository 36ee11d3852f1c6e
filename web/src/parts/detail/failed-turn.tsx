import '../../style/detail-failed.css';
import type { Event } from '../../../../src/events/index.ts';
import { CommandButton } from '../../shared/command-button.tsx';
import { plural } from '../../shared/format.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { EventLink } from './event-link.tsx';
import { FailedHead } from './failed-agent.tsx';
import { ForkButton } from './fork-button.tsx';
import { LongText } from './long-text.tsx';
import { useTrace } from './turn-answers.ts';

/** What went wrong, what happens next, and what a person can do. */
export function FailedTurn() {
  const { agent, turn, turnId, actor } = chosen.value;
  const trace = useTrace(turnId);
  if (!turn?.error || turnId === null) return null;
  const events = trace.state === 'there' ? trace.value.events : [];
  const partial = partialOf(events);
  const tries = events.filter(({ kind }) => kind === 'error').length;
  const mayRetry = route.value.at === null && actor?.can.includes('retry') && actor.lastTurn === turnId;
  return (
    <section class="failed" aria-label="What went wrong">
      <FailedHead of={turn.error} />
      <p class="failed-policy">
        {agent?.state === 'failed'
          ? 'The agent has failed: it starts no turn until this one is retried.'
          : turn.retried !== null
            ? 'A retry was requested.'
            : 'The turn has ended: there is no automatic retry.'}
        {tries > 0 && ` ${plural(tries, 'model call')} failed in it.`} It was to answer{' '}
        {turn.inputs.map((each) => (
          <EventLink key={each} seq={each} />
        ))}
        .
      </p>
      {partial !== '' && (
        <div class="failed-partial">
          <h4>Its text until then</h4>
          <LongText text={partial} lines={6} />
        </div>
      )}
      {route.value.at === null && (
        <div class="detail-commands">
          {mayRetry && (
            <CommandButton command={{ command: 'retry', turn: turnId }} label="Retry" class="button-main" />
          )}
          <ForkButton turn={turnId} />
        </div>
      )}
    </section>
  );
}

function partialOf(events: readonly Event[]): string {
  for (const event of events.toReversed()) {
    if ((event.kind === 'turn.failed' || event.kind === 'error') && event.body.partial)
      return event.body.partial;
  }
  return '';
}
