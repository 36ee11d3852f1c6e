/** The part of a list of rows of equal height that is drawn. */
export interface Window {
  first: number;
  /** Exclusive. */
  end: number;
  /** Most rows that a window of this height has, wherever it is. */
  most: number;
}

/** Rows drawn beyond each edge, so that the wheel reveals no gap. */
const SPARE_ROWS = 12;

export function windowOf(scrollTop: number, height: number, rowHeight: number, count: number): Window {
  const first = Math.max(0, Math.min(Math.floor(scrollTop / rowHeight) - SPARE_ROWS, count));
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + SPARE_ROWS);
  const most = Math.ceil(height / rowHeight) + 1 + 2 * SPARE_ROWS;
  return { first, end: Math.max(first, end), most };
}

/** Scroll position that makes a row fully visible, in the middle if it is distant; null if it already is. */
export function scrollFor(
  index: number,
  { scrollTop, height, rowHeight }: { scrollTop: number; height: number; rowHeight: number },
): number | null {
  const top = index * rowHeight;
  const isAbove = top < scrollTop;
  if (!isAbove && top + rowHeight <= scrollTop + height) return null;
  const wanted = isAbove ? top : top + rowHeight - height;
  const isFar = Math.abs(wanted - scrollTop) > height;
  return isFar ? Math.max(0, top - (height - rowHeight) / 2) : wanted;
}
