import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Command, ConversationId, TurnId } from '../../../src/events/index.ts';
import { Due } from '../shared/due.tsx';
import { age, messageOf } from '../shared/format.ts';
import { mayGive } from '../state/caller.ts';
import type { InboxLine } from '../../../src/http/inbox.ts';
import { api } from '../state/api.ts';
import type { Cause } from '../state/causes.ts';
import { whyNoWrite } from '../state/connection.ts';
import { refreshInbox } from '../state/inbox.ts';
import { InboxRow } from './inbox-row.tsx';

/** Number of lines with one cause from which they are grouped. */
const FEW = 3;

/** Keys of the expanded groups. Not in their components, which go with the list: a reader who comes back finds it as it was. */
const expanded = signal<ReadonlySet<string>>(new Set());

/** An expanded group stays one however few lines it has left, so that deciding one line moves no other. */
export const isGroup = ({ key, lines }: Cause) => lines.length >= FEW || expanded.value.has(key);

/** Conversations with the same cause, in one line with the commands for all of them. Expanded, each has its own line. */
export function CauseGroup({ cause: { key, words, detail, lines } }: { cause: Cause }) {
  const since = Math.min(...lines.map((line) => line.since));
  const isOpen = expanded.value.has(key);
  const toggle = () => {
    const others = [...expanded.peek()].filter((each) => each !== key);
    expanded.value = new Set(isOpen ? others : [...others, key]);
  };
  return (
    <li class="cause">
      <div class="cause-head">
        <button type="button" class="cause-open" aria-expanded={isOpen} onClick={toggle}>
          <b>{words}</b> {detail !== '' && <span class="cause-detail clip">{detail}</span>}
          <span class="quiet"> for {age(Date.now() - since)}</span>{' '}
          <Due at={lines[0]?.asks?.deadline ?? null} />
        </button>
        <Acts lines={lines} />
      </div>
      {isOpen && (
        <ul>
          {lines.map((line) => (
            <InboxRow key={line.id} line={line} />
          ))}
        </ul>
      )}
    </li>
  );
}

interface Act {
  label: string;
  shortcut: string;
  /** Null for a line to which the command does not apply. */
  commandFor: (line: InboxLine) => Command | null;
}

const RETRY: Act = {
  label: 'Retry',
  shortcut: 'r',
  commandFor: ({ failure }) => (failure?.turn ? { command: 'retry', turn: failure.turn as TurnId } : null),
};

const decide = (approved: boolean): Act => ({
  label: approved ? 'Approve' : 'Deny',
  shortcut: approved ? 'a' : 'd',
  commandFor: ({ id, asks, may }) =>
    asks?.decide && may?.decide === true
      ? { command: 'decide', conversation: id as ConversationId, ...asks.decide, approved }
      : null,
});

const APPROVE = decide(true);
const DENY = decide(false);

/** Runs a command for all lines, after a question that gives their number. Commands that are not sent yet can be stopped. */
function Acts({ lines }: { lines: readonly InboxLine[] }) {
  const [asked, setAsked] = useState<Act | null>(null);
  const [told, setTold] = useState('');
  const [isRunning, setRunning] = useState(false);
  const isStopped = useRef(false);
  const sure = useRef<HTMLButtonElement>(null);
  useEffect(() => sure.current?.focus(), [asked]);
  const acts = lines[0]?.state === 'failed' ? [RETRY] : [APPROVE, DENY];
  const commandsOf = ({ commandFor }: Act) => lines.flatMap((line) => commandFor(line) ?? []);
  const run = async (act: Act) => {
    setAsked(null);
    setRunning(true);
    isStopped.current = false;
    const commands = commandsOf(act);
    const refused: string[] = [];
    let sent = 0;
    for (const command of commands) {
      if (isStopped.current) break;
      sent += 1;
      setTold(`${sent} of ${commands.length} …`);
      await api.command(command).catch((error: unknown) => refused.push(messageOf(error)));
    }
    const ended = sent < commands.length ? `Stopped after ${sent} of ${commands.length}.` : 'Done.';
    setTold(refused.length === 0 ? ended : `${refused.length} were refused: ${refused[0]}`);
    setRunning(false);
    refreshInbox();
  };
  const offered = acts.filter((act) => {
    const [first] = commandsOf(act);
    return first !== undefined && mayGive(first.command);
  });
  return (
    <span class="cause-acts">
      {isRunning ? (
        <button type="button" class="button" onClick={() => (isStopped.current = true)}>
          Stop
        </button>
      ) : asked ? (
        <>
          <b>
            {asked.label} {commandsOf(asked).length}?
          </b>
          <button type="button" class="button button-main" ref={sure} onClick={() => void run(asked)}>
            {asked.label} {commandsOf(asked).length}
          </button>
          <button type="button" class="button" onClick={() => setAsked(null)}>
            Cancel
          </button>
        </>
      ) : (
        offered.map((act) => (
          <button
            key={act.label}
            type="button"
            class="button"
            disabled={whyNoWrite.value !== null}
            aria-keyshortcuts={act.shortcut}
            onClick={() => setAsked(act)}
          >
            {act.label} all…
          </button>
        ))
      )}
      <span role="status" class="quiet">
        {told}
      </span>
    </span>
  );
}
