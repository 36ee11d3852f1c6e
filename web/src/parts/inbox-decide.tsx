import { useRef } from 'preact/hooks';
import type { ConversationId } from '../../../src/events/index.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { useStillness } from '../shared/stillness.ts';
import type { InboxLine } from '../../../src/http/inbox.ts';
import { whoMay } from '../state/may-decide.ts';
import { refreshInbox } from '../state/inbox.ts';

/**
 * The decision of an approval, on its line. Only for a call that is shown in full; any other must first be read in its
 * conversation. Keyed by the request, so that the next request in the same place must again stand still before a click counts.
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
        shortcut="a"
        stillness={stillness}
        onAccepted={refreshInbox}
      />
      <CommandButton
        command={{ ...decide, approved: false }}
        label="Deny"
        shortcut="d"
        stillness={stillness}
        onAccepted={refreshInbox}
      />
    </div>
  );
}
