import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';

/**
 * A lazy component: fetched when first shown, or shortly before, so that the first screen does not wait for it. It
 * comes from the same server as the page.
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
          This part of the page did not load. The server may have restarted with another version: load the
          page again.
        </p>
      );
    return <Part {...props} />;
  };
}

const waiting: (() => void)[] = [];

/** Fetches the remaining parts once the first view is shown. */
export function fetchTheRest(): void {
  const idle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 500));
  // Waits for a frame first: the browser may be idle before it has drawn anything.
  requestAnimationFrame(() => idle(() => waiting.splice(0).forEach((ask) => ask())));
}
