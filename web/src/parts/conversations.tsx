import type { Inbox, InboxLine } from '../../../src/http/inbox.ts';
import { age, day, plural, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { memo } from '../shared/memo.ts';
import { StateIcon } from '../shared/standing.tsx';
import { conversations, inbox } from '../state/inbox.ts';
import { conversation } from '../state/route.ts';

const MANY = 50;

function countOf(answer: Inbox | null): number {
  return Object.values(answer?.counts ?? {}).reduce((sum, count) => sum + count, 0);
}

/** The conversations that most need attention. */
export function Conversations() {
  const all = conversations.value;
  const id = conversation.value;
  if (!all) return null;
  return (
    <section aria-label="Conversations">
      <h2>
        Conversations <span class="quiet">{whole(countOf(inbox.value))}</span>
      </h2>
      <ul class="who-list">
        {all.slice(0, MANY).map((line) => (
          <ConversationLine key={line.id} line={line} isCurrent={line.id === id} />
        ))}
      </ul>
      {countOf(inbox.value) > MANY && (
        <p class="who-more">
          <Go to={{ conversation: null }}>All conversations</Go>
        </p>
      )}
    </section>
  );
}

const ConversationLine = memo(function ConversationLine({
  line,
  isCurrent,
}: {
  line: InboxLine;
  isCurrent: boolean;
}) {
  const { id, state, head, at, about, parent } = line;
  return (
    <li>
      <Go
        class="who-conversation"
        to={{ conversation: id }}
        isCurrent={isCurrent}
        title={[id, parent && `thread of ${parent}`, plural(head, 'event'), day(at), about?.text]
          .filter(Boolean)
          .join(', ')}
      >
        <StateIcon of={state} />
        <bdi class="who-name clip">{about?.text || id}</bdi>
        {about?.text && <span class="who-state clip">{id}</span>}
        <span class="who-age">{age(Date.now() - at)}</span>
      </Go>
    </li>
  );
});
