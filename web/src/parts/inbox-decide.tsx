import { useRef } from 'preact/hooks';
import type { ConversationId } from '../../../src/events/index.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { useStillness } from '../shared/stillness.ts';
import type { InboxLine } from '../state/api.ts';
import { whoMay } from '../state/may-decide.ts';
import { refreshInbox } from '../state/inbox.ts';

/**
 * The decision of an approval on its line. Only of a call that is shown whole; any other is read in its conversation first.
 * Its key is the request: the next one in the same place has a place of its own, which has not stood still yet.
 */
export function InboxDecide({ line }: { line: InboxLine }) {
  const { asks, may } = line;
  if (!asks?.decide || !may) return null;
  if (may.decide) return <Buttons line={line} />;
  return (
    <div class="inbox-decide">
      <code>{asks.text}</code>
      <span class="quiet">{whoMay(may.by)}</span>
    </div>
  );
}

function Buttons({ line: { id, asks } }: { line: InboxLine }) {
  const box = useRef<HTMLDivElement>(null);
  const stillness = useStillness(box);
  if (!asks?.decide) return null;
  const decide = { command: 'decide' as const, conversation: id as ConversationId, ...asks.decide };
  return (
    <div class="inbox-decide" ref={box} data-request={asks.decide.request}>
      <code>{asks.text}</code>
      <CommandButton
        class="button-run"
        command={{ ...decide, approved: true }}
        label="Approve"
        stillness={stillness}
        onAccepted={refreshInbox}
      />
      <CommandButton
        command={{ ...decide, approved: false }}
        label="Deny"
        stillness={stillness}
        onAccepted={refreshInbox}
      />
    </div>
  );
}
