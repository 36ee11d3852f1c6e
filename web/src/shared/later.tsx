import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';

/**
 * A part of the page that is fetched when it is first shown, or a moment before: what is on the screen first should not
 * wait for it. It comes from the same server as the page.
 */
export function later<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const part = signal<ComponentType<P> | Error | null>(null);
  let isAsked = false;
  const ask = () => {
    if (isAsked) return;
    isAsked = true;
    load().then(
      (loaded) => (part.value = loaded),
      (error: unknown) => (part.value = error instanceof Error ? error : new Error(String(error))),
    );
  };
  waiting.push(ask);
  return function Later(props: P) {
    const Part = part.value;
    ask();
    if (Part === null) return null;
    if (Part instanceof Error)
      return (
        <p class="later-failed" role="alert">
          This part of the page did not load: the server was perhaps started anew with another version. Load
          the page again.
        </p>
      );
    return <Part {...props} />;
  };
}

const waiting: (() => void)[] = [];

/** Fetches what is still to come, once the first view stands. */
export function fetchTheRest(): void {
  const idle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 500));
  // The first frame may come after much else that is idle.
  requestAnimationFrame(() => idle(() => waiting.splice(0).forEach((ask) => ask())));
}
