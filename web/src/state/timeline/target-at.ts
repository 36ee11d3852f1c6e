import type { Box, Layout, Target } from './layout.ts';

/** The box or mark at a point: marks first, because they are small, then the box painted last. */
export function targetAt(
  { boxes, marks }: Pick<Layout, 'boxes' | 'marks'>,
  x: number,
  y: number,
): Target | null {
  const mark = marks.findLast((each) => Math.abs(each.x - x) <= 5 && Math.abs(each.y - y) <= 5);
  if (mark) return { kind: 'event', seq: mark.seq };
  const isOn = (box: Box) =>
    x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y - 1 && y <= box.y + box.height + 1;
  return boxes.findLast((box) => box.target !== null && isOn(box))?.target ?? null;
}
