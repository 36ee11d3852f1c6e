import type { Row } from '../../../src/library/projection/model.ts';

/** A row of the list: one event, or several consecutive minor ones. */
export type Line = Row | Fold;

export interface Fold {
  seq: number;
  count: number;
  last: number;
}

export function isFold(line: Line): line is Fold {
  return 'count' in line;
}

/** A single minor event is shown in full, because "1 more" would take the same space. */
export function foldNoise(rows: readonly Row[], isOpen: (seq: number) => boolean = () => false): Line[] {
  const lines: Line[] = [];
  for (let index = 0; index < rows.length;) {
    const row = rows[index] as Row;
    let end = index + 1;
    if (row.level === 'noise') while (rows[end]?.level === 'noise') end++;
    const last = rows[end - 1] as Row;
    if (end - index > 1 && !isOpen(row.seq)) {
      lines.push({ seq: row.seq, count: end - index, last: last.seq });
    } else lines.push(...rows.slice(index, end));
    index = end;
  }
  return lines;
}
