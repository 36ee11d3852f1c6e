import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';

/** A part of the page that is loaded from a file of its own. */
export type LaterPart<P> = ComponentType<P> & { fetch(): void };

/**
 * A lazy component: fetched when it is first shown, or by `fetch` when it is likely to be shown next. It comes from the same
 * server as the page. Until it is loaded, `meanwhile` is shown in its place.
 */
export function later<P extends object>(
  load: () => Promise<ComponentType<P>>,
  Meanwhile: ComponentType<P> | null = null,
): LaterPart<P> {
  const part = signal<ComponentType<P> | Error | null>(null);
  let isAsked = false;
  const fetch = () => {
    if (isAsked) return;
    isAsked = true;
    load().then(
      (loaded) => (part.value = loaded),
      (error: unknown) => (part.value = error instanceof Error ? error : new Error(String(error))),
    );
  };
  function Later(props: P) {
    const Part = part.value;
    fetch();
    if (Part === null) return Meanwhile && <Meanwhile {...props} />;
    if (Part instanceof Error)
      return (
        <p class="later-failed" role="alert">
          This part of the page did not load. The server may have restarted with another version: load the
          page again.
        </p>
      );
    return <Part {...props} />;
  }
  return Object.assign(Later, { fetch });
}

/** Fetches parts once the pointer or the focus is on an element that leads to them. */
export function fetchOnApproach(selector: string, parts: readonly { fetch(): void }[]): void {
  const approach = ({ target }: Event) => {
    if (target instanceof Element && target.closest(selector)) for (const part of parts) part.fetch();
  };
  addEventListener('pointerover', approach, { passive: true });
  addEventListener('focusin', approach);
}
