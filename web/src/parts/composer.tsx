import { useState } from 'preact/hooks';
import { api } from '../state/api.ts';
import { maySay } from '../state/caller.ts';
import { isLost, whyNoWrite } from '../state/connection.ts';
import { definedAgents } from '../state/defined-agents.ts';
import { unaddressed } from '../state/live.ts';
import { isPast } from '../state/past.ts';
import { conversation } from '../state/route.ts';
import { agentsByNeed, nameOf } from '../state/selection.ts';
import { mode } from '../state/settings.ts';
import '../style/composer.css';
import { Choice } from '../shared/choice.tsx';
import { messageOf } from '../shared/format.ts';

const POLICIES = [
  ['', "If busy: the agent's setting"],
  ['steer', 'If busy: read between two steps'],
  ['queue', 'If busy: read after this turn'],
  ['interrupt', 'If busy: stop this turn'],
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
      setAnswer({ refused: messageOf(error) });
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
      <fieldset class="composer-line" disabled={why !== null}>
        <Choice label="To" of={recipients()} value={to} onChange={setTo} />
        <Choice label="While it is busy" of={POLICIES} value={whileBusy} onChange={setWhileBusy} />
      </fieldset>
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

function recipients(): [string, string][] {
  const agents = agentsByNeed.value.filter(({ condition }) => condition !== 'left');
  const all: [string, string] = [agents.map(({ id }) => id).join(','), 'Everyone'];
  return [
    ['', toNobody()],
    ...agents.map(({ id, name }): [string, string] => [id, `@${name}`]),
    ...(agents.length > 1 ? [all] : []),
  ];
}

/** Who answers a message that names nobody. */
function toNobody(): string {
  const agent = unaddressed.value;
  if (agent === null) return 'To nobody in particular';
  const isDefault = definedAgents.value.some(({ id, isDefault: is }) => id === agent && is);
  return `To @${nameOf(agent)}${isDefault ? ' (default)' : ''}`;
}
