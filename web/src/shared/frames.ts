import { useEffect, useState } from 'preact/hooks';

/**
 * How many frames have been drawn since a part was first shown, up to `most`. What is out of view or read second waits for a
 * later frame, so that what is read first is on the screen sooner and no task is long.
 */
export function useFrames(most: number): number {
  const [drawn, setDrawn] = useState(0);
  useEffect(() => {
    if (drawn < most) setDrawn(drawn + 1);
  }, [drawn]);
  return drawn;
}
