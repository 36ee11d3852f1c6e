import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { dialog } from '../state/dialogs.ts';
import '../style/dialog.css';

/** Over the page; the browser keeps the focus in it and gives it back. */
export function Dialog({ label, children }: { label: string; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  // At once: what is typed meanwhile would be lost.
  useLayoutEffect(() => {
    element.current?.showModal();
  }, []);
  const mine = useRef(dialog.peek()).current;
  // The browser says it some time after it has closed it: by then another may lie over the page.
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
