import '../../style/detail-events.css';
import { useState } from 'preact/hooks';
import type { Event } from '../../../../src/events/index.ts';
import { rowOf } from '../../../../src/library/projection/row.ts';
import { clock } from '../../shared/format.ts';
import { hovered, hovers } from '../../state/hovered.ts';
import { route } from '../../state/route.ts';
import { chosen, turnLabel } from './chosen.ts';
import { EventBody } from './event-body.tsx';
import { EventView } from './event-view.tsx';
import { Loaded } from './loaded.tsx';
import { useTrace } from './turn-answers.ts';

/** The selected event and all events of the turn: its inputs, then its outputs. */
export function EventsTab() {
  const { turnId } = chosen.value;
  const { event, at } = route.value;
  const trace = useTrace(turnId);
  return (
    <>
      {event !== null && <EventView seq={event} key={event} />}
      {turnId !== null && (
        <section aria-label="Events of the turn">
          <h3 class="events-title">What {turnLabel(turnId)} answers and did</h3>
          <Loaded of={trace}>
            {({ events }) => (
              <ol class="events-list">
                {events
                  .filter(({ seq }) => at === null || seq <= at)
                  .map((each) => (
                    <EventRow key={each.seq} event={each} />
                  ))}
              </ol>
            )}
          </Loaded>
        </section>
      )}
      {turnId === null && event === null && <p class="detail-note">Choose a turn or an event.</p>}
    </>
  );
}

function EventRow({ event }: { event: Event }) {
  const [isOpen, setOpen] = useState(false);
  const { seq, at, kind, author, summary, level } = rowOf(event);
  return (
    <li class={hovered.value === seq ? 'event-hovered' : ''} {...hovers(seq)}>
      <button
        type="button"
        class={`events-row events-${level}`}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="events-seq">{seq}</span>
        <span class="events-kind">{kind}</span>
        <span class="events-what" title={summary}>
          {kind === 'message' || kind === 'notice' || kind === 'handoff' ? `${author}: ` : ''}
          {summary}
        </span>
        <time>{clock(at)}</time>
      </button>
      {isOpen && <EventBody event={event} />}
    </li>
  );
}
