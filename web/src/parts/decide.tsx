import { computed } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { TaskView } from '../../../src/library/projection/model.ts';
import type { ConversationId } from '../../../src/events/index.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { later } from '../shared/later.tsx';
import { useStillness } from '../shared/stillness.ts';
import { approvalDraft, decidedArgs, openArgs } from '../state/approval-draft.ts';
import { shown } from '../state/live.ts';
import { useMayDecide } from '../state/may-decide.ts';
import { mode } from '../state/settings.ts';

const ArgsEditor = later(async () => (await import('./args-editor.tsx')).ArgsEditor);

/** Facts on which the right to decide also depends: the open tasks, and whether the conversation is archived. */
const asked = computed(() => {
  const open = shown.value?.tasks.filter(({ outcome }) => outcome === null) ?? [];
  return `${shown.value?.archived} ${open.map(({ seq }) => seq).join()}`;
});

interface DecideProps {
  task: TaskView;
  conversation: ConversationId;
}

/**
 * For people who may answer a question or decide an approval: the possible answers. For others: who may. A click counts only
 * after its place has stood still; see `useStillness`.
 */
export function Decide({ task, conversation }: DecideProps) {
  const may = useMayDecide(conversation, task.id, asked.value);
  if (may !== true) return <p class="quiet task-acts">{may}</p>;
  return task.kind === 'question' ? (
    <Answer task={task} conversation={conversation} />
  ) : (
    <Decision task={task} conversation={conversation} />
  );
}

function Answer({ task: { id, choices }, conversation }: DecideProps) {
  const draft = approvalDraft(conversation, id).note;
  const content = draft.value;
  const box = useRef<HTMLDivElement>(null);
  const stillness = useStillness(box);
  return (
    <div class="task-acts" ref={box}>
      {choices.map((choice) => (
        <CommandButton
          key={choice}
          command={{ command: 'answer', conversation, question: id, content: choice }}
          label={choice}
          stillness={stillness}
        />
      ))}
      <input
        type="text"
        aria-label="Answer"
        placeholder="Answer in your own words"
        value={content}
        disabled={mode === 'read-only'}
        onInput={(event) => (draft.value = event.currentTarget.value)}
      />
      {content.trim() !== '' && (
        <CommandButton
          command={{ command: 'answer', conversation, question: id, content }}
          label="Answer"
          stillness={stillness}
        />
      )}
    </div>
  );
}

function Decision({ task: { id, seq, argsHash, text }, conversation }: DecideProps) {
  const box = useRef<HTMLDivElement>(null);
  const stillness = useStillness(box);
  const draft = approvalDraft(conversation, id);
  const [note, args] = [draft.note.value, draft.args.value];
  const decided = decidedArgs(args);
  const isOpen = args.state !== 'closed';
  const decide = {
    command: 'decide' as const,
    conversation,
    request: id,
    ...(note.trim() !== '' && { note }),
    ...(argsHash !== null && { argsHash }),
  };
  const toggle = () => {
    if (isOpen) draft.args.value = { state: 'closed' };
    else void openArgs(draft, { conversation, request: id, seq });
  };
  return (
    <>
      {isOpen && <ArgsEditor draft={draft} tool={text.split(' ', 1)[0] ?? ''} />}
      <div class="task-acts" ref={box} data-request={id}>
        <CommandButton
          class="button-run"
          command={{ ...decide, approved: true, ...(decided.state === 'changed' && { args: decided.args }) }}
          label={decided.state === 'changed' ? 'Approve with changes' : 'Approve'}
          isOff={decided.state === 'unclear'}
          stillness={stillness}
        />
        <CommandButton command={{ ...decide, approved: false }} label="Deny" stillness={stillness} />
        <button
          type="button"
          class="button"
          aria-expanded={isOpen}
          disabled={mode === 'read-only'}
          onClick={toggle}
        >
          {isOpen ? 'Keep the arguments' : 'Change the arguments'}
        </button>
        <input
          type="text"
          aria-label="Note to the agent"
          placeholder="Note to the agent"
          value={note}
          disabled={mode === 'read-only'}
          onInput={(event) => (draft.note.value = event.currentTarget.value)}
        />
      </div>
    </>
  );
}
