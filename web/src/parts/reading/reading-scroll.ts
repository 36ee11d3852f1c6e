import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ReadingWindow } from '../../state/reading-window.ts';

/** Distance from an edge at which the next part is loaded, px. */
const NEAR_PX = 600;
/** Distance from the end that still counts as the end, px. */
const END_PX = 40;

interface Place {
  event: number | null;
  /** Seq of the item that shows it, if it is loaded. */
  shown: number | null;
}

interface ReadingScroll {
  box: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  onScroll: () => void;
  toEnd: () => void;
}

/**
 * The scroll position of a conversation. A reader at the end stays at the end while the conversation grows. A reader elsewhere
 * keeps the current line, whatever is added above or below. An event in the address is scrolled into view.
 */
export function useReadingScroll(part: ReadingWindow, { event, shown }: Place): ReadingScroll {
  const box = useRef<HTMLDivElement>(null);
  const isPinned = useRef(event === null);
  const [isAtEnd, setAtEnd] = useState(true);
  const asked = useRef<number | null>(null);
  const found = useRef<number | null>(null);
  const before = useRef({ first: 0, height: 0, top: 0 });
  const events = part.events.value;
  const first = events[0]?.seq ?? 0;

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const grewAbove = before.current.first > first && first > 0;
    const isHeld = isPinned.current && !part.hasLater();
    if (grewAbove && !isHeld) element.scrollTop += element.scrollHeight - before.current.height;
    before.current.first = first;
  }, [events]);

  // The height also changes through streamed text, images, and items that are drawn for the first time. The observer is told
  // between layout and drawing, where heights cost nothing.
  useLayoutEffect(() => {
    const column = box.current?.firstElementChild;
    if (!column) return;
    const observer = new ResizeObserver(() => {
      const element = box.current;
      if (!element) return;
      if (isPinned.current && !part.hasLater()) element.scrollTop = element.scrollHeight;
      Object.assign(before.current, { height: element.scrollHeight, top: element.scrollTop });
      setAtEnd(isEnd(element));
    });
    observer.observe(column);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [part]);

  useEffect(() => {
    // Once the event was found, the reader may scroll away from it.
    if (event === null || events.length === 0 || found.current === event) return;
    if (event < first || event > (events.at(-1)?.seq ?? 0)) {
      if (asked.current !== event) void part.seek(event);
      asked.current = event;
      return;
    }
    const item = box.current?.querySelector<HTMLElement>(`[data-seq="${shown}"]`);
    if (!item || !box.current) return;
    // An event chosen within the page stays where it is if it is visible. One from the address is scrolled to the middle.
    const isChosen = found.current !== null;
    found.current = event;
    if (isChosen && isVisible(item, box.current)) return;
    isPinned.current = false;
    item.scrollIntoView({ block: 'center' });
  }, [event, shown, events]);

  function onScroll(): void {
    const element = box.current;
    if (!element) return;
    // What grew since the last look moves the end away; only a reader moves the place.
    const hasMovedUp = element.scrollTop < before.current.top - 1;
    isPinned.current = isEnd(element) || (isPinned.current && !hasMovedUp);
    before.current.top = element.scrollTop;
    setAtEnd(isPinned.current);
    if (element.scrollTop < NEAR_PX && part.hasEarlier()) void part.earlier();
    else if (below(element) < NEAR_PX && part.hasLater()) void part.later();
  }

  function isEnd(element: HTMLElement): boolean {
    return below(element) <= END_PX && !part.hasLater();
  }

  function toEnd(): void {
    isPinned.current = true;
    setAtEnd(true);
    if (part.hasLater()) void part.seek(null);
    else if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }

  return { box, isAtEnd, onScroll, toEnd };
}

function below({ scrollHeight, clientHeight, scrollTop }: HTMLElement): number {
  return scrollHeight - clientHeight - scrollTop;
}

function isVisible(item: HTMLElement, box: HTMLElement): boolean {
  const [inner, outer] = [item.getBoundingClientRect(), box.getBoundingClientRect()];
  return inner.top >= outer.top && Math.min(inner.bottom, inner.top + 120) <= outer.bottom;
}
