import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Command } from '../../../src/events/index.ts';
import { mayGive } from '../state/caller.ts';
import { isLost, whyNoWrite } from '../state/connection.ts';
import { mode } from '../state/settings.ts';
import { CommandButton } from './command-button.tsx';

interface AskFirstProps {
  command: Command;
  label: string;
  class?: string;
  /** A question that tells what is about to happen. */
  question: string;
  /** What it changes, and how that can be undone. */
  effect: string;
}

/**
 * A command that acts only after a confirmation. The question opens away from the button, so that a double click cannot answer it.
 */
export function AskFirst({ command, label, class: name = '', question, effect }: AskFirstProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // Synchronous, because a key pressed in the next frame is meant for the question.
  useLayoutEffect(() => {
    if (isOpen) box.current?.focus();
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  if (!mayGive(command.command)) return null;
  return (
    <span class="ask-first" onKeyDown={onKey}>
      <button
        type="button"
        class={`button ${name}`}
        ref={button}
        disabled={mode === 'read-only'}
        aria-disabled={isLost.value ? 'true' : undefined}
        title={whyNoWrite.value ?? undefined}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        // The second click of a double click is ignored.
        onClick={({ detail }) => detail < 2 && !isLost.peek() && setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <div
          class="ask-first-box"
          role="alertdialog"
          aria-labelledby={`${id}-question`}
          aria-describedby={`${id}-effect`}
          tabIndex={-1}
          ref={box}
        >
          <p id={`${id}-question`}>
            <b>{question}</b>
          </p>
          <p id={`${id}-effect`}>{effect}</p>
          <p class="ask-first-acts">
            <CommandButton
              command={command}
              label={label}
              class="button-main"
              onAccepted={() => setOpen(false)}
            />
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
          </p>
        </div>
      )}
    </span>
  );

  function onKey(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || !isOpen) return;
    event.preventDefault();
    event.stopPropagation();
    close();
  }
}
