import { useState } from 'preact/hooks';
import { api } from '../state/api.ts';
import { maySay } from '../state/caller.ts';
import { isLost, whyNoWrite } from '../state/connection.ts';
import { isPast } from '../state/past.ts';
import { conversation } from '../state/route.ts';
import { agentsByNeed } from '../state/selection.ts';
import { mode } from '../state/settings.ts';
import '../style/composer.css';

const POLICIES = [
  ['', "the agent's setting"],
  ['steer', 'steer: read between two steps'],
  ['queue', 'queue: read after this turn'],
  ['interrupt', 'interrupt: stop this turn'],
] as const;

/** What was begun in each conversation: whoever looks at another one comes back to it. */
const drafts = new Map<string | null, string>();

/** Sends a message to agents. The message appears in the list once it is in the log. */
export function Composer() {
  const id = conversation.value;
  const [content, setText] = useState(drafts.get(id) ?? '');
  const setContent = (text: string) => {
    drafts.set(id, text);
    setText(text);
  };
  const [to, setTo] = useState('');
  const [whileBusy, setWhileBusy] = useState('');
  const [answer, setAnswer] = useState<'sending' | 'sent' | { refused: string }>('sent');
  const why = isPast.value
    ? 'Messages cannot be sent in the past'
    : mode === 'read-only'
      ? 'This server is read-only'
      : maySay('write')
        ? null
        : 'Your key may not write';
  const send = async () => {
    if (id === null || content.trim() === '' || why !== null || isLost.peek()) return;
    setAnswer('sending');
    try {
      await api.send(id, {
        content,
        ...(to !== '' && { to: to.split(',') }),
        ...(whileBusy !== '' && { whileBusy }),
      });
      setContent('');
      setAnswer('sent');
    } catch (error) {
      setAnswer({ refused: error instanceof Error ? error.message : String(error) });
    }
  };
  return (
    <form
      class="composer"
      aria-label="Send a message"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class="composer-line">
        <Recipients value={to} isOff={why !== null} onChange={setTo} />
        <BusyPolicies value={whileBusy} isOff={why !== null} onChange={setWhileBusy} />
      </div>
      <div class="composer-line">
        <textarea
          dir="auto"
          id="composer"
          rows={1}
          aria-label="Message"
          title="Enter sends, Shift+Enter begins a new line"
          placeholder={why ?? 'Message …  Enter sends'}
          value={content}
          disabled={why !== null}
          onInput={(event) => setContent(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void send();
          }}
        />
        <button
          type="submit"
          class="button"
          disabled={why !== null || isLost.value || content.trim() === '' || answer === 'sending'}
          title={whyNoWrite.value ?? undefined}
        >
          Send
        </button>
      </div>
      <p class="composer-answer problem" role="status">
        {typeof answer === 'object' ? answer.refused : ''}
      </p>
    </form>
  );
}

interface ChoiceProps {
  value: string;
  isOff: boolean;
  onChange: (value: string) => void;
}

function Recipients({ value, isOff, onChange }: ChoiceProps) {
  const agents = agentsByNeed.value.filter(({ condition }) => condition !== 'left');
  return (
    <select
      aria-label="To"
      value={value}
      disabled={isOff}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">To the default agent</option>
      {agents.map(({ id, name }) => (
        <option key={id} value={id}>
          @{name}
        </option>
      ))}
      {agents.length > 1 && <option value={agents.map(({ id }) => id).join(',')}>Everyone</option>}
    </select>
  );
}

function BusyPolicies({ value, isOff, onChange }: ChoiceProps) {
  return (
    <select
      aria-label="While it is busy"
      value={value}
      disabled={isOff}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {POLICIES.map(([policy, label]) => (
        <option key={policy} value={policy}>
          If busy: {label}
        </option>
      ))}
    </select>
  );
}
