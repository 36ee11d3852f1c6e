import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Time that a place must stand still before a click on it counts, ms. */
export const STILL_MS = 600;
const LOOK_MS = 100;
/** Pixels that do not count as movement. */
const SLACK_PX = 2;

/**
 * Whether a place has stood still long enough that a person who clicks on it has seen what is there. Something that has just
 * appeared, or that moved under the pointer because something above it disappeared, has not.
 */
export interface Stillness {
  /** At the last look, for drawing. */
  isStill: boolean;
  /** Now, for handling a click. */
  check(): boolean;
}

export function useStillness(box: RefObject<HTMLElement | null>): Stillness {
  const [isStill, setStill] = useState(false);
  const place = useRef({ top: Number.NaN, left: Number.NaN, since: 0 });
  const check = () => {
    const element = box.current;
    if (!element) return false;
    const { top, left } = element.getBoundingClientRect();
    const before = place.current;
    const hasMoved = !(Math.abs(top - before.top) <= SLACK_PX && Math.abs(left - before.left) <= SLACK_PX);
    if (hasMoved) place.current = { top, left, since: performance.now() };
    return performance.now() - place.current.since >= STILL_MS;
  };
  const look = () => setStill(check());
  // After each frame, because a change of this place moves it at once. Before it, a look would compute the layout once more.
  useEffect(look);
  useEffect(() => {
    const timer = setInterval(look, LOOK_MS);
    addEventListener('scroll', look, { capture: true, passive: true });
    return () => {
      clearInterval(timer);
      removeEventListener('scroll', look, { capture: true });
    };
  }, []);
  return { isStill, check };
}
