import type { Event } from '../../../../src/events/index.ts';
import { Copy } from '../../shared/copy.tsx';
import { ERASED } from '../../shared/erased.ts';
import { whole } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { canErase } from '../../state/caller.ts';
import { showErasure } from '../../state/dialogs.ts';
import { nameOf } from '../../state/selection.ts';
import { turnLabel } from './chosen.ts';
import { EventLink } from './event-link.tsx';
import { eventWords } from './event-text.ts';
import { LongText } from './long-text.tsx';
import { SeenBy } from './seen-by.tsx';

/** All of an event: its text, author and addressees, ids, and the stored JSON. */
export function EventBody({ event }: { event: Event }) {
  const { id, seq, author, to, turn, replyTo, tokens, hop, erased } = event;
  return (
    <div class="event-body">
      {erased !== undefined && <p class="hole">{ERASED}</p>}
      <LongText text={eventWords(event)} lines={16} />
      <dl>
        <dt>From</dt>
        <dd>
          {author.name} <span class="quiet">({author.kind})</span>
          {to.length > 0 && <> to {to.map(nameOf).join(', ')}</>}
        </dd>
        {author.kind === 'user' && canErase() && (
          <>
            <dt />
            <dd>
              <button
                type="button"
                class="button"
                onClick={() => showErasure({ person: author.id, name: author.name })}
              >
                Erase what {author.name} has said…
              </button>
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Copy text={id} />
        </dd>
        {turn !== undefined && (
          <>
            <dt>Turn</dt>
            <dd>
              <Go to={{ turn, event: null, step: null, vs: null }}>{turnLabel(turn)}</Go>
            </dd>
          </>
        )}
        {event.kind === 'turn.started' && (
          <>
            <dt>Answers</dt>
            <dd>
              {event.body.inputs.map((input) => (
                <EventLink key={input} seq={input} />
              ))}
            </dd>
          </>
        )}
        {replyTo !== undefined && (
          <>
            <dt>Reply to</dt>
            <dd>
              <Copy text={replyTo} />
            </dd>
          </>
        )}
        <SeenBy seq={seq} />
        <dt>Tokens</dt>
        <dd>
          ~{whole(tokens)}
          {hop !== undefined && hop > 0 && `, hop ${hop}`}
        </dd>
      </dl>
      <details class="event-raw">
        <summary>JSON as stored</summary>
        <LongText text={JSON.stringify(event, null, 2)} lines={200} />
      </details>
    </div>
  );
}
