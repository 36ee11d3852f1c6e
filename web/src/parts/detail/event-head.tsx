import { Go } from '../../shared/go.tsx';
import { turnLabel } from './chosen.ts';
import { useEvent } from './turn-answers.ts';

/** The heading for an address that names an event but no turn: the event and its author. */
export function EventHead({ seq }: { seq: number }) {
  const found = useEvent(seq);
  const event = found.state === 'there' ? found.value : null;
  return (
    <header class="detail-head">
      <div class="detail-title">
        <h2>
          <span>Event {seq}</span>
          {event && (
            <>
              <span class="detail-slash" aria-hidden="true">
                /
              </span>
              <span class="detail-name" title={event.author.name}>
                {event.author.name}
              </span>
            </>
          )}
        </h2>
      </div>
      <p class="detail-ids">
        {event ? <code>{event.kind}</code> : '\u00A0'}
        {event?.turn !== undefined && (
          <Go to={{ turn: event.turn, step: null, vs: null }}>{turnLabel(event.turn)}</Go>
        )}
      </p>
    </header>
  );
}
