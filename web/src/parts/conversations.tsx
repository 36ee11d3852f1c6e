import type { OverviewLine } from '../state/api.ts';
import { Condition } from '../shared/condition.tsx';
import { day, plural, short } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { memo } from '../shared/memo.ts';
import { conversations } from '../state/overview.ts';
import { conversation } from '../state/route.ts';

const MANY = 50;

/** The conversations, newest first. */
export function Conversations() {
  const all = conversations.value;
  const id = conversation.value;
  if (!all) return null;
  return (
    <section aria-label="Conversations">
      <h2>
        Conversations <span class="quiet">{all.length}</span>
      </h2>
      <ul class="who-list">
        {all.slice(0, MANY).map((line) => (
          <ConversationLine key={line.id} line={line} isCurrent={line.id === id} />
        ))}
      </ul>
      {all.length > MANY && (
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
  line: OverviewLine;
  isCurrent: boolean;
}) {
  const { id, condition, head, compactions, at } = line;
  return (
    <li>
      <Go
        class="who-conversation"
        to={{ conversation: id }}
        isCurrent={isCurrent}
        title={`${id}, ${day(at)}`}
      >
        <Condition of={condition} isTerse />
        <span class="clip">{id}</span>
        {compactions > 0 && (
          <span class="quiet" title={plural(compactions, 'compaction')}>
            ⤓{compactions}
            <span class="unseen"> compactions</span>
          </span>
        )}
        <span class="quiet" title={plural(head, 'event')}>
          {short(head)}
        </span>
      </Go>
    </li>
  );
});
