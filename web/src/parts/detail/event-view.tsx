import { clock } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { EventBody } from './event-body.tsx';
import { Loaded } from './loaded.tsx';
import { useEvent } from './turn-answers.ts';

export function EventView({ seq }: { seq: number }) {
  const event = useEvent(seq);
  return (
    <section class="event-view" aria-label={`Event ${seq}`}>
      <Loaded of={event}>
        {(value) =>
          value ? (
            <>
              <header>
                <h3>
                  #{seq} <code>{value.kind}</code>
                </h3>
                <time>{clock(value.at)}</time>
                <Go to={{ event: null }} class="event-close" title="Back to the turn">
                  close
                </Go>
              </header>
              <EventBody event={value} />
            </>
          ) : (
            <p class="detail-note">There is no event {seq} in this conversation.</p>
          )
        }
      </Loaded>
    </section>
  );
}
