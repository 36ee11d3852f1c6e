import type { ConversationId } from '../../../../src/events/index.ts';
import type { TaskView } from '../../../../src/library/projection/model.ts';
import { Due } from '../../shared/due.tsx';
import { clock } from '../../shared/format.ts';
import { memo } from '../../shared/memo.ts';
import { Person } from '../../shared/person.tsx';
import { approvalDraft } from '../../state/approval-draft.ts';
import type { AskItem } from '../../state/reading-items.ts';
import { Decide } from '../decide.tsx';
import { Fields } from './fields.tsx';
import { Markdown } from './markdown.tsx';

interface AskedProps {
  item: AskItem;
  conversation: string;
  /** The task, while it waits for a person and this page may answer it. */
  task: TaskView | null;
}

/** A question or an approval at its place in the conversation: what is asked, what will happen, and the outcome. */
export const Asked = memo(function Asked({ item, conversation, task }: AskedProps) {
  const { author, asks, end, at, seq } = item;
  const isOpen = end === null;
  return (
    <section
      class={`asked asked-${isOpen ? 'open' : 'over'}`}
      aria-label={isOpen ? 'Waiting for you' : 'Decided'}
      data-ask={seq}
    >
      <p class="asked-head">
        <Person author={author} />
        <span>
          <b>
            <bdi>{author.name}</bdi>
          </b>{' '}
          {asks.what === 'question' ? (
            'asks'
          ) : (
            <>
              wants to run <b>{asks.tool}</b>
            </>
          )}
        </span>
        <span class="spring" />
        {isOpen && task && <Due at={task.deadline} />}
        <span class="words-time">{clock(at).slice(0, 5)}</span>
      </p>
      <div dir="auto">
        {asks.what === 'question' ? (
          <Markdown text={asks.text} />
        ) : (
          !isEdited(conversation, task) && <Fields args={asks.args} />
        )}
      </div>
      {end !== null && (
        <p class={`asked-end asked-${end.outcome}`}>
          <b>{end.outcome}</b> by <bdi>{end.by}</bdi>
          {end.text !== '' && <span dir="auto">: {end.text}</span>}
        </p>
      )}
      {isOpen && task && <Decide task={task} conversation={conversation as ConversationId} />}
      {isOpen && !task && <p class="quiet">It waits for an answer.</p>}
    </section>
  );
});

/** Its arguments are in the editor, and are not shown twice. */
function isEdited(conversation: string, task: TaskView | null): boolean {
  return task !== null && approvalDraft(conversation as ConversationId, task.id).args.value.state === 'open';
}
