import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { dialog } from '../state/dialogs.ts';
import '../style/dialog.css';

/** A modal dialog. The browser keeps the focus inside and restores it afterwards. */
export function Dialog({ label, children }: { label: string; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // Runs synchronously, because keys typed in between would be lost.
  useLayoutEffect(() => {
    element.current?.showModal();
  }, []);
  const mine = useRef(dialog.peek()).current;
  // The browser reports the close with a delay; by then another dialog may be open.
  const close = () => {
    if (dialog.peek() === mine) dialog.value = null;
  };
  return (
    <dialog
      class="dialog"
      ref={element}
      aria-label={label}
      onCancel={close}
      onClose={close}
      onClick={(event) => {
        if (event.target === element.current) close();
      }}
    >
      {children}
    </dialog>
  );
}
