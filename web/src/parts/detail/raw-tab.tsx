import { Copy } from '../../shared/copy.tsx';
import { route } from '../../state/route.ts';
import { base } from '../../state/settings.ts';
import { chosen } from './chosen.ts';
import { Loaded } from './loaded.tsx';
import { LongText } from './long-text.tsx';
import { useEvent, useTrace } from './turn-answers.ts';

/** What the server stores and answers, unchanged. */
export function RawTab() {
  const { event } = route.value;
  const { turnId } = chosen.value;
  return (
    <>
      {event !== null && <RawEvent seq={event} key={event} />}
      {turnId !== null && <RawTurn turn={turnId} key={turnId} />}
      {event === null && turnId === null && <p class="detail-note">Choose a turn or an event.</p>}
    </>
  );
}

function RawEvent({ seq }: { seq: number }) {
  const conversation = route.value.conversation ?? '';
  const path = `api/conversations/${encodeURIComponent(conversation)}/events?after=${seq - 1}&limit=1`;
  return (
    <section class="raw" aria-label={`Event ${seq} as JSON`}>
      <h3>
        Event {seq} <Curl path={path} />
      </h3>
      <Loaded of={useEvent(seq)}>
        {(event) =>
          event ? <Json value={event} lines={60} /> : <p class="detail-note">There is no event {seq} here.</p>
        }
      </Loaded>
    </section>
  );
}

function RawTurn({ turn }: { turn: string }) {
  const path = `api/turns/${encodeURIComponent(turn)}`;
  return (
    <Loaded of={useTrace(turn)}>
      {({ prompts, events, ...rest }) => (
        <>
          <section class="raw" aria-label="Trace">
            <h3>
              Trace <Curl path={path} />
            </h3>
            <Json value={{ ...rest, events: events.map(({ seq }) => seq) }} lines={30} />
          </section>
          {prompts.map((receipt) => (
            <section class="raw" key={receipt.step} aria-label={`Model call ${receipt.step}`}>
              <h3>
                Model call {receipt.step} <Curl path={`${path}/prompt?step=${receipt.step}`} />
              </h3>
              <Json value={receipt} lines={16} />
            </section>
          ))}
        </>
      )}
    </Loaded>
  );
}

function Json({ value, lines }: { value: unknown; lines: number }) {
  return <LongText text={JSON.stringify(value, null, 2)} lines={lines} />;
}

/** The command omits the token, which the reader must add. */
function Curl({ path }: { path: string }) {
  return <Copy text={`curl '${location.origin}${base}${path}'`} label="copy as curl" />;
}
