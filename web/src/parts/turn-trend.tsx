import type { TurnView } from '../../../src/library/projection/model.ts';
import { dollars, short } from '../shared/format.ts';
import { figuresOf } from '../state/turn-figures.ts';

const WIDTH = 1_000;
const HEIGHT = 24;
/** Widest column, px. */
const MOST_PX = 10;
const SPACE_PX = 300;
const FEWEST = 36;

interface TrendProps {
  turns: readonly TurnView[];
  unit: 'dollars' | 'tokens';
  isBroken: (turn: string) => boolean;
}

/** The cost of each turn as a column, oldest first. A turn whose cache broke has another colour. */
export function TurnTrend({ turns, unit, isBroken }: TrendProps) {
  const costs = turns.flatMap((turn) => {
    const cost = figuresOf(turn)[unit];
    return cost === null ? [] : [{ turn, cost }];
  });
  if (costs.length < 2) return null;
  const most = costs.reduce((a, b) => (b.cost > a.cost ? b : a));
  // A few columns are not spread over the whole width.
  const places = Math.max(costs.length, FEWEST);
  const column = ({ cost }: { cost: number }, index: number) => {
    const x = Math.round(((index + 0.5) / places) * WIDTH);
    return `M${x} ${HEIGHT}V${(HEIGHT - 1 - (cost / (most.cost || 1)) * (HEIGHT - 2)).toFixed(1)}`;
  };
  const columns = costs.map(column);
  const thickness = Math.max(1, Math.min(MOST_PX, SPACE_PX / places));
  const inWords = (cost: number) => (unit === 'dollars' ? dollars(cost) : `${short(cost)} tokens`);
  return (
    <figure class="turn-trend">
      <svg
        role="img"
        aria-label={`Cost of ${costs.length} turns, at most ${inWords(most.cost)} in turn ${most.turn.number} of ${most.turn.agent}`}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        <path d={columns.join('')} stroke-width={thickness} />
        <path
          class="turn-trend-broke"
          d={columns.filter((_, index) => isBroken(costs[index]?.turn.id ?? '')).join('')}
          stroke-width={thickness}
        />
      </svg>
      <figcaption class="quiet" aria-hidden="true">
        most {inWords(most.cost)}
      </figcaption>
    </figure>
  );
}
