import type { Event } from '../../../../src/events/index.ts';
import { Copy } from '../../shared/copy.tsx';
import { whole } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { turnLabel } from './chosen.ts';
import { EventLink } from './event-link.tsx';
import { eventWords } from './event-text.ts';
import { LongText } from './long-text.tsx';
import { SeenBy } from './seen-by.tsx';

/** All of an event: its text, author and addressees, ids, and the stored JSON. */
export function EventBody({ event }: { event: Event }) {
  const { id, seq, author, to, turn, replyTo, tokens, hop } = event;
  return (
    <div class="event-body">
      <LongText text={eventWords(event)} lines={16} />
      <dl>
        <dt>From</dt>
        <dd>
          {author.name} <span class="quiet">({author.kind})</span>
          {to.length > 0 && <> to {to.map((agent) => `@${agent}`).join(', ')}</>}
        </dd>
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
