import { useEffect, useRef, useState } from 'preact/hooks';
import type { Command, Event } from '../../../src/events/index.ts';
import { api } from '../state/api.ts';
import { mayGive } from '../state/caller.ts';
import { isLost, whyNoWrite } from '../state/connection.ts';
import { live } from '../state/live.ts';
import { refusal } from '../state/refusal.ts';
import { keepSelection } from '../state/selection.ts';
import { route } from '../state/route.ts';
import { mode } from '../state/settings.ts';
import type { Stillness } from './stillness.ts';
import { messageOf } from './format.ts';

type Asked =
  | { state: 'ready' }
  | { state: 'sent' }
  /** The command was accepted; its effect appears with the event. */
  | { state: 'accepted'; seq: number }
  | { state: 'refused'; message: string };

interface CommandButtonProps {
  command: Command;
  label: string;
  class?: string;
  /** What it does, where its label does not say it all. */
  hint?: string;
  /** The command is incomplete, so the button does nothing. */
  isOff?: boolean;
  /** Clicks count only while the button stands still. For commands that cannot be undone. */
  stillness?: Stillness;
  /** The key that presses it while its row has the focus. */
  shortcut?: string;
  /** Uses the server's answer, such as the address of a fork. */
  onAccepted?: (answer: { event: Event; seq: number }) => void;
}

/** Sends a command and shows the answer. The page itself changes only when the event arrives. */
export function CommandButton(props: CommandButtonProps) {
  const { command, label, class: name = '', hint, isOff, stillness, shortcut, onAccepted } = props;
  const [asked, setAsked] = useState<Asked>({ state: 'ready' });
  const isUnderway =
    asked.state === 'sent' || (asked.state === 'accepted' && asked.seq > (live.value?.seq ?? 0));
  /** The refusal, and the view in which it occurred. */
  const refused = useRef<{ message: string; view: string } | null>(null);
  const isGone = useRef(false);
  // A refusal often means that the command is no longer legal, which removes its button. The reason must stay visible longer.
  useEffect(
    () => () => {
      isGone.current = true;
      if (refused.current?.view === viewOf()) refusal.value = refused.current.message;
    },
    [],
  );
  const ask = async (isPointer: boolean) => {
    if (isUnderway || whyNoWrite.peek() !== null) return;
    if (isPointer && stillness && !stillness.check()) {
      setAsked({ state: 'refused', message: 'This has just moved. Click again to go on.' });
      return;
    }
    keepSelection();
    refused.current = null;
    refusal.value = null;
    setAsked({ state: 'sent' });
    try {
      const answer = await api.command(command);
      setAsked({ state: 'accepted', seq: answer.seq });
      onAccepted?.(answer);
    } catch (error) {
      const message = messageOf(error);
      if (isGone.current) refusal.value = message;
      refused.current = { message, view: viewOf() };
      setAsked({ state: 'refused', message });
    }
  };
  if (!mayGive(command.command)) return null;
  return (
    <span class="command">
      <button
        type="button"
        class={`button ${name}`}
        disabled={isOff || mode === 'read-only'}
        // Not `disabled`, because a browser drops the keys pressed while the focus is on a newly disabled element.
        aria-disabled={isUnderway || isLost.value || stillness?.isStill === false ? 'true' : undefined}
        title={whyNoWrite.value ?? hint}
        aria-keyshortcuts={shortcut}
        // A key acts on the focused element wherever that has moved, so it needs no stillness, unlike a pointer's click.
        onClick={({ detail }) => void ask(detail > 0)}
      >
        {label}
      </button>
      <span class="command-answer" role="status">
        {asked.state === 'refused' ? asked.message : ''}
      </span>
    </span>
  );
}

/** The refusal disappears when the user navigates away. */
function viewOf(): string {
  const { conversation, agent, turn, tab, at } = route.peek();
  return JSON.stringify([conversation, agent, turn, tab, at]);
}
