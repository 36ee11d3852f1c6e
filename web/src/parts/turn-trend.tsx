import type { TurnView } from '../../../src/projection/model.ts';
import { dollars, short } from '../shared/format.ts';
import { figuresOf } from '../state/turn-figures.ts';

const WIDTH = 1_000;
const HEIGHT = 24;

interface TrendProps {
  turns: readonly TurnView[];
  unit: 'dollars' | 'tokens';
  isBroken: (turn: string) => boolean;
}

/** The cost of each turn, oldest first, with a line where the cache broke. */
export function TurnTrend({ turns, unit, isBroken }: TrendProps) {
  const costs = turns.flatMap((turn) => {
    const cost = figuresOf(turn)[unit];
    return cost === null ? [] : [{ turn, cost }];
  });
  if (costs.length < 2) return null;
  const most = costs.reduce((a, b) => (b.cost > a.cost ? b : a));
  const x = (index: number) => Math.round((index / (costs.length - 1)) * WIDTH);
  const y = (cost: number) => (HEIGHT - 1 - (cost / (most.cost || 1)) * (HEIGHT - 3)).toFixed(1);
  const inWords = (cost: number) => (unit === 'dollars' ? dollars(cost) : `${short(cost)} tokens`);
  return (
    <figure class="turn-trend">
      <svg
        role="img"
        aria-label={`Cost of ${costs.length} turns, at most ${inWords(most.cost)} in turn ${most.turn.number} of ${most.turn.agent}`}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {costs.map(({ turn }, index) =>
          isBroken(turn.id) ? (
            <line key={turn.id} class="turn-trend-broke" x1={x(index)} x2={x(index)} y1="0" y2={HEIGHT} />
          ) : null,
        )}
        <polyline points={costs.map(({ cost }, index) => `${x(index)},${y(cost)}`).join(' ')} />
      </svg>
      <figcaption class="quiet" aria-hidden="true">
        most {inWords(most.cost)}
      </figcaption>
    </figure>
  );
}
