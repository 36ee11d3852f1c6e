import type { Arrow } from '../../../../src/library/projection/model.ts';
import { BAR_PX, BAR_TOP_PX, type Placed } from './rows.ts';

export interface ArrowLine {
  seq: number;
  x: number;
  from: number;
  to: number;
  kind: 'message' | 'handoff' | 'delegation';
}

/** Most arrows in view. Above it plain messages are left out, then all. */
const MAX_ARROWS = 160;

interface ArrowView {
  xOf: (time: number) => number;
  top: number;
  width: number;
}

/** The arrows in view, from lane to lane. */
export function layArrows(arrows: readonly Arrow[], lanes: readonly Placed[], view: ArrowView): ArrowLine[] {
  const middles = new Map(lanes.map(({ lane, y }) => [lane.agent, y - view.top + BAR_TOP_PX + BAR_PX / 2]));
  const people = middles.get(null) ?? 0;
  const found: ArrowLine[] = [];
  for (const { seq, at, kind, from, isAgent, to } of arrows) {
    const x = view.xOf(at);
    if (x < 0 || x > view.width) continue;
    const start = isAgent ? (middles.get(from) ?? people) : people;
    for (const agent of to.slice(0, 16)) {
      const end = middles.get(agent);
      if (end === undefined || end === start) continue;
      found.push({ seq, x, from: start, to: end, kind: arrowKind(kind) });
    }
  }
  if (found.length <= MAX_ARROWS) return found;
  const rare = found.filter(({ kind }) => kind !== 'message');
  return rare.length <= MAX_ARROWS ? rare : [];
}

function arrowKind(kind: string): ArrowLine['kind'] {
  if (kind === 'handoff') return 'handoff';
  return kind.startsWith('delegation') ? 'delegation' : 'message';
}
